# MTTKRP, for solvers of one's own.

# A matrix of T whose columns are contiguous: as it is, or a copy.
column_major(::Type{T}, f::StridedMatrix{T}) where {T} = stride(f, 1) == 1 && stride(f, 2) >= size(f, 1) ? f : Matrix(f)
column_major(::Type{T}, f::AbstractMatrix) where {T} = Matrix{T}(f)

"""
    mttkrp(X, factors, mode; context="auto")
    mttkrp!(out, X, factors, mode; context="auto")

The matricized tensor times Khatri-Rao product X₍ₙ₎ (Aₙ₊₁ ... without Aₙ), as in Kolda and Bader (2009). X is a tensor or an
array; `factors` is a tuple or vector of matrices with `size(X, m)` rows, of which `factors[mode]` is not read; or a
[`KTensor`](@ref), whose weights are not used.

```julia
X = reshape(1.0:720, 2, 3, 4, 5, 6)
mttkrp(X, [ones(n, 2) for n in size(X)], 1) == [129600 129600; 129960 129960]
```
"""
function mttkrp(x, factors, mode::Integer; context=default_devices)
    tensor = as_tensor(x; context=context)
    c_mode(mode, ndims(tensor))
    matrices = matrices_of(factors, ndims(tensor))
    other = matrices[mode == 1 ? 2 : 1]
    out = Matrix{eltype(tensor)}(undef, size(tensor, mode), size(other, 2))
    return mttkrp!(out, tensor, matrices, mode; context=context)
end

matrices_of(k::KTensor, order) = matrices_of(k.factors, order)
function matrices_of(factors, order)
    length(factors) == order || throw(DimensionMismatch("$(length(factors)) factors: expected $order"))
    return factors
end

function mttkrp!(out::StridedMatrix{T}, x, factors, mode::Integer; context=default_devices) where {T}
    tensor = as_tensor(x; context=context)
    m = c_mode(mode, ndims(tensor))
    T == eltype(tensor) || throw(ArgumentError("out is of $T: expected the tensor's $(eltype(tensor))"))
    stride(out, 1) == 1 || throw(ArgumentError("out: expected a matrix whose columns are contiguous"))
    given = matrices_of(factors, ndims(tensor))
    R = size(out, 2)
    # What is not read need not be a factor at all.
    matrices = [n == mode ? out : column_major(T, given[n]) for n in 1:ndims(tensor)]
    for (n, f) in enumerate(matrices)
        size(f) == (size(tensor, n), R) || throw(DimensionMismatch(
            "$(n == mode ? "out" : "factor $n") is $(size(f, 1))×$(size(f, 2)): expected $(size(tensor, n))×$R"))
    end
    pointers = Ptr{Cvoid}[n == mode ? C_NULL : pointer(f) for (n, f) in enumerate(matrices)]
    with_context(context) do c
        GC.@preserve matrices out check(LibTD.td_mttkrp(c, tensor, m, R, pointers, Int64[stride(f, 2) for f in matrices],
                                                       pointer(out), stride(out, 2), LibTD.TD_HOST))
    end
    return out
end
