# Tables: columns become modes, and their names come out again.
source "$(dirname "$0")/support.sh"

# Two groups of people who buy two groups of things in two parts of the year, 27 lines each; what counts is that it
# has rank 2. A name has a comma, another an escape that a terminal must not be given.
{
  echo 'user,item,when,count'
  for u in ann bob $'c\em'; do for i in tea cake '"milk, fresh"'; do for d in 2024-01-05 2024-01-20 2024-02-11; do
    echo "$u,$i,$d,4"
  done; done; done
} >buys.csv
{
  for u in dora eve fritz; do for i in bolts nuts screws; do for d in 2024-06-05 2024-07-20 2024-07-11; do
    echo "$u,$i,$d,3"
  done; done; done
} >>buys.csv
ask=(--columns 'user,item,when:%Y-%m' --value count)

expect 0 "$td" cpd buys.csv "${ask[@]}" --rank 2 --init nvecs --output model.tdb
says out "source    table of 4 columns, with a header, separated by comma; modes: user, item, when (%Y-%m); value: count"
grep -Eq '^component +weight +user +item +when$' out || fail "no head: $(cat out)"
grep -Eq '^ +[12] +[0-9.e+]+ +(dora|eve|fritz)(; (dora|eve|fritz)){2} +(bolts|nuts|screws)(; (bolts|nuts|screws)){2} +2024-07; 2024-06$' out ||
  fail "the second group is no component: $(cat out)"
grep -q 'milk, fresh' out || fail "no name with a comma"
grep -q $'\x1b' out && fail "an escape reaches the terminal"
grep -qF 'c\x1bm' out || fail "an escape is not shown as such: $(cat out)"
grep -q '^weights' out && fail "weights stand twice"
says out "written to model.tdb"
expect 0 "$td" cpd buys.csv "${ask[@]}" --rank 2 --output model.txt
says out "of its names it keeps none"
expect 0 "$td" cpd buys.csv "${ask[@]}" --rank 2 --leading 0
says out "weights"
expect 0 "$td" cpd buys.csv "${ask[@]}" --rank 2 --leading 2 --json
is_json out 'd["modes"] == ["user", "item", "when"] and len(d["components"]) == 2 and all(len(m) == 2 for c in d["components"] for m in c["leading"])'
is_json out '{e["label"] for c in d["components"] for e in c["leading"][2]} == {"2024-01", "2024-02", "2024-06", "2024-07"}'

# The names go through td's binary format, of the tensor and of the model.
expect 0 "$td" convert buys.csv buys.tdb "${ask[@]}"
expect 0 "$td" cpd buys.tdb --rank 2 --start model.tdb
says out "dora"
expect 0 "$td" convert --ktensor model.tdb again.tdb
expect 0 "$td" convert --ktensor model.tdb again.txt
says out "of its names it keeps none"
expect 0 "$td" convert buys.tdb plain.tns
says out "of its names it keeps none"
expect 0 "$td" convert buys.tdb dense.tdb --as dense
grep -q 'names' out && fail "names that are kept are said to be lost"
expect 0 "$td" convert dense.tdb sparse.tdb --as sparse
for file in dense.tdb sparse.tdb; do
  expect 0 "$td" cpd $file --rank 2
  grep -Eq '^component +weight +user +item +when$' out || fail "$file lost its names: $(cat out)"
  says out "dora"
done
expect 0 "$td" cpd plain.tns --rank 2 --start again.tdb # names of the start
says out "dora"
expect 0 "$td" cpd plain.tns --rank 2
grep -q dora out && fail "names from nowhere"

# The same table in other clothes.
tr ',' '\t' <buys.csv | sed 's/"milk\t fresh"/"milk, fresh"/' | gzip >buys.tsv.gz
expect 0 "$td" convert buys.tsv.gz other.tdb "${ask[@]}"
cmp -s buys.tdb other.tdb || fail "TSV, compressed, is another tensor"
tail -n +2 buys.csv | sed 's/$/\r/' >bare.csv
expect 0 "$td" convert bare.csv bare.tns --columns 1,2,3:%Y-%m --value 4
cmp -s plain.tns bare.tns || fail "without a header it is another tensor"
expect 0 "$td" check buys.csv "${ask[@]}"
expect 0 "$td" plan buys.csv "${ask[@]}" --rank 2

# What is wrong is said in a sentence.
refused() { # refused CODE TEXT ARGUMENT...
  local code=$1 sentence=$2
  shift 2
  expect "$code" "$td" "$@"
  says err "$sentence"
  [ "$(wc -l <err)" -eq 1 ] || fail "not one sentence: $(cat err)"
}
refused 2 "buys.csv: no column 'usr' (did you mean 'user'?); the first line names user, item, when, count" \
  convert buys.csv x.tns --columns usr,item
refused 3 "columns says which columns become modes" convert buys.csv x.tns
refused 3 "is no table but a td binary file" convert buys.tdb x.tns --columns user,item
sed '20s/,4$/,four/' buys.csv >bad.csv
refused 3 "bad.csv: line 20: column 4: 'four' is not a number" convert bad.csv x.tns "${ask[@]}"
sed '20s/$/,5/' buys.csv >bad.csv
refused 3 "bad.csv: line 20: has 5 fields, expected 4" convert bad.csv x.tns "${ask[@]}"
[ -e x.tns ] && fail "a refused table was written"
finish
