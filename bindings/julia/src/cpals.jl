# CP-ALS.

# A run's way to its progress function, and back with what that threw.
mutable struct Run
    progress::Any
    thrown::Any
end

# Called by libtd after each iteration. Nothing may be thrown through its frames: an exception stops the run and waits.
# ^C is held back while libtd works and let in here, as an exception like any other.
function pass_on_progress(so_far::Ptr{Cvoid}, user::Ptr{Cvoid})::Int32
    run = unsafe_pointer_to_objref(user)::Run
    try
        return reenable_sigint() do
            run.progress === nothing && return Int32(0)
            report = Report(new_handle(out -> LibTD.td_report_copy(so_far, out)))
            return Int32(run.progress(report) === true)
        end
    catch e
        run.thrown = e
        return Int32(1)
    end
end

# A progress function may wait, for output say; its task must not go on on another thread with libtd's frames below it.
function on_this_thread(work)
    task = current_task()
    before = task.sticky
    task.sticky = true
    try
        return work()
    finally
        task.sticky = before
    end
end

"""
    cpals(X, R; init, progress, context="auto", keywords...)
    cpals(progress, X, R; ...)

Fits a [`KTensor`](@ref) of rank R to a tensor or array by alternating least squares. An `Array` and a view of one are read
where they are. The result is normalized and arranged; its `report` tells of the run.

`init` is a `KTensor` to start from, `"random"` or `"nvecs"`. With `model="distributed"` the result is a
[`DistributedKTensor`](@ref), of which each process that shares the tensor has some rows. `progress(report)` is called after each iteration; `true`
stops the run with the model so far, and an exception stops it and comes out of this call. So does ^C, as an
`InterruptException`. Every option of libtd's scope "cpals" is a keyword, see [`option_table`](@ref): `tol`, `max_iters`,
`max_seconds`, `seed`, `mode_order` and `fixed_modes` (modes from 1), `ridge`, `checkpoint`, `resume`, ... Those of scope
"context" are keywords of [`Context`](@ref), those of "tensor" of [`SparseTensor`](@ref).

```julia
A = KTensor([5.0, 2.0], (randn(10, 2), randn(9, 2), randn(8, 2)))
K = cpals(Array(A), 2; tol=1e-10, max_iters=500, seed=1)
K.report.fit > 0.99

fits = Float64[]
cpals(Array(A), 2; tol=0) do report
    push!(fits, report.fit)
    return report.iterations == 3       # true stops
end
length(fits) == 3
```
"""
function cpals(x, R::Integer; init=nothing, progress=nothing, context=default_devices, keywords...)
    tensor = as_tensor(x; context=context)
    check_modes(keywords, ndims(tensor))
    options = options_from(keywords, "cpals")
    start = init isa KTensor ? labelled_handle(init) : init isa DistributedKTensor ? init.handle : C_NULL
    init === nothing || init isa Union{KTensor,DistributedKTensor} || set!(options, "init", init)
    run = Run(progress, nothing)
    shim = @cfunction(pass_on_progress, Int32, (Ptr{Cvoid}, Ptr{Cvoid}))
    model, report = Ref{Ptr{Cvoid}}(C_NULL), Ref{Ptr{Cvoid}}(C_NULL)
    with_context(context) do c
        on_this_thread() do
            GC.@preserve run disable_sigint() do
                check(LibTD.td_cpals(c, tensor, R, start, options, shim, pointer_from_objref(run), model, report))
            end
        end
    end
    fitted, told = KTensorHandle(model[]), Report(report[])
    run.thrown === nothing || throw(run.thrown)
    get(keywords, :model, "replicated") == "distributed" && return DistributedKTensor(fitted, told, context)
    return KTensor(fitted; report=told)
end

cpals(progress::Function, x, R::Integer; keywords...) = cpals(x, R; progress=progress, keywords...)
