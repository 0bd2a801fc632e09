// Where each entry of a range stands in one mode, for every sparse format: to[k - entries.begin] = index.
#pragma once

#include "kernels/cpu/simd.hpp"
#include "kernels/views.hpp"

namespace td::kernels::cpu {

void decode(const CooView &x, int mode, Range entries, simd::Index *to);
void decode(const BlcoView &x, int mode, Range entries, simd::Index *to);
void decode(const SortedView &x, int mode, Range entries, simd::Index *to);

/// The entries are of one tile, the mode is another than the sorted one.
void decode_tile(const SortedView &x, i64 tile, int mode, Range entries, simd::Index *to);

/// The part k belongs to, of consecutive parts that begin at begin[0 .. parts]; parts if k is at or past the end.
i64 part_holding(const i64 *begin, i64 parts, i64 k);

} // namespace td::kernels::cpu
