#!/bin/bash
# Every function that td.h declares is called by the API's fuzzer; a function that is not is found.
source "$(dirname "${BASH_SOURCE[0]}")/expect.sh"
source "$root/scripts/abi.sh"

# not_fuzzed HEADER: functions that td.h declares and the fuzzer's code, without its comments, does not name.
not_fuzzed() {
  local name names code
  names=$(declared_functions "$1")
  code=$(sed 's|//.*||' tests/fuzz/fuzz_api.cpp tests/fuzz/api_*.hpp)
  [ "$(wc -l <<<"$names")" -gt 50 ] || die "found hardly any function in $1"
  for name in $names; do
    grep -qw "$name" <<<"$code" || echo "$name: not called by fuzz_api"
  done
}
all_are_fuzzed() {
  local missing
  missing=$(not_fuzzed "$1")
  echo "$missing"
  [ -z "$missing" ]
}

must_pass all_are_fuzzed "$root/include/td/td.h"
mkdir "$scratch/td"
sed 's/^TD_API int32_t td_version(void);/&\nTD_API int32_t td_moon_phase(void);/' "$root/include/td/td.h" >"$scratch/td/td.h"
must_fail 'td_moon_phase: not called by fuzz_api' all_are_fuzzed "$scratch/td/td.h"
