# Sourced by the tests of the td program, with its arguments: the program, and the folder of test data.
td=$1 data=$2
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0

fail() {
  echo "FAILED: $*"
  failed=1
}

# expect CODE COMMAND...: runs it; what it prints goes to the files out and err.
expect() {
  local wanted=$1 came=0
  shift
  "$@" >out 2>err || came=$?
  if [ "$came" -ne "$wanted" ]; then
    fail "exit code $came, expected $wanted, of: $*"
    sed 's/^/  out: /' out | head -20
    sed 's/^/  err: /' err | head -20
  fi
}

# says FILE TEXT: the file contains the text.
says() { grep -qF -- "$2" "$1" || { fail "no '$2' in $1:"; sed 's/^/  /' "$1" | head -30; }; }

# is_json FILE [PYTHON]: the file is one JSON document d, for which the Python expression is true.
is_json() {
  command -v python3 >/dev/null || return 0 # then only the program's own word is taken
  python3 -c 'import json, sys
d = json.load(open(sys.argv[1]))
sys.exit(0 if eval(sys.argv[2]) else 1)' "$1" "${2:-True}" || fail "$1 is not JSON with ${2:-anything}"
}

# A tensor of 3 x 2 x 2 by hand: norm sqrt(1 + 4 + 9 + 16).
small() {
  printf '1 1 1 1.0\n2 2 1 -2.0\n3 1 2 3.0\n1 2 2 4.0\n' >small.tns
}

skip() {
  echo "skipped: $*"
  exit 77
}

finish() { exit "$failed"; }
