# README's transcript of the command is what the command prints, but for seconds, how the tensor is stored, and the machine.
readme=$(cd "$(dirname "$0")/../.." && pwd)/README.md
source "$(dirname "$0")/support.sh"

# What differs from machine to machine.
steady() {
  sed -E 's/, sorted \([^)]*\)/, stored/; /^devices /d; s/[0-9]+\.[0-9]+ s$/S s/; /^seconds /s/[0-9]+\.[0-9]+/S/g'
}

# The block of code whose first line is a command.
awk '/^```/ { inside = !inside; fresh = inside; ours = 0; next } inside && fresh { ours = /^\$ td /; fresh = 0 } ours' \
  "$readme" >transcript
grep '^\$ td ' transcript | sed 's/^\$ td //' >commands
[ "$(wc -l <commands)" -ge 2 ] || fail "README has no transcript of td"
while read -r command; do
  echo "\$ td $command"
  # shellcheck disable=SC2086 # words
  "$td" $command --devices cpu 2>err || fail "td $command: $(cat err)"
done <commands >came 2>&1
steady <transcript >expected.steady
steady <came >came.steady
diff expected.steady came.steady >differences || fail "README's transcript (<) and what td prints (>): $(cat differences)"
finish
