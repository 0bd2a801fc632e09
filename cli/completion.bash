# Completion of td for bash. Verbs, flags and values are those of the td that is installed: `td complete` prints them, a line
# each of verb, flag, values ("-" none, "=" any) and help.

_td() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} verb=${COMP_WORDS[1]} words
  local table
  table=$("${COMP_WORDS[0]}" complete 2>/dev/null)
  if [ "$COMP_CWORD" -eq 1 ]; then
    words="$(awk -F '\t' '$2 == "" { print $1 }' <<<"$table") --help --version"
  elif [[ $word == -* ]]; then
    words=$(awk -F '\t' -v verb="$verb" '$1 == verb && $2 != "" { print $2 }' <<<"$table")
  else
    words=$(awk -F '\t' -v verb="$verb" -v flag="$before" '$1 == verb && $2 == flag { print $3 }' <<<"$table")
    if [ "$words" = - ] || [ "$words" = = ]; then
      words=''
    fi
  fi
  if [ -n "$words" ]; then
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
  else
    mapfile -t COMPREPLY < <(compgen -f -- "$word")
  fi
}

complete -o filenames -F _td td
