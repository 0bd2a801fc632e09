# Finalizers run in any order, on any thread, while other threads work.
X = [1.0 / (i + j * k) for i in 1:6, j in 1:5, k in 1:4]

@testset "garbage" begin
    for n in 1:50
        K = cpals(DenseTensor(X), 2; max_iters=2)
        T = SparseTensor(rand(1:5, 20), rand(1:5, 20), rand(20); dims=(5, 5))
        K = T = nothing
        n % 10 == 0 && GC.gc()
    end
    GC.gc()
    @test cpals(X, 1; max_iters=1).report.iterations == 1
end

@testset "explicit ends" begin
    T = DenseTensor(X)
    finalize(T)
    @test_throws TDError norm(T)
    finalize(T)
    c = Context("cpu")
    T = DenseTensor(X; context=c)
    finalize(c)
    @test norm(T) ≈ norm(X)
end

@testset "threads" begin
    fits = zeros(8)
    shared, c = DenseTensor(X), Context("cpu")
    Threads.@threads for n in 1:8
        K = cpals(shared, 2; seed=1, tol=0, max_iters=5, deterministic=true, context=isodd(n) ? "cpu" : c)
        GC.gc(false)
        fits[n] = K.report.fit
    end
    @test all(==(fits[1]), fits)
    tasks = [@async cpals(shared, 2; seed=1, tol=0, max_iters=5, deterministic=true, context="cpu") for _ in 1:4]
    @test all(t -> fetch(t).report.fit == fits[1], tasks)
end
