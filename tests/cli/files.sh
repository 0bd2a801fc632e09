# td check, stats, convert and generate.
source "$(dirname "$0")/support.sh"
small

expect 0 "$td" check small.tns --strict
says out "3 x 2 x 2"
says out "nothing suspicious"
says out "-2 .. 4, sum 6"

# A norm and a sum that are no f64 numbers.
printf '1 1 1 1.5e308\n2 2 2 1.6e308\n1 2 1 1.7e308\n' >large.tns
expect 0 "$td" check large.tns
says out "1.5e+308 .. 1.7e+308, sum beyond the largest number"
says out "norm        beyond the largest number"
expect 0 "$td" check large.tns --json
is_json out 'd["tensor"]["norm"] is None and d["sum"] is None and d["max"] == 1.7e308'

# One repeated coordinate, one zero, one empty slice in the first mode.
printf '1 1 1 1.0\n3 1 1 2.0\n3 1 1 3.0\n1 2 2 0\n' >odd.tns
expect 0 "$td" check odd.tns
expect 1 "$td" check odd.tns --strict
says out "1 entry repeats"
says out "1 entry is stored but zero"
says out "mode 0: 1 of 3 slices is empty"
expect 1 "$td" check odd.tns --strict --json
is_json out 'd["duplicates"] == 1 and d["zeros"] == 1 and d["empty_slices"] == [1, 0, 0] and len(d["suspicious"]) == 3'
expect 3 "$td" check odd.tns --duplicates error
expect 0 "$td" check small.tns --index-base 0
says out "is the index base right?"

# The four dialects of one tensor are one tensor.
printf '3\n3 2 2\n1 1 1 1.0\n2 2 1 -2.0\n3 1 2 3.0\n1 2 2 4.0\n' >parti.tns
printf 'sptensor\n3\n3 2 2\n4\n1 1 1 1.0\n2 2 1 -2.0\n3 1 2 3.0\n1 2 2 4.0\n' >toolbox.txt
printf 'sptensor indices-start-at-zero\n3\n3 2 2\n4\n0 0 0 1.0\n1 1 0 -2.0\n2 0 1 3.0\n0 1 1 4.0\n' >genten.txt
expect 0 "$td" convert small.tns expected.tns
for file in parti.tns toolbox.txt genten.txt; do
  expect 0 "$td" check $file
  says out "3 x 2 x 2"
  expect 0 "$td" convert $file came.tns
  cmp -s expected.tns came.tns || fail "$file is another tensor: $(cat came.tns)"
done
printf '1 1 1 1.0\n2 2 -2.0\n' >ragged.tns
expect 3 "$td" check ragged.tns
says err "2"

# There and back through every format of files.
for path in "a.tdb" "a.txt" "a.tns.gz" "a.txt.gz"; do
  expect 0 "$td" convert small.tns $path
  expect 0 "$td" convert $path back.tns --quiet
  [ -s out ] && fail "--quiet is not: $(cat out)"
  cmp -s expected.tns back.tns || fail "through $path it became: $(cat back.tns)"
done
expect 3 "$td" convert small.tns a.npy
says err "cannot hold a sparse tensor"
says err "; or --as dense"
expect 0 "$td" convert small.tns a.npy --as dense
expect 3 "$td" convert a.npy back.tns
says err "cannot hold a dense tensor"
says err "; or --as sparse"
expect 3 "$td" convert small.tns a.unknown
grep -q -- '--as' err && fail "--as is no help where the ending says nothing: $(cat err)"
grep -q '^read' out && fail "the file was read before the name of the other was"
expect 3 "$td" convert small.tns a.npy --as sparse
expect 3 "$td" generate a.unknown --like amazon # which would take minutes
says err "a.unknown: the name's ending tells no file format"
expect 3 "$td" generate a.npy --like amazon
says err "cannot hold a sparse tensor"
expect 3 "$td" generate a.tdb --dims 4000x4000x4000 --dense --rank 2 --model truth.tns
says err "truth.tns: the name's ending tells a file format of tensors"
expect 0 "$td" convert a.npy back.tns --as sparse
cmp -s expected.tns back.tns || fail "through a dense array it became: $(cat back.tns)"
expect 0 "$td" cpd small.tns --rank 2 --output model.txt --quiet
expect 0 "$td" convert --ktensor model.txt model.splatt --file-format splatt
[ -s model.splatt/lambda.mat ] && [ -s model.splatt/mode3.mat ] || fail "no SPLATT folder"
expect 0 "$td" convert --ktensor model.txt again.txt
cmp -s model.txt again.txt || fail "a ktensor changed on its way"
expect 0 "$td" convert --ktensor model.txt again.tdb --json
is_json out 'd == {"file": "again.tdb", "ktensor": {"dims": [3, 2, 2], "rank": 2}}'
for file in model.txt again.tdb; do
  expect 3 "$td" convert $file again.tns
  says err "ktensor, expected a tensor; or --ktensor, which converts one"
