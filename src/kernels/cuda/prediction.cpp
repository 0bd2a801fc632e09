// Bytes follow the kernels' own allocations (sizes.hpp, sorted_layout.hpp). Seconds are a simple model: an entry is
// read once and fetches a row of each other factor, from shared memory where the row is staged, else from the
// second-level cache or memory (gpu_model.hpp); and what starting kernels, ending rows and adding to rows costs
// besides. Constants are set by measurements (bench/results). A cycle of a multiprocessor is the time in which it reads
// gpu::near_bytes of shared memory.
#include "kernels/cuda/prediction.hpp"

#include <algorithm>
#include <cmath>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "kernels/cuda/dense_layout.hpp"
#include "kernels/cuda/dense_variants.hpp"
#include "kernels/cuda/sorted_layout.hpp"
#include "kernels/cuda/strided.hpp"
#include "kernels/gpu_model.hpp"

namespace td::kernels::cuda {

namespace {

constexpr double mixed_end_cycles = 65; // of a row that is written, where rows of factors are widened
constexpr double launch = 5e-6;         // seconds, of a kernel with what waits for it
constexpr double added_row = 3.4;       // rows fetched that adding to one, atomically, costs
constexpr double coo_part = 0.55;       // of the rows' rates, what the kernel for coordinates reaches
constexpr double cells_part = 0.7;      // of the reading rate, what the kernel for cells of dense tensors is to reach
constexpr double update_part = 0.78;    // of the reading rate, what the passes over a factor reach

double number_of(i64 n) { return static_cast<double>(n); }

/// Rows of a mode that `entries` neighbours in linearized order refer to: the longest modes are cut in half, one after
/// the other, until there are as many cells as such parts of all entries.
double rows_of_part(std::span<const i64> dims, int mode, double nnz, double entries) {
  std::vector<double> rows(dims.begin(), dims.end());
  for (double parts = nnz / entries; parts > 1; parts /= 2)
    *std::max_element(rows.begin(), rows.end()) /= 2;
  return std::max(rows[static_cast<std::size_t>(mode)], 1.0);
}

class Predictor {
public:
  Predictor(const MttkrpArgs &args, const Rates &rates, const Chip &chip)
      : args_(args), rates_(rates), chip_(chip), rank_(number_of(args.out.cols)),
        out_row_(rank_ * number_of(size_of(args.out.type))),
        row_type_(args.factors[args.mode == 0 ? args.factors.size() - 1 : 0].type),
        element_(number_of(size_of(row_type_))), row_(rank_ * element_) {}

  Prediction operator()(const SortedView &x) const {
    const bool tiled = x.tiles > 1;
    const bool in_order = args_.conflicts == Conflicts::owner;
    Prediction f;
    f.kernel = tiled ? fmt::format("sorted by the mode, {} tiles with factor rows staged in shared memory", x.tiles)
                     : "sorted by the mode, row after row";
    f.conflicts = !tiled     ? "rows that blocks share are summed in order"
                  : in_order ? "segments of rows are kept and summed in the order of tiles"
                             : "segments of rows are added, atomically";
    const double part = number_of(args_.rows.size()) / number_of(std::max<i64>(args_.out.rows, 1));
    const double n = part * number_of(x.nnz);
    const double segments = part * number_of(x.rows);
    const SortedLayout layout(x, args_, chip_);
    const double columns = number_of(layout.columns);
    const bool scaled = mixed() && x.type == ValueType::f64;
    f.bytes = 2 * 8 * number_of(layout.blocks) * (columns + 1) + (scaled ? 4 * rank_ : 0) +
              (tiled && in_order ? 8 * columns * segments : 0);
    if (!known())
      return f;
    const double passes = number_of(layout.passes());
    const double ends = tiled ? gpu::segment_seconds(segments, rates_)
                              : segments * (out_row_ / rates_.read + (mixed() ? cycles(mixed_end_cycles) : 0));
    f.seconds = passes * n * number_of(x.key_bytes + size_of(x.type)) / rates_.read + ends + passes * 3 * launch +
                pass_seconds(layout, (layout.passes() - 1) * layout.columns, n); // the last one may have fewer columns
    if (layout.passes() > 1)
      f.seconds += (passes - 1) * pass_seconds(layout, 0, n);
    if (tiled && in_order)
      f.seconds += launch + 2 * 8 * rank_ * segments / rates_.read;
    return f;
  }

