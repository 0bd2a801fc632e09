#!/bin/bash
# scripts/check_confined passes on this tree and fails on each thing that stands where it should not.
source "$(dirname "${BASH_SOURCE[0]}")/expect.sh"
check=("$root/scripts/check_confined" "$scratch/tree")

copy_tree
must_pass "${check[@]}"

breaks src/tensor/tensor.hpp 'extern "C" int f();' 'stands in c_api'
breaks src/formats/formats.hpp '} catch (...) {' 'caught in c_api'
breaks src/solvers/fit.hpp '#pragma omp parallel for' 'core/parallel.hpp'
breaks src/kernels/loader.cpp 'dlopen("libcuda.so", RTLD_NOW);' 'core/beside.hpp'
breaks src/solvers/fit.hpp 'std::thread t;' 'core/parallel.hpp'
breaks src/io/io.hpp '#ifdef TD_CUDA' 'not in #if'
breaks src/io/io.hpp 'std::cout << 1;' 'does not print'
breaks src/kernels/kernels.hpp 'fprintf(stderr, "x");' 'does not print'
breaks src/core/types.hpp 'std::abort();' 'leaves the process'
breaks src/core/types.hpp 'setlocale(LC_ALL, "C");' 'leaves the process'
breaks src/core/types.hpp 'omp_set_num_threads(2);' 'leaves the process'

copy_tree
echo '// catch (...) and std::abort() in a comment are talk' >>"$scratch/tree/src/core/types.hpp"
must_pass "${check[@]}"
