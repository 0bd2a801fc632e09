#include "kernels/cuda/sorted_layout.hpp"

#include <algorithm>

#include "kernels/gpu_model.hpp"

namespace td::kernels::cuda {

namespace {

constexpr i64 entries_each = 1024;  // that a block has at least
constexpr i64 most_staged = 1024;   // rows of a mode that passes are made narrower for
constexpr i64 system_bytes = 1024;  // of a block's shared memory
constexpr int unaligned_lanes = 32; // where a lane loads one column at a time
constexpr i64 most = i64{1} << 60;  // of ranks and tiles that no memory holds, for the sake of their sum's range

/// Tiles that the entries lie in, about.
i64 tiles_met(const SortedView &x, i64 entries) {
  const i64 tiles = std::min(x.tiles, most);
  const double met =
      static_cast<double>(tiles) * static_cast<double>(entries) / static_cast<double>(std::max<i64>(x.nnz, 1));
  return std::min(tiles, static_cast<i64>(met) + 1);
}

} // namespace

SortedLayout::SortedLayout(const SortedView &x, const MttkrpArgs &args, const Chip &chip)
    : cols(std::min(args.out.cols, most)), key_bytes(x.key_bytes), entries_(args.entries.size()),
      element_(size_of(args.factors[args.mode == 0 ? 1 : 0].type)), available_(chip.shared_bytes), tiled_(x.tiles > 1),
      mixed_(element_ != size_of(args.out.type)) {
  bool aligned = mixed_ || is_aligned(args.out);
  bool narrow = true; // no index needs more than 32 bits
  bool from_memory = false;
  for (int m = 0; m < static_cast<int>(x.dims.size()); ++m) {
    if (m == args.mode)
      continue;
    const auto at = static_cast<std::size_t>(m);
    modes_.push_back({m, x.rows_in_tile(m)});
    aligned = aligned && is_aligned(args.factors[at]);
    narrow = narrow && x.layout.bits[at] <= 32;
    const double bytes = static_cast<double>(modes_.back().rows) * static_cast<double>(element_ * cols);
    // Such rows need room in the first-level cache to arrive in.
    from_memory = from_memory || gpu::come_from_memory(bytes, chip);
  }
  if (from_memory)
    available_ -= gpu::room_for_far_rows;
  const auto others = static_cast<int>(modes_.size());
  size = aligned ? 16 / static_cast<int>(element_) : 1;
  factors = (others == 2 || others == 3) && narrow && aligned && key_bytes < 16 ? others : 0;
  threads = walk_threads(mixed_, key_bytes, factors);
  blocks = static_cast<int>(std::clamp<i64>(entries_ / entries_each, 1, chip.multiprocessors));
  fills = blocks + tiles_met(x, entries_) - 1;
  const Passes passes(cols, size, aligned ? columns_for_staged_rows() : unaligned_lanes);
  columns = passes.columns;
  lanes = aligned ? passes.lanes : unaligned_lanes;
  kept_ = 2 * i64{threads / lanes} * 4 + system_bytes;
  most_shared = chip.shared_bytes - kept_;
}

/// Gives so many columns a pass that the rows which a tile was made for can be staged, but not fewer than make whole
/// lines.
int SortedLayout::columns_for_staged_rows() const {
  const int widest = most_lanes(mixed_) * size;
  if (!tiled_)
    return widest;
  i64 rows = 0;
  for (const Mode &mode : modes_)
    if (mode.rows <= most_staged)
      rows += mode.rows;
  int narrower = widest;
  const auto fits = [&] {
    const i64 groups = threads / Passes(narrower, size, narrower).lanes;
    return narrower * (rows * element_ + 2 * groups * 8) <= available_ - 2048;
  };
  while (narrower > 8 * size && !fits())
    narrower -= size;
  return fits() ? narrower : widest;
}

SortedLayout::Pass SortedLayout::pass(i64 first) const {
  Pass pass;
  pass.cols = static_cast<int>(std::min<i64>(columns, cols - first));
  pass.pitch = (pass.cols + size - 1) / size * size * static_cast<int>(element_);
  const i64 groups = threads / lanes;
  pass.shared = (2 * groups * pass.cols * 8 + 15) / 16 * 16; // sums that groups share; staged rows stand behind
  const i64 available = available_ - kept_;
  // Those with fewest rows first, as long as they fit and are read more often than they are filled.
  std::vector<Mode> by_rows = modes_;
  std::sort(by_rows.begin(), by_rows.end(), [](const Mode &a, const Mode &b) { return a.rows < b.rows; });
  pass.modes = modes_;
  for (const Mode &next : by_rows) {
    if (next.rows > available || pass.shared + next.rows * pass.pitch > available ||
        fills > entries_ / 2 / std::max<i64>(next.rows, 1))
      break;
    Mode &mode =
        *std::find_if(pass.modes.begin(), pass.modes.end(), [&](const Mode &m) { return m.mode == next.mode; });
    mode.staged = mode.rows;
    mode.at = pass.shared;
    pass.shared += mode.rows * pass.pitch;
  }
  std::stable_sort(pass.modes.begin(), pass.modes.end(),
                   [](const Mode &a, const Mode &b) { return a.staged == 0 && b.staged > 0; });
  return pass;
}

} // namespace td::kernels::cuda
