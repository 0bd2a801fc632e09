# Where work runs.

# Nothing may be thrown through libtd's frames: what a log function throws is shown and forgotten, as a logger's is.
function pass_on_log(level::Int32, text::Cstring, user::Ptr{Cvoid})
    try
        (unsafe_pointer_to_objref(user)::Context).log(Int(level), unsafe_string(text))
    catch e
        @error "td: the log function threw" exception = (e, catch_backtrace())
    end
    return nothing
end

"""
    Context(devices="auto"; log=nothing, keywords...)

Devices to work on: "auto", "cpu", "cpu:4" (four workers), "reference", "cuda", "cuda:0,1", "cuda:all". `log(level, text)`
hears of decisions and warnings (level 1 warning, 2 information, 3 detail). Keywords: options of scope "context".

Calls take `context=`, a `Context` or a string of devices; without it they share contexts for "auto". One context works
for one call at a time: a call from another task waits.

```julia
c = Context("cpu:2"; threads=2)
cpals(rand(5, 4, 3), 2; context=c)
```
"""
mutable struct Context <: Handle
    ptr::Ptr{Cvoid}
    log::Any # kept for libtd, which has the address of this object
    gate::Base.Semaphore # not a lock: that would hold back finalizers for the length of a run
    user::Union{Task,Nothing}
    shared::Any # kept for libtd: what processes meet by
    function Context(ptr::Ptr{Cvoid}, log, shared)
        c = new(ptr, log, Base.Semaphore(1), nothing, shared)
        if log !== nothing
            shim = @cfunction(pass_on_log, Cvoid, (Int32, Cstring, Ptr{Cvoid}))
            check(LibTD.td_context_set_log(c, shim, pointer_from_objref(c)))
        end
        return finalizer(c -> LibTD.td_context_destroy(c.ptr), c)
    end
    function Context(devices::AbstractString="auto"; log=nothing, keywords...)
        options = options_from(keywords, "context")
        return Context(new_handle(out -> LibTD.td_context_create(devices, options, out)), log, nothing)
    end
end

"""
    set_stream!(context, stream; slot=1)

Names the CUDA stream, `Ptr` of a `cudaStream_t`, by which work on arrays on the GPU is ordered (td.h:
`td_context_set_stream`); `nothing` for none. `slot` counts the context's GPUs. The stream must last as long as the
context, or until another one is set.
"""
function set_stream!(c::Context, stream::Union{Ptr,Nothing}; slot::Integer=1)
    check(LibTD.td_context_set_stream(c, Int32(slot - 1), stream === nothing ? C_NULL : Ptr{Cvoid}(stream)))
    return c
end

function Base.show(io::IO, c::Context)
    print(io, "Context: ", get_text((buf, cap, needed) -> LibTD.td_context_describe(c, buf, cap, needed)))
end

function with_context(work, c::Context)
    c.user === current_task() && throw(ArgumentError("this context is in use by the call that called back"))
    Base.acquire(c.gate)
    c.user = current_task()
    try
        return work(c)
    finally
        c.user = nothing
        Base.release(c.gate)
    end
end

# Contexts between calls, by their devices. A call takes one out, so that calls from other tasks and from callbacks find
# another.
const idle = Dict{String,Vector{Context}}()
const idle_lock = ReentrantLock()

function with_context(work, devices::AbstractString)
    c = lock(idle_lock) do
        waiting = get!(() -> Context[], idle, devices)
        return isempty(waiting) ? nothing : pop!(waiting)
    end
    c === nothing && (c = Context(devices))
    try
        return with_context(work, c)
    finally
        lock(() -> push!(idle[devices], c), idle_lock)
    end
end
