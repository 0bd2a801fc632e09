# X(1,1,1) = 1, X(2,3,4) = 2, X(2,1,4) = 3; norm sqrt(14).
I1, I2, I3, V = [1, 2, 2], [1, 3, 1], [1, 4, 4], [1.0, 2.0, 3.0]
full = zeros(2, 3, 4)
for k in 1:3
    full[I1[k], I2[k], I3[k]] = V[k]
end

function text_of_error(call)
    try
        call()
    catch e
        e isa TDError && return e.text
        e isa ArgumentError && return e.msg
        rethrow()
    end
    return "no error"
end

@testset "sparse $I $T" for I in (Int32, Int64, Int16), T in (Float32, Float64)
    X = SparseTensor(I.(I1), I.(I2), I.(I3), T.(V))
    @test size(X) == (2, 3, 4)
    @test ndims(X) == 3
    @test eltype(X) == T
    @test nnz(X) == 3
    @test norm(X) ≈ sqrt(14)
    @test Array(X) == full
    @test slice_counts(X, 3) == [1, 0, 0, 2]
    i1, i2, i3, v = findnz(X)
    @test all(full[i1[k], i2[k], i3[k]] == v[k] for k in 1:3)
    @test eltype(v) == T
end

@testset "how it is given" begin
    @test size(SparseTensor(I1, I2, I3, V; dims=(5, 6, 7))) == (5, 6, 7)
    @test Array(SparseTensor(view(I1, 1:2), Int32.(I2[1:2]), I3[1:2], 1:2; dims=(2, 3, 4)))[2, 3, 4] == 2
    @test Array(SparseTensor([1, 1, 2], [1, 1, 2], [1.0, 2.0, 5.0])) == [3 0; 0 5]
    @test SparseTensor([1, 1], [1, 1], [1.0, 2.0])[:duplicates] == 1
    @test nnz(SparseTensor(Int[], Int[], Float64[]; dims=(3, 4))) == 0
    for format in ("coo", "blco", "sorted")
        X = SparseTensor(I1, I2, I3, V; format=format)
        @test Array(X) == full
        @test occursin(format, X[:format])
    end
end

