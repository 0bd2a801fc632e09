# Completion of td for fish. Verbs, flags and values are those of the td that is installed: `td complete` prints them, a line
# each of verb, flag, values ("-" none, "=" any) and help.

# The table's fields of the lines of a verb ("": of the verbs themselves) and, where it is given, of a flag.
function __td_table --argument-names td verb flag
    command $td complete 2>/dev/null | while read --delimiter \t --local of name values help
        if test -z "$verb" -a -z "$name"
            printf '%s\t%s\n' $of $help
        else if test -n "$verb" -a "$of" = "$verb" -a -n "$name"
            if test -z "$flag"
                printf '%s\t%s\n' $name $help
            else if test "$name" = "$flag"; and not contains -- $values - =
                string split ' ' -- $values
            end
        end
    end
end

function __td_candidates
    set --local before (commandline --current-process --tokenize --cut-at-cursor)
    set --local word (commandline --current-token --cut-at-cursor)
    if test (count $before) -lt 2
        __td_table $before[1]
        printf '%s\n' --help --version
    else if string match --quiet -- '-*' $word
        __td_table $before[1] $before[2]
    else
        set --local values (__td_table $before[1] $before[2] $before[-1])
        if test (count $values) -gt 0
            printf '%s\n' $values
        else
            __fish_complete_path $word
        end
    end
end

complete --command td --no-files --arguments '(__td_candidates)'
