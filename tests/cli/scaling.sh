# docs/scaling.md shows a plan of a thousand processes: its command prints the lines that the page has.
source "$(dirname "$0")/support.sh"
page=$(dirname "$0")/../../docs/scaling.md
block=$(sed -n '/^```console/,/^```$/p' "$page" | sed '/^```/d')
command=$(head -n 1 <<<"$block")
[[ $command == '$ td plan '*' --processes 1000 '* ]] || fail "the page begins with: $command"
read -ra arguments <<<"${command#'$ td '}"
expect 0 "$td" "${arguments[@]}"
lines=0
while IFS= read -r line; do
  grep -qxF -- "$line" out || { fail "the page has, but the command does not print: $line"; cat out; }
  lines=$((lines + 1))
done < <(tail -n +2 <<<"$block")
[ "$lines" -ge 6 ] || fail "the page shows $lines lines of the plan, expected 6 or more"

# What the text says of slower links.
expect 0 "$td" "${arguments[@]}" --link-rate 1.25e9 --json
is_json out 'abs(d["seconds"]["exchange"] - 16.5) < 0.05 and d["processes"] == 1000 and d["nnz"] == 10**12'
is_json out 'len(d["scaling_seconds"]) == 17 and d["host_bytes"]["exchanged"] > 2e10 and d["scales_to"] < 4096'

# A file is partitioned as processes would.
expect 0 "$td" generate x.tdb --dims 300x200x100 --nnz 20000 --skew 0.4
expect 0 "$td" plan x.tdb --rank 8 --processes 8 --json
is_json out 'd["processes"] == 8 and d["host_bytes"]["exchanged"] > 0 and d["scaling_seconds"] == [] and d["exchange_calls"] == 30'
expect 2 "$td" plan x.tdb --rank 8 --processes 8 --check
expect 3 "$td" plan --dims 300x200x100 --nnz 20000 --rank 8 --processes 8 --workers 2
says err "each process is one worker"
finish
