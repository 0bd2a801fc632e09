# Files.

"""
    read_tensor(path; context="auto", keywords...)

A [`SparseTensor`](@ref) from coordinate text (FROSTT, ParTI, Tensor Toolbox, GenTen, Matrix Market; also .gz) or td's binary format, or
a [`DenseTensor`](@ref) from .npy, Tensor Toolbox text or td's binary format. What a file is, is found from its content.
Keywords: options of scopes "read" and "tensor".

A table (CSV, TSV, also .gz) is read where `columns` names those that become modes; the names in them are its [`labels`](@ref),
and lines with the same names add up: `read_tensor("visits.csv"; columns="user,item,when:%Y-%m", value="count")`.
"""
function read_tensor(path::AbstractString; context=default_devices, keywords...)
    options = options_from(keywords, "read", "tensor")
    ptr = with_context(c -> new_handle(out -> LibTD.td_tensor_read(c, path, options, out)), context)
    order = get_number(out -> LibTD.td_tensor_order(ptr, out), Int32)
    dims = Vector{Int64}(undef, order)
    check(LibTD.td_tensor_dims(ptr, dims))
    T = real_type(get_number(out -> LibTD.td_tensor_type(ptr, out), Int32))
    sparse = get_number(out -> LibTD.td_tensor_get_i64(ptr, "sparse", out), Int64) == 1
    return (sparse ? SparseTensor : DenseTensor){T,Int(order)}(ptr, Tuple(Int.(dims)))
end

"""
    write_tensor(path, X; keywords...)

Writes a tensor or array; the name's ending says the format: .tns, .txt, .tdb, .npy, and .gz after a text's. Keywords:
options of scope "write".
"""
function write_tensor(path::AbstractString, x; keywords...)
    options = options_from(keywords, "write")
    check(LibTD.td_tensor_write(as_tensor(x), path, options))
    return nothing
end

"""
    read_ktensor(path; context="auto")

A [`KTensor`](@ref) from text as Tensor Toolbox and pyttb write it, from SPLATT's folder, or from td's binary format.
"""
read_ktensor(path::AbstractString; context=default_devices) =
    KTensor(KTensorHandle(with_context(c -> new_handle(out -> LibTD.td_ktensor_read(c, path, out)), context)))

"""
    write_ktensor(path, K; keywords...)

Writes a ktensor: .tdb is td's binary format, other names give Tensor Toolbox text. Keywords: options of scope "write".
"""
function write_ktensor(path::AbstractString, k::KTensor; keywords...)
    options = options_from(keywords, "write")
    check(LibTD.td_ktensor_write(labelled_handle(k), path, options))
    return nothing
end
