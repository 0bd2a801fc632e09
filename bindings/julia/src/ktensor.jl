# Kruskal tensors are Julia's own: weights and ordinary matrices. libtd gets a copy for what it computes.

"""
    KTensor(λ, factors; report=nothing, labels=nothing, names=nothing)
    KTensor(factors)

The tensor Σᵣ λ[r] · factors[1][:, r] ∘ factors[2][:, r] ∘ ..., with Float32 or Float64 factors. `report` tells of the run
that made it, see [`Report`](@ref). `labels` are for each mode the labels of its indices, or `nothing`, and `names` those of
the modes: see [`labels`](@ref).

```julia
K = KTensor([2.0, 0.5], ([1 0; 1 1.0], [1 2; 3 4; 5 6.0]))
K[1, 3] == 2 * 1 * 5 + 0.5 * 0 * 6 && Array(K)[1, 3] == K[1, 3] && size(K) == (2, 3)
```
"""
struct KTensor{T<:Real32Or64,N}
    λ::Vector{Float64}
    factors::NTuple{N,Matrix{T}}
    report::Any
    labels::NTuple{N,Union{Nothing,Vector{String}}}
    names::NTuple{N,String}
    function KTensor{T,N}(λ, factors; report=nothing, labels=nothing, names=nothing) where {T,N}
        check_columns(λ, factors)
        for (what, given) in (("labels", labels), ("names", names))
            given === nothing || length(given) == N ||
                throw(DimensionMismatch("$what for $(length(given)) modes: expected $N"))
        end
        texts = ntuple(m -> labels === nothing ? nothing : checked_labels(labels[m], size(factors[m], 1), m), N)
        return new{T,N}(λ, factors, report, texts, ntuple(m -> names === nothing ? "" : String(names[m]), N))
    end
end

function check_columns(λ, factors)
    for (m, f) in enumerate(factors)
        size(f, 2) == length(λ) ||
            throw(DimensionMismatch("factor $m has $(size(f, 2)) columns for $(length(λ)) weights"))
    end
end

KTensor(λ::AbstractVector{<:Real}, factors::Tuple{Vararg{AbstractMatrix{<:Real}}}; keywords...) =
    KTensor{all(f -> eltype(f) == Float32, factors) ? Float32 : Float64,length(factors)}(λ, factors; keywords...)
KTensor(λ::AbstractVector{<:Real}, factors::AbstractVector{<:AbstractMatrix}; keywords...) =
    KTensor(λ, Tuple(factors); keywords...)
KTensor(factors::Union{Tuple,AbstractVector}) = KTensor(ones(size(factors[1], 2)), factors)

Base.size(k::KTensor) = map(f -> size(f, 1), k.factors)
Base.size(k::KTensor, mode::Integer) = mode <= length(k.factors) ? size(k.factors[mode], 1) : 1
Base.ndims(k::KTensor{T,N}) where {T,N} = N
Base.eltype(k::KTensor{T,N}) where {T,N} = T
Base.:(==)(a::KTensor, b::KTensor) = a.λ == b.λ && a.factors == b.factors

"""
    rank(K)

The number of components.
"""
LinearAlgebra.rank(k::KTensor) = length(k.λ)

function Base.getindex(k::KTensor{T,N}, at::Vararg{Integer,N}) where {T,N}
    sum = 0.0
    for r in eachindex(k.λ)
        product = k.λ[r]
        for m in 1:N
            product *= k.factors[m][at[m], r]
        end
        sum += product
    end
    return sum
end
Base.getindex(k::KTensor{T,N}, at::CartesianIndex{N}) where {T,N} = k[Tuple(at)...]

# libtd's copy of a ktensor, whose λ may have got longer or shorter since it was made.
function KTensorHandle(k::KTensor{T,N}) where {T,N}
    check_columns(k.λ, k.factors)
    h = KTensorHandle(with_context(default_devices) do c
        new_handle(out -> LibTD.td_ktensor_create(c, N, dims_of(size(k)), rank(k), type_code(T), out))
    end)
    check(LibTD.td_ktensor_set_weights(h, k.λ))
    for (m, f) in enumerate(k.factors)
        check(LibTD.td_ktensor_set_factor(h, m - 1, f, size(f, 1), LibTD.TD_HOST))
    end
    return h
end

# The same with labels, for what keeps them: a file, and the start of a run.
function labelled_handle(k::KTensor{T,N}) where {T,N}
    h = KTensorHandle(k)
    for m in 1:N
        store_labels(LibTD.td_ktensor_set_labels, h, m, k.labels[m])
        check(LibTD.td_ktensor_set_mode_name(h, m - 1, k.names[m]))
    end
    return h
end

# Julia's copy of a ktensor of libtd.
function KTensor(h::KTensorHandle; report=nothing)
    order, components, type = Ref{Int32}(0), Ref{Int64}(0), Ref{Int32}(0)
    check(LibTD.td_ktensor_shape(h, order, C_NULL, components, type))
    dims = Vector{Int64}(undef, order[])
    check(LibTD.td_ktensor_shape(h, C_NULL, dims, C_NULL, C_NULL))
    λ = Vector{Float64}(undef, components[])
    check(LibTD.td_ktensor_get_weights(h, λ))
    factors = ntuple(Int(order[])) do m
        f = Matrix{real_type(type[])}(undef, dims[m], components[])
        check(LibTD.td_ktensor_get_factor(h, m - 1, f, dims[m], LibTD.TD_HOST))
        return f
    end
    texts = ntuple(m -> stored_labels(LibTD.td_ktensor_get_labels, h, m), length(factors))
    names = ntuple(m -> stored_name(LibTD.td_ktensor_get_mode_name, h, m), length(factors))
    return KTensor(λ, factors; report=report, labels=texts, names=names)