  Prediction operator()(const BlcoView &x) const {
    Prediction f;
    f.kernel = "one copy in linearized order, rows of a tile of entries added up first";
    const double n = number_of(args_.entries.size());
    const double entry = number_of(8 + size_of(x.type));
    if (args_.conflicts == Conflicts::owner)
      return by_rows(std::move(f), n, entry);
    const double rows = number_of(args_.out.rows);
    const int copies = blco_copies(args_, chip_.multiprocessors);
    const bool several = copies > 1;
    f.conflicts =
        several ? fmt::format("{} copies of the result, merged in order", copies) : "added to rows atomically";
    const double padded = number_of(blco_copy_ld(args_.out.cols) * size_of(args_.out.type));
    f.bytes = several ? copies * rows * padded : 0;
    if (known()) {
      const double segments = gpu::expected_rows(rows_of_part(x.dims, args_.mode, n, blco_tile), blco_tile) / blco_tile;
      f.seconds = n * entry / rates_.read + n * (far_rows() + segments * added_row * far(rows, out_row_)) + 3 * launch +
                  (several ? 2 * copies : 1) * rows * padded / rates_.read;
    }
    return f;
  }

  Prediction operator()(const CooView &x) const {
    Prediction f;
    f.kernel = "coordinates";
    const double n = number_of(args_.entries.size());
    const double bytes = number_of(8 * std::ssize(x.dims) + size_of(x.type));
    if (args_.conflicts == Conflicts::owner)
      return by_rows(std::move(f), n, bytes);
    f.conflicts = "added to rows atomically";
    if (known()) {
      // Entries that meet in few rows wait for each other: 55 million additions of 256 bytes a second and row where
      // rows are met alike (measured with one to 132 of them), a third of it where a few are met most, as on uber.
      const double rows = number_of(args_.out.rows);
      const double meeting = out_row_ / 256 / (1.8e7 * rows);
      f.seconds = n * bytes / rates_.read + n * ((far_rows() + added_row * far(rows, out_row_)) / coo_part + meeting) +
                  2 * launch;
    }
    return f;
  }

  Prediction operator()(const DenseView &x) const {
    if (!x.strides.empty())
      return strided(x);
    const DenseKernel kernel = dense_kernel(x, args_, chip_);
    Prediction f = is_tiled(kernel) ? by_tiles(x) : kernel == DenseKernel::gemm ? by_gemm(x) : fused(x);
    f.dense = kernel;
    return f;
  }

private:
  Prediction fused(const DenseView &x) const {
    const DenseLayout l = dense_layout(x.dims, args_.mode, std::max<i64>(args_.rows.size(), 1), args_.out.cols, x.type,
                                       dense_multiply(x, args_), chip_);
    Prediction f;
    const int order = static_cast<int>(std::ssize(x.dims));
    const int first = l.begin > 0 ? l.begin : l.end; // modes before the first boundary
    f.kernel = fmt::format(
        "a matrix of {}, whose tiles meet those of the Khatri-Rao product on the tensor cores",
        l.apart() ? fmt::format("{} in the middle by the others", modes_text(l.end - l.begin))
                  : fmt::format("the first {} by the last {}", modes_text(first), modes_text(order - first)));
    f.conflicts = "sums of blocks, added in their order";
    f.bytes = 8 * (l.partials() + l.products(args_.out.cols) + l.scales(args_.out.cols));
    if (known())
      f.seconds = cycles(dense_cycles(l, chip_, rates_.read * gpu::near_bytes / rates_.near_rows)) + 2 * launch;
    return f;
  }

  Prediction by_tiles(const DenseView &x) const {
    const TileLayout l = tile_layout(x.dims, args_.mode, std::max<i64>(args_.rows.size(), 1), args_.out.cols, x.type,
                                     args_.dense, chip_);
    Prediction f;
    f.kernel = args_.dense.kernel == DenseKernel::elem ? "element by element"
               : args_.dense.kernel == DenseKernel::slice
                   ? "slice by slice"
                   : fmt::format("tiles of slices, {} wide in each other mode", l.width);
    f.conflicts = "sums of parts of slices, added in their order";
    f.bytes = 8 * l.partials(args_.out.cols);
    if (known()) {
      const double bytes = dense_part() * number_of(entries_of(x)) * number_of(size_of(x.type));
      f.seconds = std::max(cycles(tile_cycles(l, x.dims, args_.mode, x.type, chip_)),
                           number_of(l.column_tiles) * bytes / rates_.read) +
                  2 * f.bytes / rates_.read + 2 * launch;
    }
    return f;
  }

