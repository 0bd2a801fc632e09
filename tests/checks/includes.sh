#!/bin/bash
# scripts/check_includes passes on this tree and fails on each kind of wrong include.
source "$(dirname "${BASH_SOURCE[0]}")/expect.sh"
check=("$root/scripts/check_includes" "$scratch/tree")

copy_tree
must_pass "${check[@]}"

# breaks FILE INCLUDE TEXT
breaks() {
  copy_tree
  echo "#include $2" >>"$scratch/tree/$1"
  must_fail "$3" "${check[@]}"
}
breaks src/core/types.hpp '"formats/formats.hpp"' 'src/core/types.hpp:'
breaks src/io/io.hpp '"tensor/tensor.hpp"' 'from here only: io/ core/'
breaks src/kernels/kernels.hpp '"kernels/loader.hpp"' 'from here only:'
breaks src/kernels/cpu/backend.hpp '"kernels/reference/backend.hpp"' 'from here only:'
breaks src/kernels/reference/backend.hpp '"formats/formats.hpp"' 'from here only:'
breaks src/plan/plan.hpp '"tensor/tensor.hpp"' 'from here only:'
breaks src/formats/formats.hpp '"tensor/tensor.hpp"' 'from here only:'
breaks src/tensor/tensor.hpp '"solvers/cpals.hpp"' 'from here only:'
breaks src/solvers/fit.hpp '"kernels/cpu/backend.hpp"' 'from here only:'
breaks src/solvers/fit.hpp '<td/td.h>' 'from here only:'
breaks c_api/guard.hpp '<td/td.hpp>' 'from here only:'
breaks cli/extra.cpp '"core/types.hpp"' 'from here only: td/'
breaks include/td/td.h '<stddef.h>' 'stdint.h'
breaks include/td/td.hpp '<fmt/format.h>' 'standard library alone'
breaks include/td/td.hpp '<unistd.h>' 'standard library alone'
breaks src/tensor/tensor.hpp '<cuda_runtime.h>' '^src/kernels/cuda/'
breaks src/solvers/fit.hpp '<mpi.h>' 'td_mpi'
breaks src/formats/formats.hpp '<omp.h>' 'parallel'
breaks src/core/types.hpp '"../io/io.hpp"' 'from the root of its tree'
