# td cpd under mpirun: one run of all processes, of which the first prints; and without the plug-in, one that works alone.
source "$(dirname "$0")/support.sh"
libraries=$(ldd "$td" | sed -n 's/.*libtd\.so[^ ]* => \([^ ]*\).*/\1/p')
plugin=("$(dirname "$(readlink -f "$libraries")")"/libtd_mpi.so.*)
[ -e "${plugin[0]}" ] || skip "td was built without MPI"
command -v mpirun >/dev/null || skip "there is no mpirun"
# Root may run it, on fewer cores than there are processes, which Open MPI asks to hear.
export OMP_NUM_THREADS=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_hwloc_base_binding_policy=none
processes() { mpirun -n "$1" "$td" "${@:2}"; }

expect 0 "$td" generate x.tns --dims 60,50,40 --nnz 5000 --seed 3
expect 0 "$td" cpd x.tns -r 4 --tol 0 --max-iters 8 --json
mv out alone
for n in 1 2 4; do
  expect 0 processes $n cpd x.tns -r 4 --tol 0 --max-iters 8 --json -o model.txt
  is_json out "d['workers'] == $n and len(d['history']['fit']) == 8 and d['output'] == 'model.txt'"
  is_json out "all(abs(a - b) < 1e-8 for a, b in
    zip(d['history']['fit'], json.load(open('alone'))['history']['fit']))"
  says model.txt ktensor
  rm -f model.txt
done

expect 0 processes 3 cpd x.tns -r 2 --max-iters 3
[ "$(grep -c '^stopped' out)" -eq 1 ] || fail "$(grep -c '^stopped' out) processes print, expected 1"
says out "process 0 of 3"

# Or each reads a file of its own.
head -2000 x.tns >part.0.tns
tail -n +2001 x.tns >part.1.tns
expect 0 processes 2 cpd part.%p.tns --file-per-process 1 -r 4 --tol 0 --max-iters 8 --json
is_json out "d['tensor']['entries'] == json.load(open('alone'))['tensor']['entries'] and all(abs(a - b) < 1e-8 for a, b in
  zip(d['history']['fit'], json.load(open('alone'))['history']['fit']))"
rm part.1.tns
expect 3 processes 2 cpd part.%p.tns --file-per-process 1 -r 2
says err "part.1.tns"

# A dense file, of which each process reads a slab.
for file in dense.npy dense.tdb dense.txt; do
  expect 0 "$td" generate $file --dense --dims 20,12,9 --rank 2 --seed 3
  expect 0 "$td" cpd $file -r 2 --tol 0 --max-iters 8 --json
  mv out alone
  expect 0 processes 3 cpd $file -r 2 --tol 0 --max-iters 8 --json
  is_json out "all(abs(a - b) < 1e-8 for a, b in
    zip(d['history']['fit'], json.load(open('alone'))['history']['fit']))"
done

# What is wrong is said once, with the exit code of one process.
printf '1 1 1 1.0\n1 2 x 2.0\n' >bad.tns
expect 3 processes 3 cpd bad.tns -r 2
[ "$(grep -c '^td: ' err)" -eq 1 ] || fail "$(grep -c '^td: ' err) processes complain, expected 1"
says err "line 2"
expect 3 processes 2 cpd missing.tns -r 2
expect 2 processes 2 cpd x.tns -r 2 --devices cpu:0

# One process fails where the others have ended: none waits for ever.
mkdir model.txt
expect 3 processes 2 cpd x.tns -r 2 --max-iters 2 -o model.txt

# Without the plug-in one process does the work and says so.
mkdir -p apart
cp "$(readlink -f "$libraries")" apart/"$(basename "$libraries")"
LD_LIBRARY_PATH=$PWD/apart expect 0 mpirun -n 3 -x LD_LIBRARY_PATH "$td" cpd x.tns -r 2 --max-iters 3
[ "$(grep -c '^stopped' out)" -eq 1 ] || fail "$(grep -c '^stopped' out) processes work, expected 1"
says err "one of 3 processes works"
finish
