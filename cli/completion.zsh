#compdef td
# Completion of td for zsh. Verbs, flags and values are those of the td that is installed: `td complete` prints them, a line
# each of verb, flag, values ("-" none, "=" any) and help.

_td() {
  local verb=$words[2] before=$words[CURRENT-1] line values
  local -a fields verbs flags
  for line in "${(@f)$($words[1] complete 2>/dev/null)}"; do
    fields=("${(@s:	:)line}")
    if [[ -z $fields[2] ]]; then
      verbs+=("$fields[1]:${fields[4]//:/\\:}")
    elif [[ $fields[1] == $verb ]]; then
      flags+=("$fields[2]:${fields[4]//:/\\:}")
      [[ $fields[2] == $before ]] && values=$fields[3]
    fi
  done
  if (( CURRENT == 2 )); then
    _describe verb verbs
    compadd -- --help --version
  elif [[ $PREFIX == -* ]]; then
    _describe flag flags
  elif [[ -n $values && $values != [-=] ]]; then
    compadd -- ${=values}
  else
    _files
  fi
}

if [[ $funcstack[1] == _td ]]; then # loaded by compinit, as the function itself
  _td "$@"
else
  compdef _td td
fi
