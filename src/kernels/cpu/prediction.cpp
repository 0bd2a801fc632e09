// What this backend would do, for the plan. Bytes follow the kernels' own allocations; seconds over entries are those
// of cpu_model.hpp. The rows of a partial product's cells are read once, from memory, beside their arithmetic, as a
// dense tensor is.
#include <algorithm>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "kernels/cpu/backend.hpp"
#include "kernels/cpu/cells_cuts.hpp"
#include "kernels/cpu/gram_cuts.hpp"
#include "kernels/cpu/scattered.hpp"
#include "kernels/cpu/simd.hpp"
#include "kernels/cpu_model.hpp"

namespace td::kernels::cpu {

namespace {

// Kernels reach these parts of the rates that are measured: they have other things to do besides.
constexpr double product_part = 0.9;
// A tall result is written as fast as so many reads of it. The second mode of 5 x 3,000,000 took 30 ms at rank 32 where
// memory gave 31 GB/s (2 cores of a Zen 5).
constexpr double result_reads = 1.2;
// An element of a Khatri-Rao row takes about as long as so many operations where its factors are in a cache: 12 in the
// first mode of 3 x 300 x 300 x 300 at rank 32, when each column had a row.
constexpr double made_operations = 10;
constexpr double cells_part = 0.1; // two numbers are loaded for each multiply-add

/// Columns of whole registers; of ranks that no memory holds about so many, for the sake of their sum's range.
i64 padded_columns(i64 rank, ValueType type) { return simd::padded(std::min(rank, i64{1} << 62), type); }

double numbers(const ConstMatrix &a) { return static_cast<double>(a.rows) * static_cast<double>(a.cols); }

class Predictor {
public:
  Predictor(const MttkrpArgs &args, ValueType values, int threads, const Rates &rates)
      : args_(args), widens_(values != args.out.type), threads_(threads), rates_(rates),
        rank_(static_cast<double>(args.out.cols)), element_(static_cast<double>(size_of(args.out.type))) {}

  /// Bytes of factors and elements in f64, for sums in f64 of an f32 tensor.
  double copied_bytes(const TensorView &x) const {
    double count = 0;
    for (int m = 0; m < order() && widens_; ++m)
      if (m != args_.mode)
        count += numbers(args_.factors[static_cast<std::size_t>(m)]);
    if (widens_ && std::holds_alternative<DenseView>(x))
      count += static_cast<double>(entries_of(x));
    return 8 * count;
  }

  Prediction operator()(const SortedView &x) const {
    const bool tiled = x.tiles > 1;
    const double part = static_cast<double>(args_.rows.size()) / static_cast<double>(std::max<i64>(args_.out.rows, 1));
    Prediction f;
    f.kernel = tiled ? fmt::format("sorted by the mode, {} tiles whose factor rows stay in cache", x.tiles)
                     : "sorted by the mode, row after row";
    f.conflicts = tiled ? "each thread owns rows, heavy rows are summed by parts"
                        : "each thread owns rows, rows between threads are summed by parts";
    f.bytes = batch_bytes();
    if (tiled && args_.out.type == ValueType::f32)
      f.bytes += 8 * rank_ * static_cast<double>(args_.rows.size()) + threads_ * 4 * rank_ * simd::batch_size;
    Walk walk = walk_over(x, args_.out.type);
    walk.entries *= part;
    walk.sums *= part;
    f.seconds = seconds(walk);
    return f;
  }

  Prediction operator()(const BlcoView &x) const {
    return scattered(x.blocks == 1 ? "one copy in linearized order" : "one copy in linearized order, block by block", x,
                     8);
  }
  Prediction operator()(const CooView &x) const { return scattered("coordinates", x, 8 * std::ssize(x.dims)); }

