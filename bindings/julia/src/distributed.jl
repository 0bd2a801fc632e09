# Models of which each process has a block of the rows.

"""
    DistributedKTensor

A model in blocks, from [`cpals`](@ref) with `model="distributed"` in a context that processes share: of each factor every
process has some rows, and all have the weights `λ`; `report` tells of the run. In a context of one process all rows are
here. `local_rows(K, mode)` says which, `local_factor(K, mode)` copies them, `gather(K)` makes the whole
[`KTensor`](@ref). It may be the `init` of another run. `gather`, `norm`, `write_ktensor` and such a run all processes
call together.

```julia
K = cpals(ones(4, 3, 2), 1; model="distributed")
local_rows(K, 2) == 1:3 && size(local_factor(K, 2)) == (3, 1) && size(gather(K)) == (4, 3, 2)
```
"""
struct DistributedKTensor{T<:Real32Or64,N}
    λ::Vector{Float64}
    dims::NTuple{N,Int}
    report::Any
    handle::KTensorHandle
    context::Any # kept for libtd: by whose communicator the blocks meet
end

function DistributedKTensor(h::KTensorHandle, report, context)
    order, components, type = Ref{Int32}(0), Ref{Int64}(0), Ref{Int32}(0)
    check(LibTD.td_ktensor_shape(h, order, C_NULL, components, type))
    dims = Vector{Int64}(undef, order[])
    check(LibTD.td_ktensor_shape(h, C_NULL, dims, C_NULL, C_NULL))
    λ = Vector{Float64}(undef, components[])
    check(LibTD.td_ktensor_get_weights(h, λ))
    return DistributedKTensor{real_type(type[]),Int(order[])}(λ, Tuple(dims), report, h, context)
end

Base.size(k::DistributedKTensor) = k.dims
Base.ndims(k::DistributedKTensor{T,N}) where {T,N} = N
Base.eltype(k::DistributedKTensor{T,N}) where {T,N} = T
LinearAlgebra.rank(k::DistributedKTensor) = length(k.λ)
Base.show(io::IO, k::DistributedKTensor{T,N}) where {T,N} =
    print(io, join(size(k), '×'), " DistributedKTensor{", T, ',', N, "} of rank ", rank(k))

"""
    local_rows(K, mode)

The rows of a factor that are here, a range, perhaps an empty one: see [`DistributedKTensor`](@ref).
"""
function local_rows(k::DistributedKTensor, mode::Integer)
    first, count = Ref{Int64}(0), Ref{Int64}(0)
    check(LibTD.td_ktensor_local_rows(k.handle, c_mode(mode, ndims(k)), first, count))
    return first[]+1:first[]+count[]
end

"""
    local_factor(K, mode)

A copy of the rows of a factor that are here, a `Matrix`: see [`DistributedKTensor`](@ref).
"""
function local_factor(k::DistributedKTensor{T}, mode::Integer) where {T}
    a = Matrix{T}(undef, length(local_rows(k, mode)), rank(k))
    check(LibTD.td_ktensor_get_local_factor(k.handle, c_mode(mode, ndims(k)), a, max(size(a, 1), 1), LibTD.TD_HOST))
    return a
end

"""
    gather(K)

The whole [`KTensor`](@ref) of a model in blocks, on all processes, which all call this: see [`DistributedKTensor`](@ref).
"""
gather(k::DistributedKTensor) =
    KTensor(KTensorHandle(new_handle(out -> LibTD.td_ktensor_gather(k.handle, out))); report=k.report)

norm(k::DistributedKTensor) = get_number(out -> LibTD.td_ktensor_norm(k.handle, out), Float64)
