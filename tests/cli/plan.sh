# td plan: a shape, a file, what is forced, what does not fit, and bytes against what is allocated.
source "$(dirname "$0")/support.sh"
small

expect 0 "$td" plan --dims 300x200x100 --nnz 50000 --rank 8 --devices cpu:2 --json
is_json out 'd["format"]["choice"] == "sorted" and "quarter" in d["format"]["why"] and d["fits"] == 1 and d["workers"] == 2'
is_json out '[m["dim"] for m in d["modes"]] == [300, 200, 100] and all(sum(m["load"]) == 50000 for m in d["modes"])'
is_json out 'all(m["kernel"] and m["conflicts"] and m["seconds"] > 0 for m in d["modes"]) and "evenly" in d["assumptions"]'
is_json out 'abs(sum(m["seconds"] for m in d["modes"]) / d["seconds"]["mttkrp"] - 1) < 1e-9'
is_json out 'd["host_bytes"]["peak"] >= d["host_bytes"]["tensor"] >= 50000 * 36 and d["device_bytes"]["peak"] == 0'

# For people; what an option forces, it says.
expect 0 "$td" plan --dims 300x200x100 --nnz 50000 --rank 8 --format blco --read-rate 1e10 --operation-rate 5e10
for text in "format      blco: asked for by --format" "mode 2" "iteration" "given by options" "assumed"; do
  says out "$text"
done
expect 0 "$td" plan --dims 30x20x10 --dense --type f32 --rank 4 --json
is_json out 'd["format"]["choice"] == "dense" and d["sparse"] == 0 and 6000 * 4 <= d["host_bytes"]["tensor"] < 6000 * 4 + 100'

expect 0 "$td" plan --dims 3x2 --nnz 1 --rank 1
says out "sparse 3 x 2, 1 entry, f64"

# What does not fit is planned all the same.
expect 0 "$td" plan --dims 3000x2000x1000 --nnz 500000 --rank 8 --memory-limit 1000000
says out "DOES NOT FIT "
says out "by --memory-limit"

# A file; with --check also what came of it. Bytes of the tensor are exact.
expect 0 "$td" generate x.tdb --dims 300x200x100 --nnz 60000 --skew 0.4
expect 0 "$td" plan x.tdb --rank 8 --check --json
is_json out 'd["file"] == "x.tdb" and [c["what"] for c in d["checked"]][:3] == ["tensor", "building at most", "CP-ALS at most"]'
is_json out 'all(abs(c["predicted"] / c["came"] - 1) < 0.05 for c in d["checked"][:2]) and len(d["checked"]) == 7'
expect 0 "$td" plan small.tns --rank 2 --check
says out "ratio"

# A dense tensor likewise: a row for each mode and for an iteration, with what was predicted, what came and their ratio.
expect 0 "$td" plan --dims 20x15x10 --dense --rank 3 --check
[ "$(grep -Ec '^(MTTKRP mode [012]|iteration) +[0-9.]+ ms +[0-9.]+ ms +[0-9.]+$' out)" -eq 4 ] ||
  fail "not a prediction beside what came for each mode and an iteration: $(cat out)"

expect 2 "$td" plan small.tns
expect 2 "$td" plan --rank 3
expect 2 "$td" plan small.tns --rank 3 --check --workers 4
expect 2 "$td" plan small.tns --dims 3x2 --rank 3
expect 2 "$td" plan small.tns --type f32 --rank 3
expect 3 "$td" plan missing.tns --rank 3
finish