  Prediction operator()(const DenseView &x) const {
    double n = 1;
    for (const i64 d : x.dims)
      n *= static_cast<double>(d);
    n *= static_cast<double>(args_.rows.size()) / static_cast<double>(std::max<i64>(args_.out.rows, 1));
    Prediction f;
    f.kernel = "tiles of the Khatri-Rao product, made in cache, times the tensor where it lies";
    f.conflicts = "fixed parts, summed in order";
    const i64 rows = args_.rows.size();
    const i64 padded = padded_columns(args_.out.cols, args_.out.type);
    const InMemoryOrder ordered(x);
    const DenseCuts cuts(ordered.view().dims, ordered.place_of(args_.mode), padded,
                         static_cast<i64>(size_of(args_.out.type)));
    const i64 groups = cuts.groups(rows, padded, threads_);
    const auto width = static_cast<double>(padded);
    const auto at_once = static_cast<double>(std::min<i64>(threads_, cuts.parts * groups));
    const i64 lanes = simd::lanes(args_.out.type);
    const UnfoldingPlaces places(ordered.view(), ordered.place_of(args_.mode));
    const bool by_fibers = has_even_fibers(places, cuts) && cuts.by_fibers(rows, args_.out.cols, padded, lanes);
    const i64 unit = by_fibers ? lanes : 1;
    const i64 units = ceil_of(rows, unit);
    const auto sums = cuts.parts > 1 ? static_cast<double>(cuts.parts) * static_cast<double>(units * unit)
                                     : at_once * static_cast<double>(cuts.summed(ceil_of(units, groups), unit));
    f.bytes = width * (8 * sums + element_ * at_once * static_cast<double>(cuts.product_rows()));
    if (!ordered.view().strides.empty()) {
      f.kernel += ", in blocks that are gathered where gaps part them";
      if (gathers_blocks(places, cuts))
        f.bytes += element_ * at_once * static_cast<double>(cuts.gathered(rows));
    }
    if (known()) {
      const double made = cuts.made() * static_cast<double>(groups);
      double far = 0; // bytes of factors that no cache holds
      for (int m = 0; m < order(); ++m)
        if (const double bytes = element_ * numbers(args_.factors[static_cast<std::size_t>(m)]);
            m != args_.mode && bytes > static_cast<double>(middle_bytes))
          far += bytes;
      const double columns = by_fibers ? rank_ : width; // that are multiplied
      f.seconds = std::max(n * element_ / rates_.read, 2 * n * columns / (product_part * operations())) +
                  std::max(far / rates_.read, made_operations * made * width / operations()) +
                  result_reads * static_cast<double>(rows) * rank_ * element_ / rates_.read;
    }
    return f;
  }

  Prediction operator()(const CellsView &x) const {
    const double part = static_cast<double>(args_.rows.size()) / static_cast<double>(std::max<i64>(args_.out.rows, 1));
    const i64 rank = std::min(args_.out.cols, i64{1} << 62);
    const i64 rows = args_.rows.size();
    const Unfolding shape(x.dims, args_.mode);
    const CellsCuts cuts(shape, rank);
    const i64 groups = cuts.groups(rows, rank, threads_);
    const auto at_once = static_cast<double>(std::min<i64>(threads_, cuts.parts * groups));
    const auto sums = cuts.parts > 1 ? static_cast<double>(cuts.parts) * static_cast<double>(rows)
                                     : at_once * static_cast<double>(ceil_of(rows, groups));
    Prediction f;
    f.kernel = "rows of cells, read once";
    f.conflicts = "fixed parts, summed in order";
    f.bytes = rank_ * (8 * sums + element_ * at_once * static_cast<double>(cuts.depth(shape) + order()));
    if (known()) {
      const double n = part * static_cast<double>(args_.entries.size()) * rank_;
      f.seconds = std::max(n * element_ / rates_.read, 2 * n / (cells_part * operations()));
    }
    return f;
  }

private:
  int order() const { return static_cast<int>(args_.factors.size()); }
  bool known() const { return rates_.read > 0 && rates_.operations > 0; }
  double operations() const { return rates_.operations * (args_.out.type == ValueType::f32 ? 2 : 1); }
  double batch_bytes() const {
    return threads_ * (static_cast<double>(sizeof(simd::Index)) * order() * simd::index_length +
                       (widens_ ? 8.0 * simd::batch_size : 0.0));
  }

  double seconds(const Walk &walk) const {
    return seconds_of(walk, args_.out.cols, padded_columns(args_.out.cols, args_.out.type), args_.out.type, rates_);
  }

  template <class View> Prediction scattered(std::string kernel, const View &x, i64 key_bytes) const {
    const bool wide = args_.out.type == ValueType::f32;
    const i64 rows = args_.rows.size();
    const i64 loads = loads_of(args_, threads_);
    Prediction f;
    f.kernel = std::move(kernel);
    Walk walk = walk_in_no_order(x.dims, args_.mode, args_.entries.size(), key_bytes + size_of(args_.out.type));
    f.bytes = batch_bytes();
    if (args_.conflicts == Conflicts::owner && threads_ > 1) {
      f.conflicts = "each thread owns rows and looks at all entries";
      walk.sums = 0;
      f.seconds = static_cast<double>(loads) * seconds(walk);
      return f;
    }
    // Entries are ordered by the highest bits of the longest mode first: there each thread's lie in rows of its own.
    bool longest = true; // of equal ones the last
    for (int m = 0; m < order(); ++m)
      longest = longest && args_.factors[static_cast<std::size_t>(m)].rows <= args_.out.rows - (m > args_.mode ? 1 : 0);
    const i64 spanned = longest && rows > few_rows ? rows / loads : rows;
    // An f64 result serves the first thread.
    const double own = static_cast<double>(wide ? loads : loads - 1) * static_cast<double>(spanned);
    const bool atomic = args_.conflicts == Conflicts::atomic;
    if (loads == 1 && !wide && !atomic) {
      f.conflicts = "one thread";
    } else if (!atomic &&
               (args_.conflicts != Conflicts::automatic || own <= static_cast<double>(most_private_rows(args_)))) {
      f.conflicts = rows <= few_rows ? "rows of each thread's own, merged in order"
                                     : "rows of each thread's own, as many as its entries span, merged in order";
      f.bytes += 8 * rank_ * own;
      walk.sums += 2 * own;
    } else {
      f.conflicts = atomic ? "atomic additions"
                           : "rows of each thread's own where entries span few enough, else atomic additions";
      f.bytes += (wide ? 8 * rank_ * static_cast<double>(rows) : 0) +
                 static_cast<double>(loads) * 8 * rank_ * static_cast<double>(simd::batch_size);
      walk.sums += walk.entries; // as if each were read and written
    }
    f.seconds = seconds(walk);
    return f;
  }

