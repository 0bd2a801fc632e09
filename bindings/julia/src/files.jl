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

Writes a ktensor: .tdb is td's binary format, other names give Tensor Toolbox text. A [`DistributedKTensor`](@ref) all
processes write together. Keywords: options of scope "write".
"""
function write_ktensor(path::AbstractString, k::Union{KTensor,DistributedKTensor}; keywords...)
    options = options_from(keywords, "write")
    check(LibTD.td_ktensor_write(k isa KTensor ? labelled_handle(k) : k.handle, path, options))
    return nothing
end

"""
    write_report(path, K, X=nothing; context="auto", keywords...)

Writes the run that `K` comes from as a page to look at, in a browser and without a network: the fit by iteration, weights,
each component as a drawing a mode, what to know before trusting it, and with the tensor or array `X` what the plan chose.
A path that ends with .json gets the same facts as data. Keywords: options of scope "report" (`report_title`, `mode_names`,
`line_modes`, modes from 1) and those of the run, which the page shows.

```julia
X = rand(30, 20, 10)
K = cpals(X, 3; seed=1)
path = joinpath(mktempdir(), "run.html")
write_report(path, K, X; mode_names="person,item,month", seed=1)
occursin("</html>", read(path, String))
```
"""
function write_report(path::AbstractString, k::KTensor, x=nothing; context=default_devices, keywords...)
    k.report === nothing && throw(ArgumentError("this KTensor comes from no run of cpals: it has no report to write"))
    check_modes(keywords, length(k.factors))
    options = options_from(keywords, "report", "cpals")
    tensor = x === nothing ? C_NULL : as_tensor(x; context=context)
    with_context(context) do c
        check(LibTD.td_report_write(c, k.report, tensor, KTensorHandle(k), options, path))
    end
    return nothing
end
