@testset "MTTKRP" begin
    # pyttb's test: X = 1 .. 720 in 2 x 3 x 4 x 5 x 6, every factor ones.
    X = reshape(collect(1.0:720), 2, 3, 4, 5, 6)
    published = ([129600, 129960], [86040, 86520, 87000], [63270, 64350, 65430, 66510],
                 [45000, 48456, 51912, 55368, 58824], [7260, 21660, 36060, 50460, 64860, 79260])
    ones_ = [ones(n, 2) for n in size(X)]
    for mode in 1:5
        @test mttkrp(X, ones_, mode) == published[mode] .* [1 1]
        @test mttkrp(DenseTensor(Float32.(X)), map(f -> Float32.(f), ones_), mode) ≈ published[mode] .* [1 1]
        @test mttkrp(X, KTensor(ones_), mode) == published[mode] .* [1 1]
    end

    # Views with a leading dimension, into a view; rows around it are left alone.
    A = rand(4, 3, 2)
    F = [rand(n, 2) for n in size(A)]
    M = [sum(A[i, j, k] * F[2][j, r] * F[3][k, r] for j in 1:3, k in 1:2) for i in 1:4, r in 1:2]
    big = fill(7.0, 6, 2)
    wide = rand(9, 2)
    wide[3:5, :] = F[2]
    mttkrp!(view(big, 2:5, :), A, Any[nothing, view(wide, 3:5, :), F[3]], 1)
    @test big[2:5, :] ≈ M
    @test big[1, :] == [7, 7] && big[6, :] == [7, 7]
    @test mttkrp(A, (F[1], collect(F[2]')', F[3]), 1) ≈ M

    @test_throws ArgumentError mttkrp(A, F, 4)
    @test_throws DimensionMismatch mttkrp(A, F[1:2], 1)
    @test_throws DimensionMismatch mttkrp(A, F[1:1], 1)
    @test_throws DimensionMismatch mttkrp(A, [F[1], rand(4, 2), F[3]], 1)
    @test_throws ArgumentError mttkrp!(zeros(Float32, 4, 2), A, F, 1)
end

# GenTen's test: a tensor of exact rank 2 whose weights are 2^(3/2) and 2.
truth = KTensor([[1.0 1; 1 -1], [1.0 1; 1 0; 0 0], [1.0 0; 0 1; 1 0; 0 1]])
X = Array(truth)

@testset "CP-ALS" begin
    K = cpals(X, 2; tol=1e-12, max_iters=500, seed=3)
    @test K.λ ≈ [sqrt(8), 2] rtol = 1e-5
    @test K.report.fit ≈ 1 atol = 1e-5
    @test K.report.stop_reason == "tol" && K.report.converged == 1
    @test cpals(X, 2; tol=nothing, seed=3) == cpals(X, 2; seed=3)
    @test_throws TDError cpals(X, 2; tolerance=nothing)
    @test score(K, truth).score ≈ 1 atol = 1e-4
    @test length(series(K.report, :fit)) == K.report.iterations
    @test K.report["seconds.mttkrp"] >= 0
    @test Array(K) ≈ X rtol = 1e-4
    @test occursin("stopped by tol", sprint(show, MIME("text/plain"), K))

    creeps = cpals([sin(i * j * k) for i in 1:6, j in 1:6, k in 1:6], 4).report
    @test creeps.stop_reason == "tol" && creeps.fit_growth > 1e-4
    @test occursin("stopped by tol: the fit still grew by", sprint(show, creeps))
    @test K.report.creeping == "" && K.report.fit_growth < 1e-12

    places = findall(!iszero, X)
    S = SparseTensor((getindex.(places, m) for m in 1:3)..., X[places]; dims=size(X))
    @test cpals(S, 2; tol=1e-12, max_iters=500, seed=3).λ ≈ K.λ rtol = 1e-6
    @test eltype(cpals(Float32.(X), 2)) == Float32
    @test cpals(X, 2; init="nvecs").report.init == "nvecs"
    @test cpals(X, 2; init=:nvecs, max_iters=1).report.iterations == 1
    @test cpals(X, 2; init=truth, max_iters=2).report.fit ≈ 1
    @test cpals(X, 2; init=truth, fixed_modes=[1, 3], mode_order=(3, 1, 2)).report.fit ≈ 1
    @test cpals(X, 2; seed=5, deterministic=true) == cpals(X, 2; seed=5, deterministic=true)
    @test cpals(X, 2; context="cpu:2").report.workers == 2
    c = Context("reference")
    @test cpals(X, 2; context=c, seed=1).report.threads == 1
    @test occursin("reference", sprint(show, c))
end

@testset "keywords" begin
    @test any(o -> o.scope == "cpals" && o.name == "tol" && o.type == "f64", option_table())
    e = try
        cpals(X, 2; max_itres=5)
    catch e
        e
    end
    @test e isa TDError && e.name == "TD_ERR_OPTION_UNKNOWN" && occursin("max_iters", sprint(showerror, e))
    @test_throws TDError cpals(X, 2; max_iters=0)
    @test_throws TDError cpals(X, 2; init="guess")
    @test_throws ArgumentError("fixed_modes: mode 4, expected 1 to 3") cpals(X, 2; fixed_modes=[4], init=truth)
    @test_throws ArgumentError("mode_order: mode 0, expected 1 to 3") cpals(X, 2; mode_order=(0, 1, 2))
    @test_throws ArgumentError("mode_order = [1, 1, 2]: a mode is there twice") cpals(X, 2; mode_order=[1, 1, 2])
    @test_throws ArgumentError("mode_order = [1, 2]: expected each of 1 to 3 once") cpals(X, 2; mode_order=[1, 2])
    @test_throws ArgumentError cpals(X, 2; format="coo")
    @test_throws TDError cpals(X, 0)
    @test_throws TDError cpals(X, 2; init=KTensor([rand(2, 3), rand(3, 3), rand(4, 3)]))
    @test_throws TDError Context("abacus")
    @test_throws TDError set_stream!(Context("cpu"), nothing)
    @test_throws TDError cpals(X, 2; resume="no_such_checkpoint")
end
