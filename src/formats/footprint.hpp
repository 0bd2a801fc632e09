// How much memory each format takes, told from sizes alone. As doubles: sizes that fit nowhere do not overflow.
#pragma once

#include <span>

#include "core/types.hpp"

namespace td::formats {

struct Footprint {
  double stored = 0;
  double building = 0; // what is needed besides, at the worst moment; the caller's arrays are not counted
};

/// Of `nnz` different entries whose coordinates lie about evenly: the rows that hold none are guessed from that.
Footprint coo_footprint(std::span<const i64> dims, i64 nnz, ValueType type);
Footprint blco_footprint(std::span<const i64> dims, i64 nnz, ValueType type);
/// A copy by each mode.
Footprint sorted_footprint(std::span<const i64> dims, i64 nnz, ValueType type, int threads);
Footprint dense_footprint(std::span<const i64> dims, ValueType type);

/// Rows that are expected to have entries if all are equally likely.
double expected_rows(double rows, double entries);

} // namespace td::formats
