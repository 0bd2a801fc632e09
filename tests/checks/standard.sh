#!/bin/bash
# scripts/check_standard passes on this tree and fails where a file does not name the header of what it uses.
source "$(dirname "${BASH_SOURCE[0]}")/expect.sh"
check=("$root/scripts/check_standard" "$scratch/tree")

copy_tree
must_pass "${check[@]}"

breaks src/core/types.hpp 'std::deque<int> x;' 'src/core/types.hpp: std::deque needs deque'
breaks src/core/types.hpp 'fmt::join(1, 2);' 'src/core/types.hpp: fmt::join needs fmt/format.h or fmt/ranges.h'
breaks c_api/guard.hpp 'std::map<int, int> x;' 'c_api/guard.hpp: std::map needs map'
breaks src/core/types.hpp 'std::gcd(1, 2);' 'std::gcd is not in the table'
copy_tree
printf '%s\n' '#include <deque>' 'std::deque<int> x; // not std::map' >>"$scratch/tree/src/core/types.hpp"
must_pass "${check[@]}"
