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

# What cannot be is refused before the first iteration.
refused() {
  local code=$1 text=$2
  shift 2
  expect "$code" "$td" cpd small.tns --rank 2 "$@"
  says err "$text"
  grep -q '^iter ' out && fail "it ran before it was refused: $*"
}
mkdir folder.html model4
touch model4/factor3.npy
expect 0 "$td" generate other.tns --dims 4x4x4 --nnz 20 --rank 3 --model other.txt --quiet
expect 0 "$td" cpd other.tns --rank 2 --checkpoint other.tdb --quiet
refused 3 'missing.txt' --compare missing.txt
refused 3 "--compare other.txt: dims 4 x 4 x 4; expected the tensor's 3 x 2 x 2" --compare other.txt
refused 3 'folder.html: is a directory' --output folder.html
refused 3 'folder.html: is a directory' --report folder.html
for format in genten frostt; do refused 3 "o.txt: file_format '$format' cannot hold" --output o.txt --file-format $format; done
refused 3 'model.txt: the folder cannot be made' --output model.txt --file-format npy
refused 3 'model4/factor3.npy: would be read as one more mode' --output model4 --file-format npy
for name in o.tns o.tns.gz o.npy; do refused 3 "$name: the name's ending tells a file format of tensors" --output $name; done
refused 2 '2 names, expected 3' --report x.html --mode-names a,b
refused 2 "'7' is not a mode" --report x.html --line-modes 7
refused 3 '--start other.txt: dims[0] = 4' --start other.txt
refused 3 '--resume other.tdb: dims[0] = 4' --resume other.tdb
refused 2 'either --start or --resume' --start model.txt --resume other.tdb
refused 2 '--fixed-modes 0 needs --start or --resume' --fixed-modes 0
expect 0 "$td" cpd small.tns --rank 2 --start model.txt --fixed-modes 0 --quiet
ls -d .td* td-* 2>/dev/null && fail "scratch files stay"

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
