# Needs libtd and Julia's standard library, and no network.
using LinearAlgebra, Test
using TD

@testset "TD" begin
    @testset "$file" for file in ("tensors", "ktensors", "labels", "runs", "plans", "callbacks", "mpi", "loading", "lifetimes", "docstrings")
        include("$file.jl")
    end
end
