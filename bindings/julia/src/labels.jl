# Names of modes and labels of indices, of tensors and models.

const ModeLabels = Union{Nothing,Vector{String}}

function stored_labels(get, handle, mode)
    needed = Ref{Int64}(0)
    check(get(handle, mode - 1, Ptr{UInt8}(C_NULL), 0, needed))
    needed[] == 0 && return nothing
    buffer = Vector{UInt8}(undef, needed[])
    check(get(handle, mode - 1, buffer, length(buffer), needed))
    return String.(split(String(buffer[1:end-1]), '\0'))
end

function store_labels(set, handle, mode, labels)
    text = labels === nothing ? UInt8[] : Vector{UInt8}(join(labels, '\0') * '\0')
    check(set(handle, mode - 1, text, length(text)))
    return nothing
end

stored_name(get, handle, mode) = get_text((buf, cap, needed) -> get(handle, mode - 1, buf, cap, needed))

checked_labels(::Nothing, dim, mode) = nothing
function checked_labels(labels, dim, mode)
    texts = String[string(l) for l in labels]
    length(texts) == dim || throw(DimensionMismatch("$(length(texts)) labels for mode $mode: expected $dim"))
    any(t -> occursin('\0', t), texts) && throw(ArgumentError("a label of mode $mode holds a NUL"))
    return texts
end

"""
    labels(X)
    labels(X, mode)
    labels(K)

For each mode, or for one, the labels of its indices as a `Vector{String}`, or `nothing`: the names in a table's column, see
[`read_tensor`](@ref), or what [`set_labels!`](@ref) was given. A model has those of the tensor that it was fitted to.

```julia
X = set_labels!(SparseTensor([1, 2], [1, 2], [1.0, 2.0]), 1, ["ann", "bob"])
labels(X) == (["ann", "bob"], nothing) && labels(cpals(X, 1), 1) == ["ann", "bob"]
```
"""
labels(x::StoredTensor{T,N}, mode::Integer) where {T,N} =
    (c_mode(mode, N); stored_labels(LibTD.td_tensor_get_labels, x, mode))
labels(x::StoredTensor{T,N}) where {T,N} = ntuple(m -> labels(x, m), N)
labels(k::KTensor) = k.labels
labels(k::KTensor, mode::Integer) = k.labels[mode]

"""
    mode_names(X)
    mode_names(K)

The names of the modes, such as those of a table's columns; empty for a mode that has none.
"""
mode_names(x::StoredTensor{T,N}) where {T,N} = ntuple(m -> stored_name(LibTD.td_tensor_get_mode_name, x, m), N)
mode_names(k::KTensor) = k.names

"""
    set_labels!(X, mode, labels)

Labels the indices of a mode; `nothing` takes the labels away. The tensor itself does not change.
"""
function set_labels!(x::StoredTensor{T,N}, mode::Integer, labels) where {T,N}
    c_mode(mode, N)
    store_labels(LibTD.td_tensor_set_labels, x, mode, checked_labels(labels, size(x)[mode], mode))
    return x
end

"""
    set_mode_name!(X, mode, name)

Names a mode. The tensor itself does not change.
"""
function set_mode_name!(x::StoredTensor{T,N}, mode::Integer, name::AbstractString) where {T,N}
    check(LibTD.td_tensor_set_mode_name(x, c_mode(mode, N), String(name)))
    return x
end

"""
    leading(K; n=5)

What leads each component: in each mode the `n` entries of largest magnitude, the largest first; zeros do not lead. A vector of
`(component, weight, mode, name, index, label, value)`, which packages of tables take as it is: `DataFrame(leading(K))`.
`label` is the index as text where the mode has no labels.

```julia
K = KTensor([2.0], ([0.6; 0.8][:, :], [1.0; 0][:, :]); labels=(["tea", "cake"], nothing))
[row.label for row in leading(K)] == ["cake", "tea", "1"]
```
"""
function leading(k::KTensor{T,N}; n::Integer=5) where {T,N}
    h = KTensorHandle(k)
    rows = NamedTuple{(:component, :weight, :mode, :name, :index, :label, :value),
                      Tuple{Int,Float64,Int,String,Int,String,Float64}}[]
    for r in 1:rank(k), m in 1:N
        most = min(Int64(n), size(k, m))
        indices, values, found = Vector{Int64}(undef, most), Vector{Float64}(undef, most), Ref{Int64}(0)
        check(LibTD.td_ktensor_get_leading(h, m - 1, r - 1, most, indices, values, found))
        for place in 1:found[]
            i = indices[place] + 1
            label = k.labels[m] === nothing ? string(i) : k.labels[m][i]
            push!(rows, (component=r, weight=k.λ[r], mode=m, name=k.names[m], index=i, label=label,
                         value=values[place]))
        end
    end
    return rows
end
