#!/bin/bash
# scripts/check_abi passes on the built library and fails when the library, the header and the baseline disagree.
# usage: abi.sh LIBTD
source "$(dirname "${BASH_SOURCE[0]}")/expect.sh"
library=$1
mkdir -p "$scratch/td"
header=$scratch/td/td.h
baseline=$scratch/abi

# Each case starts from the true header and baseline.
restore() {
  cp "$root/include/td/td.h" "$header"
  rm -rf "$baseline"
  cp -r "$root/c_api/abi" "$baseline"
}
check=("$root/scripts/check_abi" "$library" "$header" "$baseline")

restore
must_pass "${check[@]}"

sed -i 's/^TD_API int32_t td_version(void);//' "$header"
must_fail 'td_version: exported by the library, not declared' "${check[@]}"

restore
sed -i 's/^TD_API int32_t td_version(void);/&\nTD_API int32_t td_moon_phase(void);/' "$header"
must_fail 'td_moon_phase: declared in' "${check[@]}"

restore
sed -i '/^td_cpals$/d' "$baseline/symbols.txt"
must_fail 'td_cpals: exported by the library, not yet in' "${check[@]}"

restore
sort -o "$baseline/symbols.txt" - "$baseline/symbols.txt" <<<td_gone
must_fail 'td_gone: in' "${check[@]}"

restore
sed -i 's/TD_ERR_IO = -50/TD_ERR_IO = -51/' "$header"
must_fail 'TD_ERR_IO = -50: in' "${check[@]}"

# A library of one function whose name is not ours.
restore
echo 'int helper(void) { return 0; }' | cc -shared -fPIC -x c -o "$scratch/libtd.so" -
must_fail 'helper: exported, and its name does not begin with td_' \
  "$root/scripts/check_abi" "$scratch/libtd.so" "$header" "$baseline"

# Types are compared where the library has debug information: here td_version gives another type than the baseline's.
if command -v abidw >/dev/null && readelf -SW "$library" | grep -w '\.debug_info' >/dev/null; then
  restore
  echo '#include <stdint.h>
int64_t td_version(void);
int64_t td_version(void) { return 0; }' | cc -g -shared -fPIC -x c -o "$scratch/libtd.so" -
  must_fail "return type changed" "$root/scripts/check_abi" "$scratch/libtd.so" "$header" "$baseline"
fi
