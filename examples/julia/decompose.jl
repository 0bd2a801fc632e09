# td from Julia: an array, a sparse tensor, and a solver of one's own. Run with julia --project=<the package TD>.
using LinearAlgebra, Random
using TD

Random.seed!(7)

println("an array of rank 3 with noise, permuted without a copy")
planted = KTensor([5.0, 3.0, 2.0], (randn(40, 3), randn(30, 3), randn(20, 3)))
noisy = Array(planted) .+ 1e-2 .* randn(size(planted))
K = cpals(PermutedDimsArray(noisy, (3, 1, 2)), 3; tol=1e-8, max_iters=500, seed=1) do report
    report.iterations % 10 == 0 && println("  iteration ", report.iterations, ": fit ", report.fit)
    return false                         # true would stop
end
match = score(K, KTensor(planted.λ, planted.factors[[3, 1, 2]]))
println("  ", K.report, "; match with what was planted ", match.score)
@assert match.score > 0.98

println("a sparse tensor: pairs of letters that follow one another, by their place in a word")
words = split("the theme that they thought there then thus these things this though")
pairs = [(Int(w[p]) - 96, Int(w[p+1]) - 96, p) for w in words for p in 1:length(w)-1]
X = SparseTensor((getindex.(pairs, m) for m in 1:3)..., ones(length(pairs)); dims=(26, 26, 8))
K = cpals(X, 2; seed=3, tol=1e-8, max_iters=500)
best = join(Char(96 + argmax(abs.(f[:, 1]))) for f in K.factors[1:2])
println("  ", X, ": the strongest pair is '", best, "'")
@assert best == "th"

println("MTTKRP inside a solver of one's own: alternating least squares with nonnegative factors")
function nonnegative(X, R, steps)
    A = [rand(n, R) for n in size(X)]
    for step in 1:steps, n in 1:ndims(X)
        V = reduce((a, b) -> a .* b, A[m]' * A[m] for m in 1:ndims(X) if m != n)
        A[n] .*= mttkrp(X, A, n) ./ (A[n] * V .+ floatmin())
    end
    return normalize(KTensor(A))
end
Y = DenseTensor(Array(KTensor((rand(15, 3), rand(12, 3), rand(10, 3)))))
N = nonnegative(Y, 3, 300)
println("  fit ", fit(N, Y).fit, ", smallest entry ", minimum(minimum, N.factors))
@assert fit(N, Y).fit > 0.95 && minimum(minimum, N.factors) >= 0

println("errors say what came and what was expected")
try
    cpals(X, 2; max_itres=5)
catch e
    println("  ", sprint(showerror, e))
    @assert occursin("max_iters", e.text)
end