done
expect 0 "$td" convert small.tns a.npy --as dense --value-type f32 --json
is_json out 'd["tensor"]["type"] == "f32" and not d["tensor"]["sparse"]'
expect 0 "$td" convert a.npy a.tdb --as sparse --json
is_json out 'd["tensor"]["type"] == "f32" and d["tensor"]["sparse"]'

# Slices of small.tns by hand: mode 0 holds 2 1 1 entries, modes 1 and 2 hold 2 2.
expect 0 "$td" stats small.tns
expect 0 "$td" stats small.tns --json
is_json out '[m["max"] for m in d["modes"]] == [2, 2, 2] and [m["min"] for m in d["modes"]] == [1, 2, 2]'
is_json out 'abs(d["density"] - 4 / 12) < 1e-15 and d["modes"][1]["skew"] == 0'

# The same seed, the same tensor; another seed, another.
for out in a b; do expect 0 "$td" generate $out.tns --dims 50x40x30 --nnz 2000 --skew 0.5 --seed 7; mv $out.tns $out.made; done
cmp -s a.made b.made || fail "one seed, two tensors"
expect 0 "$td" generate c.tns --dims 50x40x30 --nnz 2000 --skew 0.5 --seed 8
cmp -s a.made c.tns && fail "two seeds, one tensor"
awk '$4 < 1 || $4 > 2 || $1 > 50 || $2 > 40 || $3 > 30 { bad = 1 } END { exit bad || NR > 2000 || NR < 1500 }' c.tns ||
  fail "values outside [1, 2] or too few entries"
# As many entries as make duplicates rare, so that stats finds the skew that was asked for.
expect 0 "$td" generate skewed.tdb --dims 3000x2000x1000 --nnz 100000 --skew 0.5
expect 0 "$td" stats skewed.tdb --json
is_json out 'all(abs(m["skew"] - 0.5) < 0.05 for m in d["modes"])'
expect 0 "$td" generate like.tdb --like uber --scale 0.01 --json
is_json out 'd["tensor"]["dims"] == [183, 24, 1140, 1717] and 30000 < d["tensor"]["entries"] <= 33094'
# 1000 entries in fibers of 10 lie on at most 100 of the 600 places in modes 0 and 1; without fibers on far more.
expect 0 "$td" generate fibers.tns --dims 30x20x5000 --nnz 1000 --fiber 10
places() { awk '{ print $1, $2 }' "$1" | sort -u | wc -l; }
[ "$(places fibers.tns)" -le 100 ] && [ "$(wc -l <fibers.tns)" -gt 950 ] ||
  fail "$(wc -l <fibers.tns) entries on $(places fibers.tns) fibers, expected nearly 1000 on at most 100"
expect 0 "$td" generate single.tns --dims 30x20x5000 --nnz 1000
[ "$(places single.tns)" -gt 300 ] || fail "entries on $(places single.tns) fibers alone"
# A planted sparse tensor of rank 4 is explained by its ktensor; with noise s the fit is 1 - s / sqrt(1 + s^2).
expect 0 "$td" generate planted.tns --dims 60x50x40 --nnz 4000 --rank 4 --seed 3 --model truth.txt
expect 0 "$td" cpd planted.tns --rank 4 --start truth.txt --max-iters 1 --json
is_json out 'd["fit"] > 1 - 1e-6 and 3000 < d["tensor"]["entries"] < 5000'
expect 0 "$td" generate noisy.npy --dims 30x20x10 --rank 2 --noise 0.1 --dense --model truth.txt
expect 0 "$td" cpd noisy.npy --rank 2 --start truth.txt --tol 1e-9 --json
is_json out '0.9 < d["fit"] < 0.91'
finish
