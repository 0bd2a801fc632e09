#!/bin/bash
# scripts/check_names passes on this tree and fails where a file's constant has the name of a header's.
source "$(dirname "${BASH_SOURCE[0]}")/expect.sh"
check=("$root/scripts/check_names" "$scratch/tree")

copy_tree
must_pass "${check[@]}"
echo 'constexpr i64 middle_bytes = 1;' >>"$scratch/tree/src/kernels/cpu/gram.cpp"
must_fail "constant 'middle_bytes' has the name of one in src/kernels/cpu_model.hpp" "${check[@]}"
copy_tree
echo 'constexpr i64 middle_bytes = 1;' >>"$scratch/tree/src/tensor/facts.cpp" # in another namespace
must_pass "${check[@]}"
