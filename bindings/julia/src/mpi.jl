# Processes that share tensors, over MPI.jl, which this package does not need: its functions are looked up in the module
# that the communicator comes from.

struct MPIFunctions
    module_::Module # MPI, or what a test has for it
    comm::Any
end

const part_bytes = 1 << 30 # MPI counts in int: more than so many bytes go in parts

parts(n::Integer) = (at:min(at + part_bytes, n)-1 for at in 0:part_bytes:n-1)
bytes_at(p::Ptr{Cvoid}, r::UnitRange{<:Integer}) = unsafe_wrap(Array, Ptr{UInt8}(p) + first(r), length(r))

function all_reduce(m::MPIFunctions, data::Ptr{Float64}, count::Int64, operation::Int32)
    op = operation == 0 ? m.module_.SUM : m.module_.MAX
    for r in parts(8 * count)
        m.module_.Allreduce!(unsafe_wrap(Array, data + first(r), length(r) ÷ 8), op, m.comm)
    end
end

# Processes that exchange nothing send no message.
function all_to_all_v(m::MPIFunctions, sent::Ptr{Cvoid}, sent_bytes::Ptr{Int64}, received::Ptr{Cvoid},
                      received_bytes::Ptr{Int64})
    rank, size = m.module_.Comm_rank(m.comm), m.module_.Comm_size(m.comm)
    out, into = unsafe_wrap(Array, sent_bytes, size), unsafe_wrap(Array, received_bytes, size)
    requests = m.module_.Request[]
    begin_ = 0
    for p in 0:size-1
        for r in parts(into[p+1])
            to = bytes_at(received, begin_ .+ r)
            if p == rank
                copyto!(to, bytes_at(sent, sum(out[1:rank]) .+ r))
            else
                push!(requests, m.module_.Irecv!(to, p, 0, m.comm))
            end
        end
        begin_ += into[p+1]
    end
    begin_ = 0
    for p in 0:size-1
        p == rank || append!(requests, [m.module_.Isend(bytes_at(sent, begin_ .+ r), p, 0, m.comm) for r in parts(out[p+1])])
        begin_ += out[p+1]
    end
    wait_all = isdefined(m.module_, :Waitall) ? m.module_.Waitall : m.module_.Waitall! # its name before MPI.jl 0.20
    wait_all(requests)
end

function broadcast_bytes(m::MPIFunctions, data::Ptr{Cvoid}, bytes::Int64, root::Int32)
    for r in parts(bytes)
        m.module_.Bcast!(bytes_at(data, r), Int(root), m.comm)
    end
end

# Nothing may be thrown through libtd's frames: that a function failed is its number.
function answer(work, user::Ptr{Cvoid})
    try
        work(unsafe_pointer_to_objref(user)::MPIUser)
        return Int32(0)
    catch e
        @error "td: a function of the communicator failed" exception = (e, catch_backtrace())
        return Int32(1)
    end
end

mutable struct MPIUser # with an address, which libtd has
    functions::MPIFunctions
end

all_reduce_shim(data::Ptr{Float64}, count::Int64, operation::Int32, user::Ptr{Cvoid}) =
    answer(u -> all_reduce(u.functions, data, count, operation), user)
all_to_all_v_shim(sent::Ptr{Cvoid}, sent_bytes::Ptr{Int64}, received::Ptr{Cvoid}, received_bytes::Ptr{Int64},
                  user::Ptr{Cvoid}) =
    answer(u -> all_to_all_v(u.functions, sent, sent_bytes, received, received_bytes), user)
broadcast_shim(data::Ptr{Cvoid}, bytes::Int64, root::Int32, user::Ptr{Cvoid}) =
    answer(u -> broadcast_bytes(u.functions, data, bytes, root), user)
function abort_shim(status::Int32, user::Ptr{Cvoid})
    answer(u -> u.functions.module_.Abort(u.functions.comm, Int(-status)), user)
    return nothing
end

mutable struct CommunicatorHandle <: Handle
    ptr::Ptr{Cvoid}
    user::MPIUser # kept for libtd
end

# The duplicate of `comm` lasts until MPI ends: freeing it would be collective, and when objects end differs between
# processes.
function CommunicatorHandle(comm)
    m = parentmodule(typeof(comm))
    user = MPIUser(MPIFunctions(m, m.Comm_dup(comm)))
    shims = (@cfunction(all_reduce_shim, Int32, (Ptr{Float64}, Int64, Int32, Ptr{Cvoid})),
             @cfunction(all_to_all_v_shim, Int32, (Ptr{Cvoid}, Ptr{Int64}, Ptr{Cvoid}, Ptr{Int64}, Ptr{Cvoid})),
             @cfunction(broadcast_shim, Int32, (Ptr{Cvoid}, Int64, Int32, Ptr{Cvoid})),
             @cfunction(abort_shim, Cvoid, (Int32, Ptr{Cvoid})))
    rank, size = Int32(m.Comm_rank(comm)), Int32(m.Comm_size(comm))
    ptr = new_handle(out -> LibTD.td_communicator_create(rank, size, shims..., C_NULL, pointer_from_objref(user), out))
    return finalizer(c -> LibTD.td_communicator_destroy(c.ptr), CommunicatorHandle(ptr, user))
end

"""
    Context(comm, devices="cpu"; log=nothing, keywords...)

With devices = "cuda:local" each process has a GPU. A context that the processes of `comm`, an `MPI.Comm` of MPI.jl, share. All make it and call [`SparseTensor`](@ref),
[`read_tensor`](@ref) and [`cpals`](@ref) with it together, each with entries of its own, or with one file; each gets the whole
model. `comm` is duplicated, so that td's messages never meet the program's.

    using MPI, TD
    MPI.Init()
    c = Context(MPI.COMM_WORLD; threads=1)
    X = SparseTensor(i, j, k, values; dims=(60, 50, 40), context=c) # of this process
    K = cpals(X, 4; context=c)
"""
function Context(comm, devices::AbstractString="cpu"; log=nothing, keywords...)
    shared = CommunicatorHandle(comm)
    options = options_from(keywords, "context")
    make = out -> LibTD.td_context_create_distributed(devices, options, shared, out)
    return Context(new_handle(make), log, shared)
end
