# What a run did.

"""
    Report

What a run did: `report.fit`, `report.iterations`, `report.stop_reason`, `report.seconds`, ... by the names of td.h, also
as `report["seconds.mttkrp"]`; a value per iteration with [`series`](@ref).

```julia
K = cpals(rand(5, 4, 3), 2; max_iters=4, tol=0)
K.report.iterations == 4 && length(series(K.report, :fit)) == 4
```
"""
mutable struct Report <: Handle
    ptr::Ptr{Cvoid}
    Report(ptr::Ptr{Cvoid}) = finalizer(r -> LibTD.td_report_destroy(r.ptr), new(ptr))
end

Base.unsafe_convert(::Type{Ptr{Cvoid}}, r::Report) = getfield(r, :ptr)

Base.getindex(r::Report, key::Union{Symbol,AbstractString}) =
    named(r, string(key), LibTD.td_report_get_i64, LibTD.td_report_get_f64, LibTD.td_report_get_str)
Base.getproperty(r::Report, key::Symbol) = key === :ptr ? getfield(r, :ptr) : r[key]

"""
    series(report, name)

A value per iteration: `:fit`, `:fit_error`, `:fit_change`, `:residual`, `:seconds`; `:effective_rank` and `:condition` have
one per solve and `:mttkrp_seconds` one per mode and iteration.
"""
series(r::Report, key::Union{Symbol,AbstractString}) = series(r, key, LibTD.td_report_get_series)

# By one of libtd's functions for them.
function series(handle, key, get_series)
    n = Ref{Int64}(0)
    check(get_series(handle, string(key), C_NULL, 0, n))
    values = Vector{Float64}(undef, n[])
    check(get_series(handle, string(key), values, length(values), n))
    return values
end

Base.show(io::IO, r::Report) =
    print(io, "fit ", round(r.fit; digits=6), " after ", r.iterations, " iterations, stopped by ", r.stop_reason,
          isempty(r.creeping) ? "" : ": ", r.creeping)
