// How MTTKRP over a sorted copy is laid out on a GPU: passes over columns, blocks, threads, and which rows of factors
// are staged in shared memory. mttkrp_sorted.cu launches what stands here, and prediction.cpp counts it. Sizes alone
// decide, in plain C++, so that it can be tested without a GPU.
#pragma once

#include <vector>

#include "kernels/cuda/sizes.hpp"
#include "kernels/tuning.hpp"

namespace td::kernels::cuda {

/// Threads of a block of the kernel for `factors` other modes, 0 for any number; `mixed`: rows are f32 and terms f64.
/// With 512 such kernels spill registers, most where keys take 8 bytes: on an H200 they took 1.04 to 1.36 times as long
/// as with 384, which spill none, and with keys of 16 bytes 1.01 to 1.18 times. With keys of 4 bytes, 384 took up
/// to 1.3 times as long.
constexpr int walk_threads(bool mixed, int key_bytes, int factors) {
  return mixed && (key_bytes == 16 || (key_bytes == 8 && factors > 0)) ? 384 : 512;
}

/// Lanes of the widest group. Where rows and sums have different types there are fewer kernels: a rank above 64 takes
/// another pass instead.
constexpr int most_lanes(bool mixed) { return mixed ? 16 : 32; }

struct SortedLayout {
  /// Another mode. A tile refers to `rows` rows of its factor, of which `staged`, all or none, are in shared memory.
  struct Mode {
    int mode = 0;
    i64 rows = 0;
    i64 staged = 0;
    i64 at = 0; // byte of shared memory at which they begin
  };

  /// One walk over the entries.
  struct Pass {
    int cols = 0;
    int pitch = 0;           // bytes of a staged row
    i64 shared = 0;          // bytes of a block
    std::vector<Mode> modes; // those that are not staged first, as their rows come from farther
  };

  /// Types, sizes and alignment of factors and result count; a null pointer is aligned.
  SortedLayout(const SortedView &x, const MttkrpArgs &args, const Chip &chip);

  i64 passes() const { return (cols + columns - 1) / columns; }
  /// The pass that begins with column `first`, a multiple of `columns`.
  Pass pass(i64 first) const;

  i64 cols = 0; // of the result
  int key_bytes = 0;
  int factors = 0; // other modes, if the kernel is one for so many; else 0
  int threads = 0; // of a block
  int blocks = 0;
  int size = 1;        // neighbouring columns a lane, loaded at once
  int lanes = 0;       // of a group
  int columns = 0;     // of a pass, the last may have fewer
  i64 fills = 0;       // times that staged rows are filled, by all blocks, about
  i64 most_shared = 0; // bytes of a block, of any call that takes the same kernel

private:
  int columns_for_staged_rows() const;

  i64 entries_ = 0;
  i64 element_ = 0;   // bytes of a number in rows
  i64 available_ = 0; // bytes of shared memory
  i64 kept_ = 0;      // of them, for the segments of groups and the system
  bool tiled_ = false;
  bool mixed_ = false;
  std::vector<Mode> modes_;
};

} // namespace td::kernels::cuda
