# Errors, and the owners of libtd's handles.

"""
    TDError

What libtd refused or failed at: `status` is its code (`TD.LibTD.TD_ERR_SHAPE`, ...), `name` that code's name and
`text` a sentence that names what came and what was expected.
"""
struct TDError <: Exception
    status::Int32
    name::String
    text::String
end

function TDError(status::Integer)
    buffer = zeros(UInt8, 1024)
    LibTD.td_last_error(buffer, length(buffer))
    text = text_of(buffer)
    status in (LibTD.TD_ERR_ARGUMENT, LibTD.TD_ERR_SHAPE, LibTD.TD_ERR_NUMERICAL) && (text = from_one(text))
    return TDError(status, unsafe_string(LibTD.td_status_name(status)), text)
end

# A sentence of libtd, in which modes, rows and columns count from 0, with them counted from 1. One that says what it counts
# from stays as it is, and so does what is said of a line of a file.
function from_one(text::AbstractString)
    (occursin("counting from", text) || occursin(": line ", text)) && return text
    numbered = r"(?<![^ ,:(])(?:(?:mode|factor|component|row|column) |(?:dims|strides|factors|weights)\[)\d+"
    return replace(text, numbered => s -> replace(s, r"\d+" => d -> string(parse(Int, d) + 1)))
end

Base.showerror(io::IO, e::TDError) = print(io, "td: ", e.text, " (", e.name, ")")

text_of(buffer::Vector{UInt8}) = GC.@preserve buffer unsafe_string(pointer(buffer))

# Throws what a call failed at. No task switch lies between the call and the reading of its text, which belongs to the
# thread.
check(status::Int32) = status < 0 ? throw(TDError(status)) : status

# A text from a function with (buf, cap, needed) as its last arguments.
function get_text(call)
    needed = Ref{Int64}(0)
    check(call(Ptr{UInt8}(C_NULL), 0, needed))
    buffer = zeros(UInt8, needed[])
    check(call(buffer, length(buffer), needed))
    return text_of(buffer)
end

# The owner of a handle. It is passed to the functions of LibTD itself: that keeps it alive during the call. Finalizers
# run in any order and on any thread, which libtd allows.
abstract type Handle end
Base.unsafe_convert(::Type{Ptr{Cvoid}}, h::Handle) = h.ptr

# A new handle from a function whose last argument is where to put it.
function new_handle(call)
    out = Ref{Ptr{Cvoid}}(C_NULL)
    check(call(out))
    return out[]
end

mutable struct OptionsHandle <: Handle
    ptr::Ptr{Cvoid}
    function OptionsHandle()
        h = new(new_handle(LibTD.td_options_create))
        return finalizer(h -> LibTD.td_options_destroy(h.ptr), h)
    end
end

mutable struct KTensorHandle <: Handle
    ptr::Ptr{Cvoid}
    KTensorHandle(ptr::Ptr{Cvoid}) = finalizer(h -> LibTD.td_ktensor_destroy(h.ptr), new(ptr))
end

const Real32Or64 = Union{Float32,Float64}
type_code(::Type{Float32}) = LibTD.TD_F32
type_code(::Type{Float64}) = LibTD.TD_F64
type_code(::Type{Int32}) = LibTD.TD_I32
type_code(::Type{Int64}) = LibTD.TD_I64
real_type(code::Int32) = code == LibTD.TD_F32 ? Float32 : Float64

dims_of(t::Tuple) = collect(Int64, t)

# libtd counts modes from 0.
function c_mode(mode::Integer, order::Integer)
    1 <= mode <= order || throw(ArgumentError("mode $mode: expected 1 to $order"))
    return Int32(mode - 1)
end
