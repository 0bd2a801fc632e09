# Tensors that libtd holds.

abstract type StoredTensor{T,N} <: Handle end

"""
    SparseTensor(I1, I2, ..., vals; dims, context="auto", keywords...)

A sparse tensor with entry `vals[k]` at `(I1[k], I2[k], ...)`, indices from 1. `dims` is the largest index of each mode if
it is not given. Entries at the same place are summed (or `duplicates="error"`). Float32 values stay Float32, others
become Float64. Keywords: options of scope "tensor".

```julia
X = SparseTensor([1, 2, 2], [1, 3, 1], [1, 4, 4], [1.0, 2.0, 3.0]; dims=(2, 3, 4))
size(X) == (2, 3, 4) && nnz(X) == 3 && norm(X) ≈ sqrt(14)
```
"""
mutable struct SparseTensor{T<:Real32Or64,N} <: StoredTensor{T,N}
    ptr::Ptr{Cvoid}
    dims::NTuple{N,Int}
    SparseTensor{T,N}(ptr::Ptr{Cvoid}, dims) where {T,N} = finalizer(destroy_tensor, new{T,N}(ptr, dims))
end

"""
    DenseTensor(A; borrow=false, context="auto")
    DenseTensor(A; dims, first, context)

A dense tensor: a copy of an array of any kind. An `Array`, and any view of one with strides, is read where it is. Calls
that take a tensor take the array itself as well; this saves a copy where the same one is used again.

With `borrow=true` there is no copy: the tensor works on `A`, a strided array of Float32 or Float64, and keeps it from
being collected. Do not change `A` as long as the tensor is used.

In a context that processes share `A` is one process's block of an array of size `dims`, whose element at `first` is the
block's first; left out they are the block's own size, and the beginning.

```julia
A = rand(4, 3, 2)
X = DenseTensor(view(A, 1:2, :, :))
Array(X) == A[1:2, :, :]
```
"""
mutable struct DenseTensor{T<:Real32Or64,N} <: StoredTensor{T,N}
    ptr::Ptr{Cvoid}
    dims::NTuple{N,Int}
    borrowed::Any # the array, as long as the tensor works on it
    DenseTensor{T,N}(ptr::Ptr{Cvoid}, dims, borrowed=nothing) where {T,N} =
        finalizer(destroy_tensor, new{T,N}(ptr, dims, borrowed))
end

destroy_tensor(x) = LibTD.td_tensor_destroy(x.ptr)

as_indices(i::Union{Vector{Int32},Vector{Int64}}) = i
as_indices(i::AbstractVector{Int32}) = Vector(i)
as_indices(i::AbstractVector{<:Integer}) = Vector{Int64}(i)
as_indices(i::AbstractVector) = throw(ArgumentError("indices of type $(eltype(i)): expected integers"))
as_values(v::Union{Vector{Float32},Vector{Float64}}) = v
as_values(v::AbstractVector{Float32}) = Vector(v)
as_values(v::AbstractVector{<:Real}) = Vector{Float64}(v)
as_values(v::AbstractVector) = refuse_values(v, "values")

# What came where real numbers were expected, and what would make them of it.
function refuse_values(a::AbstractArray, name)
    missings = count(ismissing, a)
    hint = missings > 0 ? "; $missings of them are missing, which coalesce.(x, 0) would make 0" :
           all(v -> v isa Real, a) ? "; all are real, so Float64.(x) makes an array of numbers of it" : ""
    throw(ArgumentError("$name of type $(eltype(a)): expected real numbers$hint"))
end

# Index vectors of one type, all of length n.
function index_columns(columns, n)
    same = map(as_indices, columns)
    if !all(c -> eltype(c) == eltype(same[1]), same)
        same = map(c -> Vector{Int64}(c), same)
    end
    for (m, c) in enumerate(same)
        length(c) == n || throw(DimensionMismatch("$(length(c)) indices for mode $m: expected $n"))
    end
    return same
end

function SparseTensor(arguments::AbstractVector...; dims=nothing, context=default_devices, keywords...)
    order = length(arguments) - 1
    order >= 2 || throw(ArgumentError("SparseTensor(I1, I2, ..., vals): expected two vectors of indices or more"))
    values = as_values(arguments[end])
    columns = index_columns(arguments[1:end-1], length(values))
    shape = dims === nothing ? map(c -> isempty(c) ? 0 : Int(maximum(c)), columns) : Tuple(Int.(dims))
    length(shape) == order || throw(DimensionMismatch("$(length(shape)) dims for $order vectors of indices"))
    options = options_from(keywords, "tensor")
    ptr = with_context(context) do c
        GC.@preserve columns new_handle(out -> LibTD.td_tensor_create(
            c, order, dims_of(shape), length(values), type_code(eltype(columns[1])),
            Ptr{Cvoid}[pointer(i) for i in columns], 1, type_code(eltype(values)), values, LibTD.TD_HOST, options, out))
    end
    return SparseTensor{eltype(values),order}(ptr, shape)
end

const default_devices = "auto"

# What td can read where it is: memory with one stride a mode.
is_strided(a::StridedArray) = true
is_strided(a::PermutedDimsArray) = is_strided(parent(a))
is_strided(a) = false

in_place(a::Union{AbstractArray{Float32},AbstractArray{Float64}}) = is_strided(a) ? a : Array(a)
in_place(a::AbstractArray{<:Real}) = Array{Float64}(a)
in_place(a::AbstractArray) = refuse_values(a, "array")

