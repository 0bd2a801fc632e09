# Keywords are options of libtd, found in its table at run time: a new option needs no new package.

"""
    option_table()

Every option of the loaded library, as a vector of named tuples `(scope, name, type, default, smallest, largest, choices,
help)` of text. Those of scope "cpals" are keywords of [`cpals`](@ref), those of "tensor" of [`SparseTensor`](@ref), and
so on.

```julia
[o.name for o in option_table() if o.scope == "cpals"]
```
"""
function option_table()
    return map(0:LibTD.td_option_count()-1) do i
        line = get_text((buf, cap, needed) -> LibTD.td_option_describe(i, buf, cap, needed))
        fields = split(line, '\t')
        return (scope=String(fields[1]), name=String(fields[2]), type=String(fields[3]), default=String(fields[4]),
                smallest=String(fields[5]), largest=String(fields[6]), choices=String(fields[7]),
                help=String(fields[8]))
    end
end

set!(o::OptionsHandle, key, v::Integer) = check(LibTD.td_options_set_i64(o, key, v))
set!(o::OptionsHandle, key, v::Real) = check(LibTD.td_options_set_f64(o, key, v))
set!(o::OptionsHandle, key, v::Union{AbstractString,Symbol}) = check(LibTD.td_options_set_str(o, key, string(v)))
# Lists are of modes, which count from 0 in libtd.
set!(o::OptionsHandle, key, v::Union{AbstractVector{<:Integer},Tuple{Vararg{Integer}}}) =
    check(LibTD.td_options_set_str(o, key, join((m - 1 for m in v), ',')))

# Lists of modes among the keywords, which count from 1, are looked at here: libtd would speak of them as counted from 0.
function check_modes(keywords, order)
    for key in (:mode_order, :fixed_modes, :line_modes)
        modes = get(keywords, key, nothing)
        modes isa Union{AbstractVector{<:Integer},Tuple{Vararg{Integer}}} || continue
        for m in modes
            1 <= m <= order || throw(ArgumentError("$key: mode $m, expected 1 to $order"))
        end
        allunique(modes) || throw(ArgumentError("$key = $modes: a mode is there twice"))
        key === :mode_order && !isempty(modes) && length(modes) < order &&
            throw(ArgumentError("$key = $modes: expected each of 1 to $order once"))
    end
end

# Options from keywords, of which nothing means the default. One that exists and does nothing here is refused too: libtd would leave it alone.
function options_from(keywords, scopes...)
    options = OptionsHandle()
    isempty(keywords) && return options
    scope_of = Dict(o.name => o.scope for o in option_table())
    for (key, value) in pairs(keywords)
        scope = get(scope_of, string(key), nothing)
        scope === nothing || scope in scopes ||
            throw(ArgumentError("$key is an option of scope \"$scope\"; it means nothing here"))
        value === nothing && scope !== nothing || set!(options, string(key), something(value, ""))
    end
    return options
end
