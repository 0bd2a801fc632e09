#!/bin/bash
# Reads from the library and the command how they were compiled and linked.
# usage: hardened.sh BUILD_TYPE FILE...
set -euo pipefail
type=$1
shift
if ! command -v readelf >/dev/null; then
  echo 'no readelf on this machine'
  exit 77
fi
status=0
complain() {
  echo "$file: $1"
  status=1
}
for file in "$@"; do
  segments=$(readelf -lW "$file")
  dynamic=$(readelf -dW "$file")
  grep -q GNU_RELRO <<<"$segments" || complain 'relocations stay writable: no GNU_RELRO'
  grep -qE 'BIND_NOW|FLAGS.* NOW' <<<"$dynamic" || complain 'functions are looked up late: no BIND_NOW'
  grep -qE 'GNU_STACK.* RW ' <<<"$segments" || complain 'the stack is executable, or nothing says that it is not'
  if grep -qE 'LOAD.* RWE ' <<<"$segments"; then complain 'memory that is writable and executable'; fi
  if grep -q TEXTREL <<<"$dynamic"; then complain 'code is changed by relocations: TEXTREL'; fi
  if [ "$type" = Release ]; then
    symbols=$(readelf --dyn-syms -W "$file")
    grep -q '__stack_chk_fail' <<<"$symbols" || complain 'no stack protector: __stack_chk_fail is not used'
    grep -qE '_chk(@|$)' <<<"$(grep -v __stack_chk <<<"$symbols")" || complain 'no checked functions: _FORTIFY_SOURCE is not at work'
  fi
done
exit $status
