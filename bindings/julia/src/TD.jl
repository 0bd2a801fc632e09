"""
    TD

Decomposition of sparse and dense tensors with CP-ALS, through libtd.

```julia
using TD
X = randn(30, 20, 10)
K = cpals(X, 3; tol=1e-6, max_iters=100, seed=1)
K.λ, K.factors[1]                       # weights and an ordinary matrix
K.report.fit
```

Modes and indices count from 1. See [`cpals`](@ref), [`SparseTensor`](@ref), [`KTensor`](@ref), [`mttkrp`](@ref),
[`plan`](@ref),
[`option_table`](@ref).
"""
module TD

using LinearAlgebra
using SparseArrays
import LinearAlgebra: dot, norm, normalize
import SparseArrays: findnz, nnz

export Context, DenseTensor, DistributedKTensor, KTensor, Plan, Report, SparseTensor, TDError
export arrange, cpals, dot, findnz, fit, fixsigns, gather, labels, leading, local_factor, local_rows, mode_names, mttkrp, mttkrp!, nnz, norm, normalize,
       option_table, plan, read_ktensor, read_tensor, score, series, set_labels!, set_mode_name!, set_stream!, slice_counts, values_at,
       write_ktensor, write_report, write_tensor

include("LibTD.jl")
using .LibTD

include("library.jl")
include("handles.jl")
include("options.jl")
include("context.jl")
include("mpi.jl")
include("tensor.jl")
include("ktensor.jl")
include("distributed.jl")
include("labels.jl")
include("report.jl")
include("mttkrp.jl")
include("cpals.jl")
include("plan.jl")
include("files.jl")

__init__() = load_library()

end
