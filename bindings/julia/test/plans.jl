dims = (300, 200, 100)
p = plan(dims, 8; nnz=100_000, context="cpu:2")

@testset "facts" begin
    @test p.rank == 8 && p.nnz == 100_000 && p.fits == 1 && p.workers == 2
    @test p.format == "sorted" && occursin("quarter", p["format.why"])
    @test p["host_bytes.peak"] >= p["host_bytes.tensor"] + p["host_bytes.solver"] > 0
    @test p["seconds.iteration"] > 0
    @test series(p, :dims) == collect(dims)
    @test_throws TDError p.weight
    @test_throws TDError series(p, :weight)
end

@testset "modes" begin
    @test [m.dim for m in p.modes] == collect(dims)
    @test all(sum(m.load) == 100_000 && length(m.load) == 2 && m.imbalance >= 0 for m in p.modes)
    @test all(m -> !isempty(m.kernel) && !isempty(m.conflicts) && m.seconds > 0, p.modes)
end

@testset "show" begin
    text = sprint(show, p)
    @test startswith(text, "tensor ") && occursin("\nmode 2 ", text) && occursin("\nformat      sorted: ", text)
    @test sprint(show, MIME("text/plain"), p) == text
end

@testset "forced" begin
    q = plan(dims, 8; nnz=100_000, context="cpu", format="blco", conflicts="atomic")
    @test q.format == "blco" && q["format.why"] == "asked for by option 'format'"
    @test q.conflicts == "atomic" && q["conflicts.why"] == "asked for by option 'conflicts'"
    @test all(m -> m.conflicts == "atomic additions", q.modes)
    @test plan(dims, 8; nnz=100_000, context="cpu", tiles="64", groups="none")["tiles.why"] == "asked for by option 'tiles'"
    @test_throws TDError plan(dims, 8; nnz=100_000, tiles="many")
    @test_throws TDError plan(dims, 0; nnz=10)
    @test_throws TDError plan(dims, 8; nnz=10, tilse="none")
    @test_throws ArgumentError plan(dims, 8; nnz=10, file_format="npy")
end

@testset "of what is there" begin
    A = rand(Float32, 6, 5, 4)
    d = plan(A, 2; context="cpu")
    @test d.sparse == 0 && d.nnz == 120 && d["host_bytes.tensor"] < 6 * 5 * 4 * 8
    @test plan((6, 5, 4), 2; type=Float32, context="cpu")["host_bytes.tensor"] == d["host_bytes.tensor"]
    x = SparseTensor([1, 2, 2], [1, 3, 1], [1, 4, 4], [1.0, 2.0, 3.0]; dims=(2, 3, 4), format="blco", context="cpu")
    s = plan(x, 2; context="cpu", deterministic=1)
    @test s.format == "blco" && s.nnz == 3 && s["host_bytes.tensor"] == x[:bytes]
    @test s.conflicts == "owner" && occursin("deterministic", s["conflicts.why"])
    @test_throws ArgumentError plan(x, 2; format="coo") # it is stored already
    mktempdir() do folder
        path = joinpath(folder, "x.tns")
        write_tensor(path, x)
        @test plan(path, 2; context="cpu", format="coo").format == "coo"
        @test_throws TDError plan(joinpath(folder, "none.tns"), 2)
    end
    kept = [plan(x, r; context="cpu") for r in 1:20]
    GC.gc()
    @test [k.rank for k in kept] == 1:20
end
