# The fits that Tensor Toolbox publishes for cp_als on the amino-acid tensor with nvecs, R = 3 (documentation of cp_als).
source "$(dirname "$0")/support.sh"
amino=$data/aminoacid_data.txt
[ -f "$amino" ] || skip "$amino is not there (TD_TEST_DATA names its folder)"

shows() { # iteration fit
  grep -Eq "^iter +$1  fit $2 " out || { fail "iteration $1 has not fit $2"; cat out; }
}
expect 0 "$td" cpd "$amino" --rank 3 --init nvecs --tol 1e-4
shows 10 9.334888e-01 && shows 20 9.604549e-01 && shows 30 9.712518e-01 && shows 40 9.741285e-01 && shows 43 9.744312e-01
says out "after 43 iterations: the fit changed by less than tol = 0.0001"
expect 0 "$td" cpd "$amino" --rank 3 --init nvecs --tol 1e-6 --max-iters 100
shows 50 9.747733e-01 && shows 60 9.749128e-01 && shows 70 9.749430e-01 && shows 73 9.749461e-01

# The file has 0-based subscripts and does not say so.
expect 0 "$td" check "$amino"
says out "5 x 201 x 61"
says out "47991.95013208"
finish
