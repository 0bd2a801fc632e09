#!/bin/bash
# td_mpi.h against another MPI than that of the build: examples/mpi.c is compiled by MPICH's mpicc, with the same libtd,
# and run by its mpirun.
# usage: tests/mpi/mpich.sh ROOT LIBTD
set -u
root=$1 libtd=$(readlink -f "$2")
command -v mpicc.mpich mpirun.mpich >/dev/null && [ "$(command -v mpicc.mpich mpirun.mpich | wc -l)" -eq 2 ] || {
  echo "skipped: there is no MPICH (mpicc.mpich, mpirun.mpich)"
  exit 77
}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
# gcc takes MPICH's MPI_STATUSES_IGNORE, which is (MPI_Status *)1, for an array that is too short.
mpicc.mpich -std=c99 -Wall -Wextra -Werror -Wno-stringop-overflow "$root/examples/mpi.c" -I "$root/include" "$libtd" \
  -Wl,-rpath,"$(dirname "$libtd")" -lm -o program || exit 1
ldd program >libraries
grep -q 'libmpich\.so' libraries && ! grep -q 'libmpi\.so' libraries || {
  echo "FAILED: the program is not MPICH's:"
  cat libraries
  exit 1
}
OMP_NUM_THREADS=1 mpirun.mpich -n 3 ./program >out || exit 1
cat out
for process in 0 1 2; do
  grep -q "^process $process of 3: [1-9][0-9]* of 3600 entries" out || {
    echo "FAILED: process $process does not say what it has"
    exit 1
  }
done
[ "$(grep -o 'fit [0-9.]* after' out | sort -u | wc -l)" -eq 1 ] || {
  echo "FAILED: the processes have different fits"
  exit 1
}
