# What td would do, told before it is done.

"""
    Plan

What td would do with a tensor at a rank, what that takes, and why: made by [`plan`](@ref), shown as text.

`p.format`, `p["format.why"]`, `p["host_bytes.peak"]`, `p["seconds.iteration"]`, ... are facts by the names of td.h; those
that are 0 or 1 too, as in `p.fits == 1`. `p.modes` has a named tuple for each mode: `dim`, `rows` (how many take part),
`kernel`, `conflicts`, `seconds`, `imbalance`, `split_rows`, and `load`, the stored entries that each worker works on.
"""
mutable struct Plan <: Handle
    ptr::Ptr{Cvoid}
    Plan(ptr::Ptr{Cvoid}) = finalizer(p -> LibTD.td_plan_destroy(getfield(p, :ptr)), new(ptr))
end

Base.unsafe_convert(::Type{Ptr{Cvoid}}, p::Plan) = getfield(p, :ptr)

"""
    plan(X, R; context="auto", keywords...)
    plan(dims, R; nnz, type=Float64, ...)
    plan(path, R; ...)

What [`cpals`](@ref) of rank R would do: with a tensor that there is; with a dense array, which is not copied; with a tensor of
these dims, sparse with `nnz` entries or dense without `nnz`; or with the tensor in a file. Nothing is allocated that grows
with the entries or the rank, but that a file is read.

Keywords are options of scopes "plan", "cpals" and, where the tensor is not there yet, "tensor"; for a file "read" too. A plan
of what does not fit can be made, and says so.

```julia
p = plan((3000, 2000, 1000), 16; nnz=10^6, format="blco", context="cpu")
p.format == "blco" && p["format.why"] == "asked for by option 'format'" && p.modes[2].dim == 2000
```
"""
function plan(x::StoredTensor, R::Integer; context=default_devices, keywords...)
    options = options_from(keywords, "plan", "cpals")
    return with_context(c -> Plan(new_handle(out -> LibTD.td_plan_create_for_tensor(c, x, R, options, out))), context)
end

plan(x::AbstractArray, R::Integer; keywords...) = refuse_values(x, "array")
plan(x::AbstractArray{T}, R::Integer; keywords...) where {T<:Real} =
    plan(size(x), R; type=T <: Real32Or64 ? T : Float64, keywords...)

function plan(dims::Tuple{Vararg{Integer}}, R::Integer; nnz=nothing, type=Float64, context=default_devices, keywords...)
    options = options_from(keywords, "plan", "cpals", "tensor")
    d, code = dims_of(dims), type_code(type)
    return with_context(context) do c
        Plan(new_handle(out -> nnz === nothing ?
                               LibTD.td_plan_create_dense(c, length(d), d, code, R, options, out) :
                               LibTD.td_plan_create(c, length(d), d, nnz, code, R, options, out)))
    end
end

function plan(path::AbstractString, R::Integer; context=default_devices, keywords...)
    options = options_from(keywords, "plan", "cpals", "tensor", "read")
    return with_context(c -> Plan(new_handle(out -> LibTD.td_plan_read(c, path, R, options, out))), context)
end

Base.getindex(p::Plan, key::Union{Symbol,AbstractString}) =
    named(p, string(key), LibTD.td_plan_get_i64, LibTD.td_plan_get_f64, LibTD.td_plan_get_str)
Base.getproperty(p::Plan, key::Symbol) = key === :ptr ? getfield(p, :ptr) : key === :modes ? modes(p) : p[key]

"""
    series(plan, name)

A value per mode: `:dims`, `:rows`, `:mttkrp_seconds`, `:imbalance`, `:imbalance_unsplit`, `:split_rows`; `:load` has one per
worker and mode. The same by modes is in `plan.modes`.
"""
series(p::Plan, key::Union{Symbol,AbstractString}) = series(p, key, LibTD.td_plan_get_series)

function modes(p::Plan)
    dims, rows, seconds = series(p, :dims), series(p, :rows), series(p, :mttkrp_seconds)
    imbalance, split_rows, load = series(p, :imbalance), series(p, :split_rows), series(p, :load)
    workers = length(load) ÷ length(dims)
    return map(1:length(dims)) do m
        (dim=Int(dims[m]), rows=Int(rows[m]), kernel=p["kernel.$(m - 1)"], conflicts=p["conflicts.$(m - 1)"],
         seconds=seconds[m], imbalance=imbalance[m], split_rows=Int(split_rows[m]),
         load=load[(m - 1) * workers + 1:m * workers])
    end
end

Base.show(io::IO, p::Plan) = print(io, get_text((buf, cap, needed) -> LibTD.td_plan_describe(p, buf, cap, needed)))
