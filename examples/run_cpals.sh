# run_cpals.sh CPALS DATA: the example on the amino-acid tensor shows the fits that Tensor Toolbox publishes for cp_als
# with nvecs, R = 3, tol 1e-4.
cpals=$1 data=$2
if [ ! -f "$data" ]; then
  echo "skipped: $data is not there (TD_TEST_DATA names its folder)"
  exit 77
fi
out=$("$cpals" "$data" 3) || exit 1
echo "$out"
expected='iteration  10  fit 9.334888e-01
iteration  20  fit 9.604549e-01
iteration  30  fit 9.712518e-01
iteration  40  fit 9.741285e-01
iteration  43  fit 9.744312e-01'
[ "$out" = "$expected" ] || { echo "expected"; echo "$expected"; exit 1; }
