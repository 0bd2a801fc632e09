X = [1.0 / (i + j * k) for i in 1:6, j in 1:5, k in 1:4]

@testset "progress" begin
    fits = Float64[]
    K = cpals(X, 2; tol=0) do report
        push!(fits, report.fit)
        return report.iterations == 3
    end
    @test length(fits) == 3
    @test K.report.stop_reason == "callback" && K.report.iterations == 3
    @test K.report.fit == fits[end]
    kept = []
    cpals(X, 2; tol=0, max_iters=4, progress=report -> push!(kept, report)) # what it gives is not true: the run goes on
    GC.gc()
    @test [r.iterations for r in kept] == 1:4 # reports outlive their calls
end

struct Oops <: Exception end

@testset "exceptions" begin
    calls = Ref(0)
    @test_throws Oops cpals(X, 2; progress=report -> (calls[] += 1; throw(Oops())))
    @test calls[] == 1
    @test cpals(X, 2; max_iters=1).report.iterations == 1 # all is well after it
    @test_throws MethodError cpals(X, 2; progress=() -> nothing)
end

@testset "calls within calls" begin
    inner = Int[]
    cpals(X, 2; tol=0, max_iters=2) do report
        push!(inner, cpals(X, 1; tol=0, max_iters=3).report.iterations)
        GC.gc()
        return false
    end
    @test inner == [3, 3]
    c = Context("cpu")
    @test_throws ArgumentError cpals(report -> (cpals(X, 1; context=c); false), X, 2; context=c)
    @test cpals(X, 1; context=c, max_iters=1).report.iterations == 1
end

@testset "a log function that throws" begin
    mktempdir() do folder
        path = joinpath(folder, "x.tns")
        write_tensor(path, SparseTensor([1, 2], [1, 2], [1.0, 2.0]))
        c = Context("cpu"; log=(level, text) -> error("in the log"))
        @test_logs (:error,) match_mode = :any read_tensor(path; context=c)
    end
end

# ^C in a program of its own: the run ends with an exception, and td works after it.
@testset "^C" begin
    program = """
        using TD
        ccall(:jl_exit_on_sigint, Cvoid, (Cint,), 0)
        X = [1.0 / (i + j * k) for i in 1:60, j in 1:50, k in 1:40]
        try
            cpals(X, 4; tol=0, max_iters=10^9) do report
                report.iterations == 3 && (println("running"); flush(stdout))
                return false
            end
            println("ended by itself")
        catch e
            println(e isa InterruptException ? "interrupted" : "caught \$e")
        end
        println(cpals(X, 1; tol=0, max_iters=2).report.iterations)
        """
    out = Pipe()
    p = run(pipeline(`$(Base.julia_cmd()) --startup-file=no --project=$(Base.active_project()) -e $program`; stdout=out,
                     stderr=stderr); wait=false)
    close(out.in)
    @test readline(out) == "running"
    kill(p, Base.SIGINT)
    @test readline(out) == "interrupted"
    @test readline(out) == "2"
    wait(p)
    @test success(p)
end
