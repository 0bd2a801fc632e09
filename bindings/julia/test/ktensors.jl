A, B, C = [1.0 1; 1 -10], [1.0 4; 2 5; 3 6], [1.0 5; 2 6; 3 7; 4 8]
K = KTensor([2.0, 0.5], (A, B, C))
# M(2,3,4) = 2*1*3*4 + 0.5*(-10)*6*8; M(1,1,1) = 2 + 0.5*1*4*5.
full = [sum(K.λ[r] * A[i, r] * B[j, r] * C[k, r] for r in 1:2) for i in 1:2, j in 1:3, k in 1:4]

@testset "values" begin
    @test size(K) == (2, 3, 4) && size(K, 2) == 3 && size(K, 4) == 1
    @test ndims(K) == 3 && eltype(K) == Float64 && rank(K) == 2
    @test K[2, 3, 4] == -216 && K[1, 1, 1] == 12
    @test K[CartesianIndex(2, 3, 4)] == -216
    @test values_at(K, [2, 1], [3, 1], Int32[4, 1]) ≈ [-216, 12]
    @test Array(K) ≈ full
    @test_throws BoundsError K[3, 1, 1]
    @test_throws TDError values_at(K, [3], [1], [1])
end

@testset "computed" begin
    @test norm(K) ≈ norm(full)
    @test dot(K, K) ≈ sum(abs2, full)
    @test dot(K, full) ≈ sum(abs2, full)
    @test dot(DenseTensor(full), K) ≈ sum(abs2, full)
    f = fit(K, full)
    @test f.fit ≈ 1 && f.explained ≈ 1 && f.relative < 1e-12
    f = fit(K, 2 * full)
    @test f.fit ≈ 0.5 && f.explained ≈ 0.75 && f.relative ≈ 0.5 && f.residual ≈ norm(full)
end

@testset "forms" begin
    # Tensor Toolbox's example of fixsigns: arranged weights 101 and 2.
    F = arrange(KTensor([1.0, 1.0], (A, A)))
    @test F.λ ≈ [101, 2]
    @test fixsigns(F).factors[1][2, 1] ≈ 10 / sqrt(101)
    N = normalize(K)
    @test all(norm(f[:, r]) ≈ 1 for f in N.factors for r in 1:2)
    @test Array(N) ≈ full
    @test K.λ == [2.0, 0.5]
    swapped = KTensor(K.λ[[2, 1]], map(f -> f[:, [2, 1]], K.factors))
    s = score(K, swapped)
    @test s.score ≈ 1 && s.match == [2, 1]
    one = KTensor(K.λ[1:1], map(f -> f[:, 1:1], K.factors))
    @test score(K, one).match == [1, 0]
    @test score(K, KTensor(3 * K.λ, K.factors); use_weights=false).score ≈ 1
end

@testset "made" begin
    @test eltype(KTensor([1.0], (ones(Float32, 2, 1), ones(Float32, 3, 1)))) == Float32
    @test eltype(KTensor([1.0], (ones(Float32, 2, 1), ones(Int, 3, 1)))) == Float64
    @test KTensor([A, A]) == KTensor(ones(2), (A, A))
    @test_throws DimensionMismatch KTensor([1.0], (A, A))
    changed = KTensor([1.0, 2.0], (A, A))
    push!(changed.λ, 3.0)
    for call in (norm, Array, arrange, k -> values_at(k, [1], [1]), k -> score(KTensor([A, A]), k), k -> cpals(A, 2; init=k))
        @test_throws DimensionMismatch call(changed)
    end
end

@testset "shown" begin
    @test sprint(show, K) == "2×3×4 KTensor{Float64,3} of rank 2"
    text = sprint(show, MIME("text/plain"), K)
    @test occursin("λ: ", text) && occursin("factors[3]", text) && occursin("-10.0", text)
end

@testset "files" begin
    mktempdir() do folder
        for name in ("k.txt", "k.tdb")
            write_ktensor(joinpath(folder, name), K)
            @test read_ktensor(joinpath(folder, name)) == K
        end
        write_ktensor(joinpath(folder, "splatt"), normalize(K); file_format="splatt")
        @test score(read_ktensor(joinpath(folder, "splatt")), K).score ≈ 1
    end
end
