"""The processes of mpi4py decompose one tensor, of which each makes its own entries:

    mpirun -n 4 python3 mpi.py
"""
import numpy as np
from mpi4py import MPI

import td

comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()
context = td.Context("cpu", communicator=comm, threads=1)  # all processes; what is called with it, they call together

# A tensor of rank 2 with some of its places: process r makes every size-th of them.
dims, entries = (60, 50, 40), 20000
rng = np.random.default_rng(7)  # the same numbers everywhere
factors = [rng.random((n, 2)) for n in dims]
i, j, k = np.unravel_index(rng.choice(np.prod(dims), entries, replace=False), dims)
values = np.einsum("er,er,er->e", factors[0][i], factors[1][j], factors[2][k])
x = td.sparse_tensor([a[rank::size] for a in (i, j, k)], values[rank::size], dims, context=context)
comm.Barrier()  # messages of the program's own never meet td's
model = td.cpals(x, 4, tol=0, max_iters=20, context=context)

# Every process has the whole model; the run of one process comes to the same.
alone = td.cpals(td.sparse_tensor([i, j, k], values, dims), 4, tol=0, max_iters=20)
assert abs(model.report.fit - alone.report.fit) < 1e-8, (model.report.fit, alone.report.fit)
assert model.report.workers == size and len(set(comm.allgather(model.report.fit))) == 1
assert size == 1 or model.report.exchanged_bytes > 0
here = comm.gather(x["stored_here"])
if rank == 0:
    print(f"{size} processes with {' + '.join(map(str, here))} entries: fit {model.report.fit:.6f}")

# The model in blocks: each process has some rows of each factor, and all of it is there when it is asked for.
blocks = td.cpals(x, 4, tol=0, max_iters=20, context=context, model="distributed")
whole = blocks.gather()
for m, n in enumerate(dims):
    rows = blocks.local_rows(m)
    assert len(rows) == n // size + (rank < n % size) and (blocks.local_factor(m) == whole.factors[m][rows]).all()
assert whole.shape == blocks.shape == dims and abs(whole.norm() - blocks.norm()) < 1e-10 * whole.norm()
assert abs(whole.score(model).score - 1) < 1e-6, whole.score(model)
again = td.cpals(x, 4, tol=0, max_iters=2, context=context, init=blocks)
assert again.report.fit > blocks.report.fit - 1e-10, (again.report.fit, blocks.report.fit)

# A dense tensor comes in blocks, whatever they are: here slabs of the last mode.
array = np.einsum("ar,br,cr->abc", *factors)
begin, end = (dims[2] * p // size for p in (rank, rank + 1))
dense = td.tensor(array[:, :, begin:end], shape=dims, first=(0, 0, begin), context=context)
model = td.cpals(dense, 2, tol=0, max_iters=20, context=context)
alone = td.cpals(array, 2, tol=0, max_iters=20)
assert dense.shape == dims and abs(model.report.fit - alone.report.fit) < 1e-8, (model.report.fit, alone.report.fit)

# What goes wrong on one process, all hear of.
if size > 1:
    try:
        td.sparse_tensor([[0], [0], [0]], [np.nan if rank == size - 1 else 1.0], dims, context=context)
        raise SystemExit("a value that is not a number was taken")
    except td.TdError as error:
        assert f"process {size - 1} of {size}" in str(error), error
