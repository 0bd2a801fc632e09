#!/bin/bash
# scripts/check_includes passes on this tree and fails on each kind of wrong include.
source "$(dirname "${BASH_SOURCE[0]}")/expect.sh"
check=("$root/scripts/check_includes" "$scratch/tree")

copy_tree
must_pass "${check[@]}"

# includes FILE HEADER TEXT
includes() { breaks "$1" "#include $2" "$3"; }
includes src/core/types.hpp '"formats/formats.hpp"' 'src/core/types.hpp:'
includes src/io/io.hpp '"tensor/tensor.hpp"' 'from here only: io/ core/'
includes src/kernels/kernels.hpp '"kernels/loader.hpp"' 'from here only:'
includes src/kernels/cpu/backend.hpp '"kernels/reference/backend.hpp"' 'from here only:'
includes src/kernels/reference/backend.hpp '"formats/formats.hpp"' 'from here only:'
includes src/plan/plan.hpp '"tensor/tensor.hpp"' 'from here only:'
includes src/formats/formats.hpp '"tensor/tensor.hpp"' 'from here only:'
includes src/tensor/tensor.hpp '"solvers/cpals.hpp"' 'from here only:'
includes src/solvers/fit.hpp '"kernels/cpu/backend.hpp"' 'from here only:'
includes src/solvers/fit.hpp '<td/td.h>' 'from here only:'
includes c_api/guard.hpp '<td/td.hpp>' 'from here only:'
includes cli/extra.cpp '"core/types.hpp"' 'from here only: td/'
includes include/td/td.h '<stddef.h>' 'stdint.h'
includes include/td/td.hpp '<fmt/format.h>' 'standard library alone'
includes include/td/td.hpp '<unistd.h>' 'standard library alone'
includes src/tensor/tensor.hpp '<cuda_runtime.h>' '^src/kernels/cuda/'
includes src/solvers/fit.hpp '<mpi.h>' 'td_mpi'
includes src/formats/formats.hpp '<omp.h>' 'parallel'
includes src/core/types.hpp '"../io/io.hpp"' 'from the root of its tree'
