# Command lines that are wrong, help, and what every call may rely on.
source "$(dirname "$0")/support.sh"
small

expect 0 "$td" --version
grep -Eq '^td [0-9]+\.[0-9]+\.[0-9]+ \(ABI [0-9]+\)$' out || fail "version: $(cat out)"
expect 0 "$td" --help
for code in 0 1 2 3 4 5 70 130; do
  grep -Eq "^ +$code " out || fail "exit code $code is not in --help"
done
for verb in cpd check convert stats generate bench plan info selftest options; do
  expect 0 "$td" $verb --help
  "$td" --help | grep -Eq "^ +$verb " || fail "$verb is not in --help"
done

# Words for flags, and what is meant by a word that there is not.
"$td" --help >help
expect 0 "$td" help
cmp -s out help || fail "td help is not td --help"
"$td" cpd --help >help
expect 0 "$td" help cpd
cmp -s out help || fail "td help cpd is not td cpd --help"
expect 0 "$td" version
grep -q '^td [0-9]' out || fail "td version: $(cat out)"
expect 2 "$td"
says err "a command is missing; commands are cpd,"
expect 2 "$td" decompose
says err "there is no command 'decompose'; commands are"
expect 2 "$td" cdp
says err "there is no command 'cdp' (did you mean 'cpd'?); commands are"
expect 2 "$td" cpd small.tns --rank 2 --max-iteratons 3
says err "there is no option '--max-iteratons' (did you mean '--max-iters'?)"
expect 2 "$td" cpd small.tns --rank 2 --tolx=3
says err "there is no option '--tolx' (did you mean '--tol'?)"
expect 2 "$td" cpd small.tns --rnak 2 # which is missing, too
says err "there is no option '--rnak' (did you mean '--rank'?)"
expect 2 "$td" cpd small.tns
says err "--rank"
expect 2 "$td" cpd small.tns --rank 0
says err "expected an integer of 1 or more; '0' came"
expect 2 "$td" cpd small.tns --rank two
says err "expected an integer of 1 or more; 'two' came"
expect 2 "$td" generate x.tns --dims 3x4x5 --nnz 10 --scale nan
says err "expected a number above 0; 'nan' came"
expect 2 "$td" cpd small.tns --rank 2 --tols 1
expect 2 "$td" cpd small.tns --rank 2 --max-iters 0
says err "--max-iters 0: expected a whole number"
expect 2 "$td" cpd small.tns --rank 2 --init nvec
says err "random|nvecs"
expect 2 "$td" cpd small.tns --rank 2 --devices gpu9
expect 5 "$td" cpd small.tns --rank 2 --devices cuda:4000
[ "$(wc -l <err)" -eq 1 ] || fail "more than a sentence: $(cat err)"
grep -q '^td: ' err || fail "an error without its 'td: '"
expect 3 "$td" cpd missing.tns --rank 2
expect 3 "$td" cpd . --rank 2
expect 3 "$td" cpd small.tns --rank 2 --output no/such/folder/model.txt
says err "no/such/folder"
expect 2 "$td" generate x.tns --nnz 10
expect 2 "$td" generate x.tns --dims 3x0 --nnz 10
expect 2 "$td" generate x.tns --like moon
expect 2 "$td" generate x.tns --dims 3x4x5 --nnz 10 --fiber 6
expect 2 "$td" generate x.tns --dims 3x4x5 --dense --fiber 2
says err "--fiber"
for given in '--skew 0.5' '--nnz 7' '--scale 2' '--fiber 2'; do
  # shellcheck disable=SC2086 # a flag and its value
  expect 2 "$td" generate x.tdb --dims 3x4x5 --dense $given
  says err "td: ${given% *} says what entries a sparse tensor has"
  # shellcheck disable=SC2086
  expect 2 "$td" plan small.tns --rank 2 $given
  says err "td: ${given% *} says more of a shape"
done
expect 2 "$td" bench small.tns --dense
says err "--dense says more of a shape"
expect 2 "$td" generate x.tns --dims 5 --nnz 3
says err "--dims 5: 1 of them; expected 2 to 64"
expect 4 "$td" generate x.tdb --dims 100000x100000x100000 --dense
says err "a dense tensor of 1e+15 elements needs 8e+15 bytes"
expect 2 "$td" plan --dims 100x80x60 --nnz 9999999999 --rank 2
says err "9999999999 entries in a tensor of 480000 elements"
for much in options --version; do # more than a buffer, and less
  [ -e /dev/full ] && { "$td" $much >/dev/full 2>err; [ $? -eq 3 ] || fail "td $much: a full disk went unnoticed"; }
done

# The library's words for options are flags here.
printf 'sptensor\n3\n3 2 2\n1\n1 1 1 1.0\n' >ambiguous.txt
expect 3 "$td" check ambiguous.txt
says err 'set --index-base to 0 (GenTen) or 1 (Tensor Toolbox), or --dialect to genten or toolbox'
expect 0 "$td" check small.tns --index-base 1
says out '1-based, as --index-base says'
expect 2 "$td" cpd small.tns --rank 2 --mode-order 7
says err 'td: --mode-order "7":'
expect 0 "$td" plan small.tns --rank 2 --format coo
says out 'asked for by --format'

# A flag for every row of the table, with '-' and with '_'.
expect 0 "$td" options --json
is_json out 'any(r["name"] == "max_iters" for r in d)'
expect 0 "$td" options
grep -Eo '^  [a-z_]+' out | tr -d ' ' >names
[ "$(wc -l <names)" -ge 20 ] || fail "few options: $(cat names)"
{ "$td" cpd --help; "$td" plan --help; } >help
while read -r name; do
  grep -qF -- "--${name//_/-} " help || fail "option $name is no flag of cpd or plan"
done <names
expect 0 "$td" cpd small.tns --rank 1 --max_iters 3 --quiet
expect 0 "$td" cpd small.tns --rank 1 --max-iters=3 --quiet
finish
