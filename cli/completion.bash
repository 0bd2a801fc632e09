# Completion of td for bash. Verbs, flags and choices come from the program's own help, so they are those of the td that
# is installed.

# Flags of a verb, and of each flag its choices: lines such as "--init random|nvecs".
_td_flags() {
  "${COMP_WORDS[0]}" "$1" --help 2>/dev/null |
    sed -nE 's/^ +((-[a-z],)?--[a-z0-9-]+)( +([a-z0-9_|]+\|[a-z0-9_|]+|TEXT:\{[a-z0-9_,]+\}))?( .*)?$/\1 \4/p' |
    sed -E 's/^-[a-z],//; s/TEXT:\{(.*)\}/\1/; s/[|,]/ /g'
}

_td() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} verb=${COMP_WORDS[1]} choices
  if [ "$COMP_CWORD" -eq 1 ]; then
    choices=$("${COMP_WORDS[0]}" --help 2>/dev/null | sed -nE '/^Subcommands:/,/^$/s/^  ([a-z]+) .*/\1/p')
    mapfile -t COMPREPLY < <(compgen -W "$choices --help --version" -- "$word")
    return
  fi
  if [[ $before == --* ]]; then
    choices=$(_td_flags "$verb" | sed -nE "s/^$before +(.+)/\1/p")
    if [ "$before" = --devices ]; then
      choices='auto cpu reference cuda'
    fi
    if [ -n "$choices" ]; then
      mapfile -t COMPREPLY < <(compgen -W "$choices" -- "$word")
      return
    fi
  fi
  if [[ $word == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$(_td_flags "$verb" | cut -d ' ' -f 1)" -- "$word")
  else
    mapfile -t COMPREPLY < <(compgen -f -- "$word")
  fi
}

complete -o filenames -F _td td
