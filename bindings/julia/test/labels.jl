# Names of modes and labels of indices: from tables, set, through runs and files, and out again.

has_labels(x) = labels(x) == (["ann", "böb"], ["cake, big", "tea"], ["2024-01", "2024-02"]) &&
                mode_names(x) == ("who", "what", "when")

@testset "a table" begin
    mktempdir() do folder
        path = joinpath(folder, "buys.csv")
        write(path, "who,what,when,count\nann,tea,2024-01-05,2\nböb,\"cake, big\",2024-02-01,1\nann,tea,2024-01-09,3\n" *
                    "böb,tea,2024-02-02,4\n")
        X = read_tensor(path; columns="who,what,when:%Y-%m", value="count")
        @test has_labels(X) && size(X) == (2, 2, 2) && nnz(X) == 3
        @test Array(X)[1, 2, 1] == 5 && Array(X)[2, 1, 2] == 1 && Array(X)[2, 2, 2] == 4
        K = cpals(X, 2; seed=1)
        @test has_labels(K) && has_labels(arrange(K)) && labels(K, 1) == ["ann", "böb"]
        write_tensor(joinpath(folder, "x.tdb"), X)
        write_ktensor(joinpath(folder, "k.tdb"), K)
        @test has_labels(read_tensor(joinpath(folder, "x.tdb"))) && has_labels(read_ktensor(joinpath(folder, "k.tdb")))
        @test has_labels(cpals(Array(X), 2; init=K)) && labels(cpals(Array(X), 2)) == (nothing, nothing, nothing)
        @test_throws TDError read_tensor(path; columns="who,how")
    end
end

@testset "set" begin
    X = DenseTensor(rand(2, 3))
    @test labels(X) == (nothing, nothing) && mode_names(X) == ("", "")
    set_labels!(X, 2, [1, 2.5, "é"])
    set_mode_name!(X, 1, "row")
    @test labels(X) == (nothing, ["1", "2.5", "é"]) && mode_names(X) == ("row", "")
    set_labels!(X, 2, nothing)
    @test labels(X, 2) === nothing
    @test_throws DimensionMismatch set_labels!(X, 2, ["a", "b"])
    @test_throws ArgumentError set_labels!(X, 2, ["a", "b\0", "c"])
    @test_throws ArgumentError set_labels!(X, 3, ["a"])
    @test_throws DimensionMismatch KTensor([1.0], (ones(2, 1), ones(3, 1)); labels=(["a"], nothing))
    @test_throws DimensionMismatch KTensor([1.0], (ones(2, 1), ones(3, 1)); names=("a",))
end

@testset "what leads" begin
    K = KTensor([3.0, 1.0], ([0.6 0; -0.8 0; 0.1 0], [1.0 2; 1 3]); labels=(["a", "b", "c"], nothing), names=("letter", ""))
    rows = leading(K; n=2)
    @test [(r.component, r.mode, r.index, r.label, r.value) for r in rows] ==
          [(1, 1, 2, "b", -0.8), (1, 1, 1, "a", 0.6), (1, 2, 1, "1", 1.0), (1, 2, 2, "2", 1.0), (2, 2, 2, "2", 3.0),
           (2, 2, 1, "1", 2.0)]
    @test rows[1].weight == 3.0 && rows[1].name == "letter" && isempty(leading(K; n=0))
end
