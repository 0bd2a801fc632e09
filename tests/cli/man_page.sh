# The man page says what the program says: every option, verb and exit code, no more and no less.
root=$(cd "$(dirname "$0")/../.." && pwd)
source "$root/tests/cli/support.sh"
command -v python3 >/dev/null || skip "no python3"
expect 0 python3 "$root/scripts/man_page" "$td"
cmp -s out "$root/cli/td.1.in" || fail "cli/td.1.in is not what scripts/man_page writes: $(diff out "$root/cli/td.1.in" | head -5)"
if command -v man >/dev/null; then
  LC_ALL=C.UTF-8 MANROFFSEQ='' MANWIDTH=100 man --warnings=all -l "$root/cli/td.1.in" >page 2>err || fail "man refuses the page"
  [ ! -s err ] || fail "man warns: $(head -3 err)"
  says page "--max-iters N"
fi
finish