function DenseTensor(array::AbstractArray; borrow::Bool=false, context=default_devices, dims=nothing, first=nothing)
    a = in_place(array)
    dims === nothing && first === nothing || return dense_block(a, something(dims, size(a)), first, borrow, context)
    !borrow || a === array ||
        throw(ArgumentError("borrow=true of a $(typeof(array)): expected a strided array of Float32 or Float64"))
    options = options_from(pairs((borrow=Int(borrow),)), "tensor")
    ptr = with_context(context) do c
        GC.@preserve a new_handle(out -> LibTD.td_tensor_create_dense(
            c, ndims(a), dims_of(size(a)), dims_of(strides(a)), type_code(eltype(a)), pointer(a), LibTD.TD_HOST,
            options, out))
    end
    return DenseTensor{eltype(a),ndims(a)}(ptr, size(a), borrow ? a : nothing)
end

function dense_block(a, dims, first, borrow, context)
    offset = first === nothing ? ntuple(m -> 0, ndims(a)) : Tuple(first) .- 1
    for (name, numbers) in (("dims", dims), ("first", offset))
        length(numbers) == ndims(a) ||
            throw(ArgumentError("$name: $(length(numbers)) numbers, expected $(ndims(a)), one for each mode of the block"))
    end
    options = options_from(pairs((borrow=Int(borrow),)), "tensor")
    ptr = with_context(context) do c
        GC.@preserve a new_handle(out -> LibTD.td_tensor_create_dense_block(
            c, ndims(a), dims_of(Tuple(dims)), dims_of(offset), dims_of(size(a)), dims_of(strides(a)),
            type_code(eltype(a)), pointer(a), LibTD.TD_HOST, options, out))
    end
    return DenseTensor{eltype(a),ndims(a)}(ptr, Tuple(Int.(dims)))
end

as_tensor(x::StoredTensor; context=default_devices) = x
as_tensor(x::AbstractArray; context=default_devices) = DenseTensor(x; context=context)

Base.size(x::StoredTensor) = x.dims
Base.size(x::StoredTensor, mode::Integer) = mode <= length(x.dims) ? x.dims[mode] : 1
Base.ndims(x::StoredTensor{T,N}) where {T,N} = N
Base.eltype(x::StoredTensor{T,N}) where {T,N} = T

# A number that libtd writes through its last argument.
function get_number(call, ::Type{T}) where {T}
    out = Ref{T}(zero(T))
    check(call(out))
    return out[]
end

nnz(x::StoredTensor) = Int(get_number(out -> LibTD.td_tensor_nnz(x, out), Int64))
norm(x::StoredTensor) = get_number(out -> LibTD.td_tensor_norm(x, out), Float64)

"""
    x[:name]

A fact about a tensor by its name in td.h: whole numbers (`:sparse`, `:duplicates`, `:zeros`, `:index_bits`, `:bytes`),
real numbers (`:norm`, `:min`, `:max`, `:sum`) and texts (`:format`, `:source`).
"""
Base.getindex(x::StoredTensor, key::Union{Symbol,AbstractString}) =
    named(x, string(key), LibTD.td_tensor_get_i64, LibTD.td_tensor_get_f64, LibTD.td_tensor_get_str)

# A fact by name, whichever of the three kinds it is.
function named(handle, key, get_i64, get_f64, get_str)
    whole, number = Ref{Int64}(0), Ref{Float64}(0)
    status = get_i64(handle, key, whole)
    status == LibTD.TD_ERR_OPTION_UNKNOWN || (check(status); return Int(whole[]))
    status = get_f64(handle, key, number)
    status == LibTD.TD_ERR_OPTION_UNKNOWN || (check(status); return number[])
    return get_text((buf, cap, needed) -> get_str(handle, key, buf, cap, needed))
end

function Base.Array(x::StoredTensor{T,N}) where {T,N}
    a = Array{T,N}(undef, x.dims)
    check(LibTD.td_tensor_get_dense(x, C_NULL, type_code(T), a))
    return a
end

"""
    findnz(x::SparseTensor)

The stored entries `(I1, I2, ..., vals)`, in libtd's order.
"""
function findnz(x::SparseTensor{T,N}) where {T,N}
    n = nnz(x)
    columns = ntuple(_ -> Vector{Int64}(undef, n), N)
    values = Vector{T}(undef, n)
    GC.@preserve columns check(LibTD.td_tensor_get_entries(x, LibTD.TD_I64, Ptr{Cvoid}[pointer(i) for i in columns], 1,
                                                           type_code(T), values))
    return (columns..., values)
end

"""
    slice_counts(x, mode)

Stored entries in each slice of a mode.
"""
function slice_counts(x::StoredTensor, mode::Integer)
    c = c_mode(mode, ndims(x))
    counts = Vector{Int64}(undef, size(x, mode))
    check(LibTD.td_tensor_slice_counts(x, c, counts))
    return counts
end

Base.summary(io::IO, x::StoredTensor{T,N}) where {T,N} =
    print(io, join(size(x), '×'), ' ', x isa SparseTensor ? "SparseTensor" : "DenseTensor", '{', T, ',', N, '}')
Base.show(io::IO, x::SparseTensor) = (summary(io, x); print(io, " with ", nnz(x), " stored entries"))
Base.show(io::IO, x::DenseTensor) = summary(io, x)
Base.show(io::IO, ::MIME"text/plain", x::StoredTensor) =
    (summary(io, x); print(io, ": ", get_text((buf, cap, needed) -> LibTD.td_tensor_describe(x, buf, cap, needed))))
