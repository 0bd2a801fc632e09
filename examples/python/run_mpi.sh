#!/bin/bash
# Runs mpi.py on processes of mpirun with the first Python that has NumPy and mpi4py.
# usage: run_mpi.sh PROCESSES MPIRUN PYTHON...
set -u
processes=$1 mpirun=$2 example=$(dirname "$(readlink -f "$0")")/mpi.py
shift 2
for python in "$@"; do
  "$python" -c 'import numpy, mpi4py.MPI' 2>/dev/null || continue
  exec "$mpirun" -n "$processes" "$python" -B "$example"
done
echo "skipped: no Python with NumPy and mpi4py"
exit 77