  Prediction by_gemm(const DenseView &x) const {
    const GemmLayout l =
        gemm_layout(x.dims, args_.mode, args_.rows.size(), args_.out.cols, x.type, args_.out.type, chip_);
    Prediction f;
    f.kernel = fmt::format("cuBLAS multiplies a matrix of the first {} by the last {} with a Khatri-Rao product{}",
                           modes_text(l.cut), modes_text(static_cast<int>(std::ssize(x.dims)) - l.cut),
                           l.direct ? "" : fmt::format(", {:.6g} rows at a time", number_of(l.box_rows())));
    f.conflicts = "sums of matrix products";
    f.bytes = l.bytes(args_.out.cols);
    if (known())
      f.seconds =
          cycles(gemm_cycles(l, args_.out.cols, chip_, rates_.read * gpu::near_bytes / rates_.near_rows)) + 2 * launch;
    return f;
  }
  /// The part of a dense tensor that has the rows asked for.
  double dense_part() const { return number_of(args_.rows.size()) / number_of(std::max<i64>(args_.out.rows, 1)); }

  /// Subtensors are read, written and read again.
  Prediction strided(const DenseView &x) const {
    const InMemoryOrder ordered(x, args_);
    const DenseView &view = ordered.view();
    if (view.strides.empty())
      return predict_mttkrp(view, ordered.args(), rates_, chip_);
    const Subtensors subtensors(view);
    const std::vector<i64> dims = subtensors.largest_dims();
    const Subtensor largest{dims, std::vector<i64>(dims.size(), 0), 0, 0};
    Prediction f = predict_mttkrp(DenseView{dims, x.type, nullptr, {}, x.largest},
                                  SubtensorStep(ordered.args(), largest).args(), rates_, chip_);
    f.kernel += ", of blocks that are gathered where gaps separate them";
    const auto bytes = static_cast<double>(subtensors.most()) * static_cast<double>(size_of(x.type));
    f.bytes += bytes;
    if (known())
      f.seconds = static_cast<double>(subtensors.count()) * (f.seconds + 2 * bytes / rates_.read + launch);
    return f;
  }
  static std::string modes_text(int count) { return count == 1 ? "mode" : fmt::format("{} modes", count); }
  bool mixed() const { return row_ != out_row_; }
  bool known() const {
    return rates_.read > 0 && rates_.near_rows > 0 && rates_.middle_rows > 0 && rates_.far_rows > 0;
  }
  /// Seconds that all multiprocessors together take for so many cycles of one.
  double cycles(double of_one) const { return of_one * gpu::near_bytes / rates_.near_rows; }
  /// Seconds for one of `rows` rows of so many bytes in no order.
  double far(double rows, double bytes) const { return bytes / gpu::row_rate(rows * bytes, rates_, chip_); }
  /// Seconds for one row of each other factor.
  double far_rows() const {
    double seconds = 0;
    for (int m = 0; m < static_cast<int>(args_.factors.size()); ++m)
      if (m != args_.mode)
        seconds += far(number_of(args_.factors[static_cast<std::size_t>(m)].rows), row_);
    return seconds;
  }

  /// Seconds of the pass that begins with column `first` for the rows that `n` entries fetch, and for staging rows.
  /// Rows that are staged and others come at the same time, unless widening them is the work.
  double pass_seconds(const SortedLayout &layout, i64 first, double n) const {
    const gpu::RowTypes types{row_type_, args_.out.type};
    const SortedLayout::Pass pass = layout.pass(first);
    const double fetched = number_of(pass.cols) * element_;
    gpu::Fetches fetches;
    for (const SortedLayout::Mode &mode : pass.modes) {
      if (mode.staged > 0)
        fetches.add_staged(fetched, number_of(mode.staged) * fetched, types, rates_);
      else
        fetches.add_far(fetched, number_of(mode.rows) * row_, types, rates_, chip_);
    }
    const double rows = mixed() ? fetches.near + fetches.far : std::max({fetches.near, fetches.far, fetches.least});
    return n * rows +
           gpu::fill_seconds(fetches, number_of(layout.fills - layout.blocks + 1), number_of(layout.blocks), rates_);
  }

