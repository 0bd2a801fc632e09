# td bench: what it prints for people and as JSON, and what it refuses. Times themselves are not judged.
source "$(dirname "$0")/support.sh"
small

# Each run measures the machine, which takes seconds: one is for a tensor of a file and a dense one that is made.
expect 0 "$td" bench small.tns --dims 8x6x4 --dense --rank 2,3 --repeats 2 --scratch . --json
is_json out 'd["repeats"] == 2 and d["machine"]["threads"] >= 1'
is_json out '[t["name"] for t in d["tensors"]] == ["small.tns", "8x6x4"]'
is_json out 'all(d["machine"][k + "_per_second"] > 1e6 for k in
  ("read_bytes", "write_bytes", "copy_bytes", "f64_operations", "f32_operations"))'
is_json out '[r["rank"] for r in d["tensors"][0]["ranks"]] == [2, 3] and d["tensors"][0]["tensor"]["dims"] == [3, 2, 2]'
is_json out 'all(r["iteration_seconds"] > 0 and len(r["mttkrp"]["seconds"]) == 3 and min(r["mttkrp"]["seconds"]) > 0 and
  r["mttkrp"]["giga_entries_per_second"] > 0 for r in d["tensors"][0]["ranks"])'
# A third of all copies for each mode; no slice is empty, so mode 0 writes 3 rows of as many numbers as the rank.
is_json out 'all(r["mttkrp"]["floor_bytes"] == [d["tensors"][0]["bytes"] / 3 + rows * 8 * r["rank"] for rows in (3, 2, 2)]
  for r in d["tensors"][0]["ranks"]) and d["tensors"][0]["tensor"]["format"] == "sorted"'
is_json out 'all(abs(f / b * d["machine"]["read_bytes_per_second"] - 1) < 1e-12 for r in d["tensors"][0]["ranks"]
  for f, b in zip(r["mttkrp"]["floor_seconds"], r["mttkrp"]["floor_bytes"]))'
# Beside what was measured, what the plan of the same tensor predicts: from rates of the same order in another process.
is_json out 'all(len(r["mttkrp"]["predicted_seconds"]) == 3 and min(r["mttkrp"]["predicted_seconds"]) > 0 and
  abs(sum(r["mttkrp"]["predicted_seconds"]) / r["mttkrp"]["predicted_sum"] - 1) < 1e-9 and
  r["predicted_iteration_seconds"] > r["mttkrp"]["predicted_sum"] for r in d["tensors"][0]["ranks"])'
is_json out 'd["tensors"][0]["build"]["seconds"] > 0 and d["tensors"][0]["build"]["sweeps_at_rank_32"] > 0'
is_json out '[f["file_format"] for f in d["tensors"][0]["files"]] == [".tns", ".tdb"]'
is_json out 'all(f["seconds"] > 0 and f["bytes"] > 0 and f["build_seconds"] > 0 for f in d["tensors"][0]["files"])'
# Of a dense tensor every element is read, and multiplied and added 2 R times: 8 * 6 * 4 = 192 elements.
is_json out 'd["tensors"][1]["ranks"][1]["mttkrp"]["floor_operations"] == [2 * 3 * 192] * 3'
is_json out 'd["tensors"][1]["bytes"] >= 8 * 192 and d["tensors"][1]["ranks"][1]["mttkrp"]["floor_bytes"] == [
  d["tensors"][1]["bytes"] + 8 * 3 * rows for rows in (8, 6, 4)]'
is_json out 'd["tensors"][1]["files"][0]["file_format"] == ".npy" and d["tensors"][1]["build"]["sweeps_at_rank_32"] is None'
ls -d td-scratch-* >/dev/null 2>&1 && fail "scratch files stay: $(ls -d td-scratch-*)"

expect 2 "$td" bench
says err "--like or --dims"
expect 2 "$td" bench small.tns --rank 0
expect 2 "$td" bench small.tns --rank 16,two
expect 2 "$td" bench small.tns --repeats 0
expect 2 "$td" bench small.tns --what solve
says err "mttkrp"
expect 2 "$td" bench small.tns --type f16
expect 2 "$td" bench --like moon
expect 2 "$td" bench --dims 3x2 --nnz 4 --format csf
expect 3 "$td" bench missing.tns
expect 3 "$td" bench small.tns --scratch no/such/folder --repeats 1
says err "no/such/folder"
printf '# 3 2 2\n' >empty.tns
"$td" bench empty.tns >out 2>err && fail "a tensor without entries was measured"

# Each run measures the machine, which takes a sanitizer 20 seconds.
[ -z "${TD_TEST_LIGHT:-}" ] || finish

# A table with a row for each mode and one for all of them.
expect 0 "$td" bench small.tns --dims 8x6x4 --dense --rank 2 --repeats 1 --scratch .
for text in "machine   " "devices   " "medians   of 1" "small.tns" "3 x 2 x 2" "MTTKRP ms" "predicted ms" "ratio" "floor/ms" "G entries/s" \
  "iteration ms" "build     " "memory    " "read      .tns" "read      .tdb"; do
  says out "$text"
done
[ "$(grep -Ec '^ +2 +(0|1|2|all) ' out)" -eq 8 ] || fail "not a row for each of 3 modes and all: $(cat out)"

# Each of these rows has a number in each column: rank, mode, ms, predicted, ratio, floor, floor/ms, rate.
# A dense tensor has predictions, too, and a device that predicts nothing says so.
[ "$(grep -Ec '^ +2 +(0|1|2|all)( +[0-9.]+){6}$' out)" -eq 8 ] || fail "not a prediction and a floor in each row: $(cat out)"
expect 0 "$td" bench small.tns --rank 2 --repeats 1 --what mttkrp,iteration --devices reference
[ "$(grep -Ec '^ +2 +(0|1|2|all) +[0-9.]+ +- +- ' out)" -eq 4 ] || fail "a prediction from nowhere: $(cat out)"
expect 0 "$td" bench small.tns --rank 2 --repeats 1 --what mttkrp --devices reference --json
is_json out 'd["tensors"][0]["ranks"][0]["mttkrp"]["predicted_seconds"] == [None] * 3'

# What is not asked for is not measured.
expect 0 "$td" bench small.tns --what iteration --repeats 1
says out "iteration ms"
grep -Eq 'MTTKRP ms|build  |read   ' out && fail "more than iterations: $(cat out)"

# Tensors made here: the flags of generate; the type; formats and workers from the option table.
expect 0 "$td" bench --dims 20x15x10 --nnz 500 --type f32 --format blco --devices cpu:2 --shuffle --rank 5 --repeats 1 \
  --what mttkrp,build --json
is_json out 'd["tensors"][0]["name"] == "20x15x10" and d["tensors"][0]["tensor"]["type"] == "f32"'
is_json out 'd["tensors"][0]["tensor"]["format"] == "blco" and d["devices"].startswith("2 workers")'
finish
