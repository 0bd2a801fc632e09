# td selftest on every backend of a machine without a GPU, and td info.
source "$(dirname "$0")/support.sh"
for devices in auto cpu cpu:2 reference; do
  expect 0 "$td" selftest --devices $devices
  grep -q '^FAIL' out && fail "on $devices: $(cat out)"
  [ "$(grep -c '^PASS' out)" -ge 7 ] || fail "on $devices: $(cat out)"
done
expect 0 "$td" selftest --json
is_json out 'all(c["passed"] and c["source"] for c in d)'
expect 0 "$td" info
says out "cpu"
expect 0 "$td" info --json
is_json out 'd["features"]["reference"] and d["features"]["cpu"] and d["devices"]["cpu"]'
finish