  const MttkrpArgs &args_;
  bool widens_; // f32 values, f64 sums
  int threads_;
  const Rates &rates_;
  double rank_;
  double element_;
};

} // namespace

Rates CpuBackend::nominal_rates() const {
  const auto n = static_cast<double>(threads_);
  return {core_rates.read * n, core_rates.near_rows * n, core_rates.middle_rows * n, core_rates.far_rows * n,
          core_rates.operations * n};
}

Prediction CpuBackend::predict_mttkrp(const TensorView &x, const MttkrpArgs &args, const Rates &rates) const {
  const Predictor predictor(args, type_of(x), threads_, rates);
  Prediction f = std::visit(predictor, x);
  const double copied = predictor.copied_bytes(x);
  f.bytes += copied;
  if (rates.read > 0)
    f.seconds += 1.5 * copied / rates.read; // 4 bytes are read and 8 written for each
  return f;
}

Prediction CpuBackend::predict_mttkrp_cells(const CellsView &x, const MttkrpArgs &args, const Rates &rates) const {
  return Predictor(args, x.rows.type, threads_, rates)(x);
}

// The tensor is read beside the arithmetic; the result is written, for which its lines are read first.
Prediction CpuBackend::predict_mttkrp_slabs(const DenseView &x, i64 rank, const Rates &rates) const {
  const SlabCuts cuts(x.dims, padded_columns(rank, x.type), size_of(x.type));
  const auto columns = static_cast<double>(padded_columns(rank, x.type));
  const auto size = static_cast<double>(size_of(x.type));
  const double cells = static_cast<double>(x.dims.front()) * static_cast<double>(x.dims.back());
  Prediction f;
  f.kernel = "slabs where they lie, times rows of the Khatri-Rao product";
  f.conflicts = "each thread owns rows";
  f.bytes = threads_ * columns * (size * static_cast<double>(cuts.chunk) + 8 * static_cast<double>(cuts.rows));
  if (rates.read > 0 && rates.operations > 0) {
    const double n = cells * static_cast<double>(cuts.depth);
    const double operations = rates.operations * (x.type == ValueType::f32 ? 2 : 1);
    f.seconds = std::max(n * size / rates.read, 2 * n * static_cast<double>(rank) / (product_part * operations)) +
                2 * cells * static_cast<double>(rank) * size / rates.read;
  }
  return f;
}

// One pass, which reads rows of the right-hand side and writes the factor's, whose lines are read first; gram.cpp's
// tiles are its workspace, and the sums of its parts.
Prediction CpuBackend::predict_update(i64 rows, i64 rank, ValueType type, const Rates &rates) const {
  const auto n = static_cast<double>(rows);
  const auto r = static_cast<double>(rank);
  const GramCuts cuts(rows, std::min(rank, i64{1} << 62));
  const auto width = static_cast<double>(cuts.width);
  const auto step = static_cast<double>(cuts.step);
  const auto parts = static_cast<double>(cuts.parts);
  const double gram_threads = std::min<double>(threads_, parts);
  Prediction f;
  const bool f64 = type == ValueType::f64;
  const double buffers = 1 + (f64 ? 0 : 1) + (f64 && width == r ? 0 : 1); // half-way, right-hand side, result
  f.bytes = 8 * r * width * (parts + 1) + 8 * r * parts + 2 * 8 * r * width +
            gram_threads * 8 * std::min(step, n / parts) * (1 + buffers) * width;
  if (rates.read > 0 && rates.operations > 0)
    f.seconds = 3 * n * r * static_cast<double>(size_of(type)) / rates.read +
                3 * n * r * r / (product_part * rates.operations) + 4 * r * r * r * threads_ / rates.operations;
  return f;
}

} // namespace td::kernels::cpu