end

norm(k::KTensor) = (h = KTensorHandle(k); get_number(out -> LibTD.td_ktensor_norm(h, out), Float64))

"""
    dot(K, L)
    dot(K, X)

Inner product of two ktensors, or of a ktensor and a tensor (or array), of the same size.
"""
function dot(a::KTensor, b::KTensor)
    ha, hb = KTensorHandle(a), KTensorHandle(b)
    return get_number(out -> LibTD.td_ktensor_dot(ha, hb, out), Float64)
end

function dot(k::KTensor, x::Union{StoredTensor,AbstractArray}; context=default_devices)
    h, tensor = KTensorHandle(k), as_tensor(x; context=context)
    return with_context(context) do c
        get_number(out -> LibTD.td_ktensor_dot_tensor(c, h, tensor, out), Float64)
    end
end
dot(x::Union{StoredTensor,AbstractArray}, k::KTensor; context=default_devices) = dot(k, x; context=context)

"""
    fit(K, X)

How well a ktensor models a tensor: `(fit, explained, relative, residual)`, where residual = ‖X - K‖, relative =
residual / ‖X‖, fit = 1 - relative and explained = 1 - relative².

```julia
X = ones(2, 3, 4)
fit(KTensor(([1; 1.0][:, :], ones(3, 1), ones(4, 1))), X).fit == 1
```
"""
function fit(k::KTensor, x::Union{StoredTensor,AbstractArray}; context=default_devices)
    h, tensor = KTensorHandle(k), as_tensor(x; context=context)
    f, e, r, s = Ref(0.0), Ref(0.0), Ref(0.0), Ref(0.0)
    with_context(c -> check(LibTD.td_ktensor_fit(c, h, tensor, f, e, r, s)), context)
    return (fit=f[], explained=e[], relative=r[], residual=s[])
end

"""
    values_at(K, I1, I2, ...)

The model's values at the places `(I1[k], I2[k], ...)`.
"""
function values_at(k::KTensor{T,N}, indices::Vararg{AbstractVector{<:Integer},N}) where {T,N}
    columns, h = index_columns(indices, length(indices[1])), KTensorHandle(k)
    values = Vector{Float64}(undef, length(columns[1]))
    GC.@preserve columns check(LibTD.td_ktensor_values_at(h, length(values), type_code(eltype(columns[1])),
                                                          Ptr{Cvoid}[pointer(i) for i in columns], 1, values))
    return values
end

function Base.Array(k::KTensor{T,N}) where {T,N}
    a = Array{T,N}(undef, size(k))
    check(LibTD.td_ktensor_full(KTensorHandle(k), C_NULL, type_code(T), a))
    return a
end

# A changed copy, through one of libtd's functions that change a ktensor.
function changed(k::KTensor, change)
    h = KTensorHandle(k)
    check(change(h))
    plain = KTensor(h)
    return KTensor(plain.λ, plain.factors; report=k.report, labels=k.labels, names=k.names)
end

"""
    normalize(K)

The same ktensor with columns of length 1 and their lengths in the weights.
"""
normalize(k::KTensor) = changed(k, LibTD.td_ktensor_normalize)

"""
    arrange(K)

The same ktensor, normalized, with its components by descending weight.
"""
arrange(k::KTensor) = changed(k, LibTD.td_ktensor_arrange)

"""
    fixsigns(K)

The same ktensor with signs turned in pairs, so that the largest entries of columns are positive.
"""
fixsigns(k::KTensor) = changed(k, LibTD.td_ktensor_fixsigns)

"""
    score(K, L; use_weights=true)

Factor match score: `(score, match)`. 1 is a perfect match; `match[r]` is L's component for K's component r, 0 for none.

```julia
K = KTensor([3.0, 1.0], (rand(4, 2), rand(5, 2), rand(6, 2)))
L = KTensor(K.λ[[2, 1]], map(f -> f[:, [2, 1]], K.factors))
s = score(K, L)
s.score ≈ 1 && s.match == [2, 1]
```
"""
function score(a::KTensor, b::KTensor; use_weights::Bool=true)
    ha, hb = KTensorHandle(a), KTensorHandle(b)
    match = Vector{Int64}(undef, rank(a))
    value = get_number(out -> LibTD.td_ktensor_score(ha, hb, use_weights, out, match), Float64)
    return (score=value, match=match .+ 1)
end

Base.summary(io::IO, k::KTensor{T,N}) where {T,N} =
    print(io, join(size(k), '×'), " KTensor{", T, ',', N, "} of rank ", rank(k))

Base.show(io::IO, k::KTensor) = summary(io, k)

function Base.show(io::IO, ::MIME"text/plain", k::KTensor)
    summary(io, k)
    k.report === nothing || print(io, ", ", k.report)
    inner = IOContext(io, :compact => true, :limit => true, :displaysize => (10, displaysize(io)[2]))
    print(io, "\nλ: ")
    show(inner, k.λ)
    for (m, f) in enumerate(k.factors)
        print(io, "\nfactors[", m, "]: ")
        summary(io, f)
        println(io, ":")
        Base.print_matrix(inner, f)
    end
end
