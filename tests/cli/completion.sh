# Completion offers the program's own verbs, flags and choices, in each shell that is there.
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

# zsh_offers WORD... : the same by zsh's function, whose ways to offer words print them here.
zsh_offers() {
  # shellcheck disable=SC2016 # expanded by zsh
  zsh -f -c 'compdef() { :; }
    compadd() { [[ $1 == -- ]] && shift; print -l -- "$@" }
    _describe() { print -l -- "${(@)${(P)2}%%:*}" }
    _files() { print -l -- *(N) }
    source "$1"; shift
    words=("$@") CURRENT=$# PREFIX=${@[-1]}
    offered=("${(@f)$(_td)}")
    print -l -- "${(@M)offered:#$PREFIX*}"' zsh "$root/cli/completion.zsh" "$td" "$@" 2>&1 | sort | tr '\n' ' '
}

# fish_offers WORD... : what fish itself would offer. It knows a command by its name.
fish_offers() {
  PATH=$(dirname "$td"):$PATH fish --no-config -c 'source $argv[1]; complete --do-complete "$argv[2]"' \
    "$root/cli/completion.fish" "td $*" 2>&1 | cut -f 1 | sort | tr '\n' ' '
}

touch x.tns
try_all() { # SHELL FUNCTION
  same "$1: verbs" "$($2 c)" "check convert cpd "
  same "$1: flags" "$($2 cpd --max)" "--max-iters --max-seconds "
  same "$1: flags with a short form" "$($2 cpd x.tns --ra)" "--rank "
  same "$1: choices of an option" "$($2 cpd --init '')" "nvecs random "
  same "$1: choices of a list" "$($2 bench --what b)" "build "
  same "$1: choices of a flag" "$($2 convert --as d)" "dense "
  same "$1: devices" "$($2 cpd --devices c)" "cpu cuda "
  same "$1: files" "$($2 cpd x)" "x.tns "
  same "$1: files for an option that takes one" "$($2 cpd --start x)" "x.tns "
  for verb in $($2 ''); do
    case $verb in --*) ;; *) [ -n "$($2 "$verb" --)" ] || fail "$1: no flags of $verb" ;; esac
  done
}
try_all bash offers
for shell in zsh fish; do
  if command -v $shell >/dev/null; then
    try_all $shell ${shell}_offers
  else
    echo "not seen: $shell is not installed"
  fi
done
finish
