# td cpd: text, JSON, files, and ^C.
source "$(dirname "$0")/support.sh"
small

expect 0 "$td" cpd small.tns --rank 2 --max-iters 5 --tol 0 --output model.txt
says out "max_iters = 5 reached"
[ "$(grep -c '^iter ' out)" -eq 5 ] || fail "not a line an iteration off a terminal: $(cat out)"
grep -q $'\r' out && fail "a carriage return off a terminal"
[ -s model.txt ] || fail "no model"
expect 0 "$td" cpd small.tns --rank 2 --max-iters 20 --tol 0 --every 10
[ "$(grep -c '^iter ' out)" -eq 2 ] || fail "--every 10 of 20: $(cat out)"

# The result of five iterations is where the sixth starts.
expect 0 "$td" cpd small.tns --rank 2 --start model.txt --compare model.txt --max-iters 1 --json
is_json out 'd["iterations"] == 1 and len(d["weights"]) == 2 and len(d["history"]["fit"]) == 1 and 0 <= d["score"] <= 1'
is_json out 'len(d["history"]["mttkrp_seconds"]) == 3 and min(d["history"]["mttkrp_seconds"]) > 0'
is_json out 'd["tensor"]["dims"] == [3, 2, 2] and abs(d["tensor"]["norm"] ** 2 - 30) < 1e-12'
grep -q '^iter ' err || fail "with --json, progress goes to standard error"
expect 0 "$td" cpd small.tns --rank 2 --quiet --json
[ -s err ] && fail "--quiet is not: $(cat err)"

# Planted components are found: the score of a perfect match is 1.
expect 0 "$td" generate planted.tdb --dims 20x21x22 --rank 3 --dense --seed 5 --model truth.txt
expect 0 "$td" cpd planted.tdb --rank 3 --init nvecs --tol 1e-12 --max-iters 500 --compare truth.txt --json
is_json out 'd["score"] > 0.999 and d["fit"] > 0.9999'

# A run that ends by tol while the fit creeps says so; where the fit has come to its end there is nothing to say. Of noise,
# a model gains little and slowly.
expect 0 "$td" generate noise.tns --dims 60x50x40 --nnz 4000 --seed 0
expect 0 "$td" cpd noise.tns --rank 6
says out 'stopped   after'
says out 'note      the fit still grew by'
says out 'try a smaller --tol, another --seed or --init nvecs'
expect 0 "$td" cpd noise.tns --rank 6 --init nvecs
says out 'try a smaller --tol, or --init random with some values of --seed'
expect 0 "$td" cpd noise.tns --rank 6 --json
is_json out 'd["stop_reason"] == "tol" and d["fit_growth"] > 1e-4 and "grew by" in d["creeping"]'
expect 0 "$td" cpd noise.tns --rank 6 --max-iters 10 --json
is_json out 'd["stop_reason"] == "max_iters" and d["fit_growth"] > 1e-4 and d["creeping"] == ""'
expect 0 "$td" cpd planted.tdb --rank 3 --init nvecs --json
is_json out 'd["stop_reason"] == "tol" and d["fit_growth"] < 1e-4 and d["creeping"] == ""'

# ^C. A run far too long to end by itself; job control, because a background job of a script ignores ^C.
set -m
for signal in INT TERM; do
  rm -f stopped.txt
  : >err
  "$td" cpd planted.tdb --rank 6 --max-iters 100000000 --tol 0 --output stopped.txt --json >out 2>err &
  pid=$!
  for ((tries = 0; tries < 600; ++tries)); do # until it iterates: before that a signal ends it at once
    grep -q '^iter ' err && break
    sleep 0.1
  done
  kill -$signal $pid
  wait $pid
  code=$?
  [ $code -eq $((128 + $(kill -l $signal))) ] || fail "SIG$signal: exit code $code: $(tail -n 3 err)"
  [ -s stopped.txt ] || fail "SIG$signal: the model was not kept"
  is_json out 'd["interrupted"] and d["stop_reason"] == "callback" and 1 <= d["iterations"] < 100000000 and len(d["weights"]) == 6'
done
set +m

# On a terminal one line renews itself. script gives the program one, where it is installed.
if command -v script >/dev/null; then
  TERM=xterm script -qec "'$td' cpd small.tns --rank 2 --max-iters 5 --tol 0" /dev/null >out </dev/null
  grep -q $'\r.*iter   5' out || fail "no line that renews itself: $(cat -v out)"
fi
finish
