// This header decides how the start by leading eigenvectors (option "init" = nvecs) goes about a mode, and what that
// takes.
#pragma once

#include "plan/layout.hpp"

namespace td::plan {

/// Modes up to this length get X_(n) X_(n)^T computed whole, O(dims[mode]) times the entries; longer ones a randomized
/// subspace iteration.
inline constexpr i64 longest_whole_mode = 512;
/// Columns of the whole matrix that are computed at a time.
inline constexpr i64 identity_columns = 64;

/// Columns of the subspace in which `count` eigenvectors of length n are looked for.
constexpr i64 subspace_columns(i64 n, i64 count) noexcept {
  constexpr i64 oversampling = 10;
  return n - count < oversampling ? n : count + oversampling;
}

/// NvecsNeed has bytes at the worst moment, besides the start itself.
struct NvecsNeed {
  double together = 0; // where all is in host memory
  double host = 0;     // where matrices of the iteration are on a device: what is on the host
  double device = 0;   // and there
};

/// Predicts them for a tensor in this layout.
NvecsNeed nvecs_need(const Layout &layout, i64 rank, int threads);

} // namespace td::plan