  /// Entries in no order, sorted by row first: pairs of a row and a number, four bytes at a time.
  Prediction by_rows(Prediction f, double n, double bytes) const {
    f.conflicts = "entries are sorted by row in every call";
    f.bytes = n * 48; // those before, after, and while they are sorted
    const double passes = std::ceil(std::log2(number_of(args_.out.rows) + 1) / 8);
    if (known())
      f.seconds = (16 + passes * 48) * n / rates_.read + n * (std::max(bytes, 32.0) / rates_.far_rows + far_rows()) +
                  (4 + 2 * passes) * launch;
    return f;
  }

  const MttkrpArgs &args_;
  const Rates &rates_;
  const Chip &chip_;
  double rank_;
  double out_row_;     // bytes of a row of the result
  ValueType row_type_; // of the numbers in the other factors
  double element_;     // bytes of one
  double row_;         // bytes of their rows
};

} // namespace

Prediction predict_mttkrp(const TensorView &x, const MttkrpArgs &args, const Rates &rates, const Chip &chip) {
  Prediction f = std::visit(Predictor(args, rates, chip), x);
  if (f.seconds > 0 && args.out.type != type_of(x)) // sums in f64, rounded at the end
    f.seconds += 12 * number_of(args.out.rows * args.out.cols) / rates.read + launch;
  return f;
}

// The cells' rows are read once, and sums of parts written and read.
Prediction predict_mttkrp_cells(const CellsView &x, const MttkrpArgs &args, const Rates &rates, const Chip &chip) {
  const i64 n = x.dims[static_cast<std::size_t>(args.mode)];
  const double rank = number_of(args.out.cols);
  const double parts = number_of(cells_layout(x.dims, args.mode, args.out.cols, chip.multiprocessors).parts);
  const double rows = number_of(args.rows.size());
  Prediction f;
  f.kernel = "rows of cells, read once";
  f.conflicts = "sums of blocks, added in their order";
  f.bytes = parts > 1 ? 8 * parts * rows * rank : 0;
  if (rates.read > 0)
    f.seconds =
        ((number_of(args.entries.size()) * rows / number_of(n) + rows) * rank * number_of(size_of(x.rows.type)) +
         2 * f.bytes) /
            (cells_part * rates.read) +
        2 * launch;
  return f;
}

Prediction predict_mttkrp_slabs(const DenseView &x, i64 rank, const Rates &rates, const Chip &chip) {
  const DenseLayout l = slab_layout(x.dims, rank, x.type, chip);
  Prediction f;
  f.kernel = "slabs where they lie, whose tiles meet those of the Khatri-Rao product on the tensor cores";
  f.conflicts = "tiles of rows have owners, or sums of blocks are added in their order";
  f.bytes = 8 * (l.partials() + l.products(rank));
  if (rates.read > 0 && rates.near_rows > 0)
    f.seconds =
        dense_cycles(l, chip, rates.read * gpu::near_bytes / rates.near_rows) * gpu::near_bytes / rates.near_rows +
        2 * launch;
  return f;
}

Rates nominal_rates(const Chip &chip) { return gpu::nominal_rates(chip); }

// The solve reads rows and writes them; of more columns than it sums by itself, its Gram matrix and norms read them
// once more each. f32 takes as long as f64, since its numbers are widened. Besides some kernels, and the inverse, which
// one block makes up to rank 64.
Prediction predict_update(i64 rows, i64 rank, const Rates &rates, const Chip &chip) {
  const double n = number_of(rows);
  const double r = number_of(rank);
  const bool narrow = rank <= mma_tile;
  const double gram = 8.0 * (narrow ? number_of(narrow_part * narrow_grid(rows, chip.multiprocessors))
                                    : mma_tile * mma_tile * number_of(gram_pairs(rank) * gram_blocks(rows, rank)));
  const double sums = 8 * r * number_of(column_blocks(rows, rank));
  Prediction f;
  // Beyond small_rank: the factorization's two matrices, cuSOLVER's workspace of about one, and then a product's rows.
  const double product = rank > small_rank ? 2 * 8 * r * number_of(solve_staged_rows(rows, rank)) : 0;
  const double solve = narrow ? 0 : std::max(rank > small_rank ? 3 * 8 * r * r : 0, 8 * r * r + product);
  f.bytes = std::max({gram, sums, solve});
  if (rates.read > 0) {
    const double inverse = rank <= small_rank ? 2.1e-5 * std::pow(std::max(r / 32, 0.25), 2) : 1.7e-4 * r / 64;
    f.seconds = (narrow ? 2 : 4) * n * r * 8 / (update_part * rates.read) + (narrow ? 4 : 8) * launch + inverse;
  }
  return f;
}

} // namespace td::kernels::cuda
