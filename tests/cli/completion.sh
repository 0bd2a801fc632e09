# Completion offers the program's own verbs, flags and choices.
root=$(cd "$(dirname "$0")/../.." && pwd)
source "$root/tests/cli/support.sh"
source "$root/cli/completion.bash"

# offers WORD... : what is offered for the last word of the line, as one line in alphabetical order.
offers() {
  COMP_WORDS=("$td" "$@")
  COMP_CWORD=$#
  COMPREPLY=()
  _td
  printf '%s\n' "${COMPREPLY[@]}" | sort | tr '\n' ' '
}

# same WHAT CAME EXPECTED
same() { [ "$2" = "$3" ] || fail "$1: '$2', expected '$3'"; }

touch x.tns
same "verbs" "$(offers c)" "check convert cpd "
same "flags" "$(offers cpd --max)" "--max-iters --max-seconds "
same "flags with a short form" "$(offers cpd x.tns --ra)" "--rank "
same "choices of an option" "$(offers cpd --init '')" "nvecs random "
same "choices of a list" "$(offers bench --what b)" "build "
same "choices of a flag" "$(offers convert --as d)" "dense "
same "devices" "$(offers cpd --devices c)" "cpu cuda "
same "files" "$(offers cpd x)" "x.tns "
same "files for an option that takes one" "$(offers cpd --start x)" "x.tns "
for verb in $(offers ''); do
  case $verb in --*) ;; *) [ -n "$(offers "$verb" --)" ] || fail "no flags of $verb" ;; esac
done
finish