@testset "dense" begin
    A = reshape(collect(1.0:24), 2, 3, 4)
    big = zeros(6, 5, 4)
    big[2:2:4, 2:4, :] = A
    @test Array(DenseTensor(A)) == A
    @test norm(DenseTensor(A)) == 70
    @test Array(DenseTensor(view(big, 2:2:4, 2:4, :))) == A
    @test Array(DenseTensor(view(big, 4:-2:2, 2:4, :))) == A[2:-1:1, :, :]
    @test Array(DenseTensor(PermutedDimsArray(A, (3, 1, 2)))) == permutedims(A, (3, 1, 2))
    @test Array(DenseTensor(reshape(1:24, 2, 3, 4))) == A
    @test eltype(DenseTensor(Float32.(A))) == Float32
    @test Array(DenseTensor(A[:, :, 1]')) == A[:, :, 1]'
    @test Array(DenseTensor(Diagonal([1.0, 2.0]))) == [1 0; 0 2]
    # Views that td can read are not copied first.
    @test TD.in_place(A) === A
    @test TD.in_place(view(big, 2:2:4, 2:4, :)) isa SubArray
    @test TD.in_place(PermutedDimsArray(A, (3, 1, 2))) isa PermutedDimsArray
    @test DenseTensor(A)[:max] == 24
    @test DenseTensor(A)[:sparse] == 0
    mixed = Union{Float32,Float64}[1.0 2.0f0; 3.0 4.0]
    @test Array(DenseTensor(mixed)) == mixed
    @test Array(SparseTensor(Union{Int32,Int64}[1, 2], Int32[1, 2], Union{Float32,Float64}[1.0, 2.0f0])) == [1 0; 0 2]
end

@testset "shown" begin
    X = SparseTensor(I1, I2, I3, V)
    @test sprint(show, X) == "2×3×4 SparseTensor{Float64,3} with 3 stored entries"
    @test occursin("sparse 2 x 3 x 4", sprint(show, MIME("text/plain"), X))
    @test sprint(show, DenseTensor(ones(2, 2))) == "2×2 DenseTensor{Float64,2}"
end

@testset "borrowed" begin
    A = fill(NaN, 4, 5, 4) # of which a box is borrowed: what is beside it is not read
    box = view(A, 2:3, 2:4, :)
    box .= reshape(1.0:24, 2, 3, 4)
    X = DenseTensor(box; borrow=true)
    @test X[:borrowed] == 1 && X[:bytes] < 200
    @test Array(X) == box && norm(X) ≈ 70
    A = box = nothing
    GC.gc()
    @test Array(X) == reshape(1.0:24, 2, 3, 4)
    @test DenseTensor(ones(2, 2))[:borrowed] == 0
    @test_throws ArgumentError DenseTensor(ones(Int, 2, 2); borrow=true)
    @test_throws TDError DenseTensor(fill(NaN, 2, 2); borrow=true)
end

@testset "refused" begin
    e = try
        SparseTensor([1, 3], [1, 1], [1.0, 2.0]; dims=(2, 2))
    catch e
        e
    end
    @test e isa TDError && e.name == "TD_ERR_INDEX" && occursin("outside 1..2", e.text)
    @test_throws TDError SparseTensor([1, 1], [1, 1], [1.0, 2.0]; duplicates="error")
    @test_throws TDError DenseTensor([1.0 NaN])
    # libtd counts modes, rows and columns from 0.
    @test text_of_error(() -> SparseTensor([1], [1], [1.0]; dims=(1, 0))) == "mode 2: dim = 0, expected 1 or more"
    @test text_of_error(() -> norm(KTensor(([1.0 2; 3 NaN], [1.0 2])))) == "factor 1: entry at row 2, column 2 is not finite"
    @test occursin("entry 2, mode 1 (counting from 1): index 3",
                   text_of_error(() -> SparseTensor([1, 3], [1, 1], [1.0, 1.0]; dims=(2, 2))))
    @test occursin("weights[2] = ", text_of_error(() -> norm(KTensor([1.0, NaN], (ones(2, 2), ones(2, 2))))))
    @test TD.from_one("a.tns: line 3: index 4 of mode 1") == "a.tns: line 3: index 4 of mode 1"
    @test TD.from_one("dims[0] = 3, factors[2], row 1; tomode 1") == "dims[1] = 3, factors[3], row 2; tomode 1"

    any = Any[1.0 2.0; 3.0 4.0]
    for call in (DenseTensor, x -> cpals(x, 1), x -> plan(x, 1), x -> fit(KTensor((ones(2, 1), ones(2, 1))), x),
                 x -> mttkrp(x, [ones(2, 1), ones(2, 1)], 1))
        @test occursin("type Any: expected real numbers; all are real, so Float64.(x)", text_of_error(() -> call(any)))
        @test occursin("1 of them are missing", text_of_error(() -> call([1.0 missing; 3.0 4.0])))
        @test occursin("type $(ComplexF64): expected real numbers", text_of_error(() -> call(complex(ones(2, 2)))))
    end
    @test occursin("type String", text_of_error(() -> DenseTensor(["a" "b"])))
    @test occursin("values of type Union{Missing, Float64}", text_of_error(() -> SparseTensor([1], [1], [missing, 1.0])))
    @test text_of_error(() -> SparseTensor([1.0], [1], [1.0])) == "indices of type Float64: expected integers"
    @test_throws TDError SparseTensor([1], [1], [1.0]; format="hash")
    @test_throws TDError SparseTensor([1], [1], [1.0]; formt="coo")
    @test_throws ArgumentError SparseTensor([1], [1], [1.0]; tol=1.0)
    @test_throws ArgumentError SparseTensor([1], [1.0])
    @test_throws DimensionMismatch SparseTensor([1, 2], [1], [1.0])
    @test_throws DimensionMismatch SparseTensor([1], [1], [1.0]; dims=(2, 2, 2))
    @test_throws ArgumentError slice_counts(DenseTensor(ones(2, 2)), 3)
    @test_throws TDError DenseTensor(ones(2, 2))[:colour]
    @test_throws TDError read_tensor("no_such_file.tns")
end

@testset "files" begin
    mktempdir() do folder
        X = SparseTensor(I1, I2, I3, V)
        for name in ("x.tns", "x.tns.gz", "x.txt", "x.tdb")
            write_tensor(joinpath(folder, name), X)
            Y = read_tensor(joinpath(folder, name))
            @test Y isa SparseTensor{Float64,3}
            @test Array(Y) == full
        end
        write_tensor(joinpath(folder, "x.npy"), full)
        Y = read_tensor(joinpath(folder, "x.npy"))
        @test Y isa DenseTensor{Float64,3}
        @test Array(Y) == full
        heard = String[]
        read_tensor(joinpath(folder, "x.tns"); context=Context("cpu"; log=(level, text) -> push!(heard, text)))
        @test any(occursin("x.tns", text) for text in heard)
    end
end
