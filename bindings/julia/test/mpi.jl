# What MPI.jl has of processes, by tasks: each stands for a process, and goes on while others wait. A message is copied
# when it is sent.
module TasksForMPI
mutable struct World
    size::Int
    brought::Vector{Any}
    arrived::Int
    round::Int
    changed::Condition
    messages::Dict{Tuple{Int,Int},Vector{Vector{UInt8}}}
    dups::Int
end
World(size) = World(size, Vector{Any}(undef, size), 0, 0, Condition(), Dict(), 0)
struct Comm
    world::World
    rank::Int
end
struct Request
    finish::Function
end
const SUM, MAX = +, max

Comm_rank(c::Comm) = c.rank
Comm_size(c::Comm) = c.world.size
Comm_dup(c::Comm) = (c.world.dups += 1; c)
Abort(c::Comm, code::Int) = error("aborted with $code")

function barrier(w::World)
    round = w.round
    w.arrived += 1
    if w.arrived == w.size
        w.arrived, w.round = 0, round + 1
        notify(w.changed)
    end
    while w.round == round
        wait(w.changed)
    end
end

function all_of(c::Comm, mine)
    c.world.brought[c.rank+1] = mine
    barrier(c.world)
    all = copy(c.world.brought)
    barrier(c.world)
    return all
end

Allreduce!(data, op, c::Comm) = copyto!(data, reduce((a, b) -> op.(a, b), all_of(c, copy(data))))
Bcast!(data, root::Int, c::Comm) = copyto!(data, all_of(c, copy(data))[root+1])
function Isend(data, to::Integer, tag::Integer, c::Comm)
    push!(get!(() -> Vector{UInt8}[], c.world.messages, (c.rank, Int(to))), copy(data))
    notify(c.world.changed)
    return Request(() -> nothing)
end
function Irecv!(data, from::Integer, tag::Integer, c::Comm)
    return Request() do
        while isempty(get!(() -> Vector{UInt8}[], c.world.messages, (Int(from), c.rank)))
            wait(c.world.changed)
        end
        copyto!(data, popfirst!(c.world.messages[(Int(from), c.rank)]))
    end
end
Waitall(requests::Vector{Request}) = foreach(r -> r.finish(), requests)

# What body(comm) gives on each process.
function run(body, size)
    world = World(size)
    tasks = [@async body(Comm(world, rank)) for rank in 0:size-1]
    return fetch.(tasks), world
end
end

n = 3000
i, j, k = [e % 30 + 1 for e in 1:n], [e ÷ 30 % 25 + 1 for e in 1:n], [e * e % 20 + 1 for e in 1:n]
v = [(1 + i[e]) * sin(j[e]) / (2 + k[e]) for e in 1:n]
alone = cpals(SparseTensor(i, j, k, v; dims=(30, 25, 20), context="cpu"), 3; tol=0, max_iters=6, context="cpu")

@testset "$size processes" for size in (1, 2, 3)
    came, world = TasksForMPI.run(size) do comm
        c = Context(comm; threads=1)
        mine = comm.rank+1:size:n
        X = SparseTensor(i[mine], j[mine], k[mine], v[mine]; dims=(30, 25, 20), context=c)
        K = cpals(X, 3; tol=0, max_iters=6, context=c)
        return (K.report.fit, K.report.workers, K.λ, nnz(X), K.report[:exchanged_bytes])
    end
    @test all(fit ≈ alone.report.fit for (fit, _, _, _, _) in came)
    @test all(workers == size && λ == came[1][3] for (_, workers, λ, _, _) in came)
    @test all(entries == nnz(SparseTensor(i, j, k, v)) for (_, _, _, entries, _) in came)
    @test all((sent > 0) == (size > 1) for (_, _, _, _, sent) in came)
    @test world.dups == size && all(isempty, values(world.messages))
end

# Slabs of a dense array, one a process.
@testset "dense blocks of $size processes" for size in (1, 2, 3)
    A = [(1 + a) * sin(b) / (2 + d) for a in 1:7, b in 1:6, d in 1:8]
    whole = cpals(A, 2; tol=0, max_iters=5, context="cpu")
    came, _ = TasksForMPI.run(size) do comm
        c = Context(comm; threads=1)
        slab = comm.rank*8÷size+1:(comm.rank+1)*8÷size
        X = DenseTensor(A[:, :, slab]; dims=(7, 6, 8), first=(1, 1, slab[1]), context=c)
        return Base.size(X), cpals(X, 2; tol=0, max_iters=5, context=c).report.fit
    end
    @test all(dims == (7, 6, 8) && fit ≈ whole.report.fit for (dims, fit) in came)
    @test_throws ArgumentError DenseTensor(A; dims=(7, 6), context="cpu")
    @test_throws ArgumentError DenseTensor(A; first=(1, 1), context="cpu")
end

# Each process has its block of the rows, from which all make the whole, write it and go on.
@testset "a model in blocks of $size processes" for size in (1, 2, 3)
    dims = (30, 25, 20)
    place = mktempdir()
    came, _ = TasksForMPI.run(size) do comm
        c = Context(comm; threads=1)
        mine = comm.rank+1:size:n
        X = SparseTensor(i[mine], j[mine], k[mine], v[mine]; dims=dims, context=c)
        B = cpals(X, 3; tol=0, max_iters=6, context=c, model="distributed")
        write_ktensor(joinpath(place, "k.tdb"), B)
        again = cpals(X, 3; tol=0, max_iters=1, context=c, init=B)
        return (B, gather(B), norm(B), again.report.fit)
    end
    whole = came[1][2]
    @test whole.report.fit ≈ alone.report.fit && read_ktensor(joinpath(place, "k.tdb")) == whole
    for (p, (B, K, length_, fit)) in enumerate(came)
        @test B isa DistributedKTensor{Float64,3} && Base.size(B) == dims && B.λ == whole.λ && rank(B) == 3
        @test K == whole && length_ ≈ norm(whole) && fit > whole.report.fit - 1e-10
        for m in 1:3
            @test length(local_rows(B, m)) == dims[m] ÷ size + (p <= dims[m] % size)
            @test local_factor(B, m) == whole.factors[m][local_rows(B, m), :]
        end
    end
    @test all(vcat((local_rows(B, m) for (B, _, _, _) in came)...) == 1:dims[m] for m in 1:3)
    @test_throws ArgumentError local_rows(came[1][1], 4)
end

# What fails on one process, all hear of; what a function of the communicator throws is shown, and ends the call.
@testset "failures" begin
    said, _ = TasksForMPI.run(2) do comm
        c = Context(comm)
        try
            SparseTensor([1], [1], [comm.rank == 1 ? NaN : 1.0]; dims=(2, 2), context=c)
        catch e
            return e.text
        end
    end
    @test said[1] == said[2] && occursin("process 1 of 2", said[1])
end
