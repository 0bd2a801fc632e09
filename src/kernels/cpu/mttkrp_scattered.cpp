// Nonzeros that stand in no order of rows (coordinates and BLCO): any nonzero may go to any row, so threads that share
// the nonzeros must not write the same row. Three policies:
//
//   privatize  each thread adds into rows of its own, as many as its nonzeros span; then all are added in thread order.
//              The result is the same from run to run for a number of threads.
//   atomic     one set of rows, added to with atomic instructions; when private rows would take too much memory.
//   owner      threads share the rows, and each walks all nonzeros for its own: only when it is asked for.
//
// Rows are f64 whatever the tensor's type.
#include "kernels/cpu/mttkrp.hpp"

#include <algorithm>
#include <atomic>
#include <type_traits>
#include <vector>

#include "core/parallel.hpp"
#include "kernels/cpu/batch.hpp"
#include "kernels/cpu/scattered.hpp"

namespace td::kernels::cpu {

namespace {

constexpr i64 cached_bytes = i64{1} << 20; // rows of more than this are not expected to stay in the second-level cache

/// f64 rows that sums are added to: row i at data + (i - rows.begin) * ld.
struct Target {
  Range rows;
  double *data = nullptr;
  i64 ld = 0;

  double *row(i64 i) const { return data + (i - rows.begin) * ld; }
};

template <class View> Range rows_spanned(const View &x, const MttkrpArgs &args, Range entries) {
  Range span{args.rows.end, args.rows.begin};
  std::array<simd::Index, batch_size> rows;
  for (i64 k = entries.begin; k < entries.end; k += batch_size) {
    const i64 count = std::min(batch_size, entries.end - k);
    decode(x, args.mode, {k, k + count}, rows.data());
    for (i64 j = 0; j < count; ++j) {
      const i64 row = rows[static_cast<std::size_t>(j)];
      span.begin = std::min(span.begin, row);
      span.end = std::max(span.end, row + 1);
    }
  }
  span = {std::max(span.begin, args.rows.begin), std::min(span.end, args.rows.end)};
  return span.size() > 0 ? span : Range{args.rows.begin, args.rows.begin};
}

/// Walks a thread's nonzeros, a batch at a time.
template <class View, class T> class Scatter {
public:
  Scatter(const View &x, const MttkrpArgs &args)
      : x_(x), args_(args), batch_(args.factors, args.mode, args.out.cols),
        every_row_(args.rows.begin == 0 && args.rows.end == args.out.rows) {}

  /// add(products, rows, count): nonzero k of the batch goes to rows[k], which is one of args.rows.
  template <class Add> void walk(Range entries, Add &&add) {
    for (i64 k = entries.begin; k < entries.end; k += batch_size) {
      const Range range{k, std::min(k + batch_size, entries.end)};
      i64 count = range.size();
      decode(x_, args_.mode, range, index_.data());
      std::copy_n(index_.begin(), count, rows_.begin());
      batch_.load(x_, range);
      if (!every_row_)
        count = drop_other_rows(range);
      if (count > 0)
        add(batch_.products(), rows_.data(), count);
    }
  }

private:
  i64 drop_other_rows(Range range) {
    const T *values = batch_.products().values;
    std::size_t count = 0;
    for (std::size_t j = 0; j < static_cast<std::size_t>(range.size()); ++j) {
      if (rows_[j] < args_.rows.begin || rows_[j] >= args_.rows.end)
        continue;
      kept_[count] = static_cast<i64>(j);
      values_[count] = values[j];
      rows_[count] = rows_[j];
      ++count;
    }
    batch_.keep(kept_.data(), static_cast<i64>(count), values_.data());
    return static_cast<i64>(count);
  }

  const View &x_;
  const MttkrpArgs &args_;
  Batch<T> batch_;
  bool every_row_;
  std::array<simd::Index, batch_size> index_;
  std::array<i64, simd::index_length> rows_;
  std::array<i64, batch_size> kept_;
  std::array<T, batch_size> values_;
};

template <class T, class View> void add_privately(const View &x, const MttkrpArgs &args, Range entries, Target target) {
  const bool far = target.rows.size() * target.ld * 8 > cached_bytes;
  Scatter<View, T> scatter(x, args);
  scatter.walk(entries, [&](const simd::RowProducts<T> &products, i64 *rows, i64 count) {
    for (i64 k = 0; k < count; ++k)
      rows[k] = (rows[k] - target.rows.begin) * target.ld;
    std::fill_n(rows + count, simd::prefetch_distance, i64{0});
    simd::add_rows(products, {target.data, rows, count, far});
  });
}

/// Each nonzero's terms are made in a row of their own first; a nonzero at a time reaches the shared rows.
template <class T, class View>
void add_atomically(const View &x, const MttkrpArgs &args, Range entries, Target target) {
  const i64 rank = args.out.cols;
  Scatter<View, T> scatter(x, args);
  Buffer<double> terms(batch_size * rank, "the terms of a batch");
  std::array<i64, batch_size> own;
  scatter.walk(entries, [&](const simd::RowProducts<T> &products, const i64 *rows, i64 count) {
    i64 used = 0; // neighbours in one row share a row of terms
    for (i64 k = 0; k < count; ++k) {
      used += k > 0 && rows[k] != rows[k - 1] ? 1 : 0;
      own[static_cast<std::size_t>(k)] = used * rank;
    }
    std::fill_n(terms.data(), (used + 1) * rank, 0.0);
    simd::add_rows(products, {terms.data(), own.data(), count, false});
    for (i64 k = 0; k < count; ++k) {
      if (k > 0 && rows[k] == rows[k - 1])
        continue;
      double *to = target.row(rows[k]);
      const double *term = terms.data() + own[static_cast<std::size_t>(k)];
      for (i64 r = 0; r < rank; ++r)
        std::atomic_ref(to[r]).fetch_add(term[r], std::memory_order_relaxed);
    }
  });
}

/// out[i, :] := sum over the targets that hold row i, in order.
template <class T> void merge(const MttkrpArgs &args, std::span<const Target> targets, int threads) {
  const i64 rank = args.out.cols;
  parallel_ranges(threads, args.rows.size(), scattered_grain / 8, [&](Range part) {
    Buffer<double> sum(rank, "the sum of a row");
    for (i64 i = args.rows.begin + part.begin; i < args.rows.begin + part.end; ++i) {
      std::fill(sum.begin(), sum.end(), 0.0);
      for (const Target &target : targets)
        if (i >= target.rows.begin && i < target.rows.end)
          for (i64 r = 0; r < rank; ++r)
            sum[r] += target.row(i)[r];
      std::transform(sum.begin(), sum.end(), args.out.row<T>(i), [](double s) { return static_cast<T>(s); });
    }
  });
}

void zero_targets(std::span<const Target> targets, i64 rank, int threads) {
  for (const Target &target : targets)
    parallel_ranges(threads, target.rows.size(), scattered_grain / 8, [&](Range part) {
      for (i64 i = part.begin; i < part.end; ++i)
        std::fill_n(target.data + i * target.ld, rank, 0.0);
    });
}

template <class T, class View> void mttkrp_as(const View &x, const MttkrpArgs &args, int threads) {
  if (args.conflicts == Conflicts::owner && threads > 1) {
    // One thread adds terms as they are stored.
    parallel_ranges(threads, args.rows.size(), 1, [&](Range part) {
      MttkrpArgs own = args;
      own.rows = {args.rows.begin + part.begin, args.rows.begin + part.end};
      mttkrp_as<T>(x, own, 1);
    });
    return;
  }
  const i64 rank = args.out.cols;
  const i64 loads = loads_of(args, threads);
  std::vector<Range> spans(static_cast<std::size_t>(loads), args.rows);
  const auto for_each_load = [&](auto &&body) {
    parallel(static_cast<int>(loads), [&](int thread, int count) {
      const Range mine = part_of({0, loads}, thread, count);
      for (i64 load = mine.begin; load < mine.end; ++load)
        body(static_cast<std::size_t>(load), part_of(args.entries, load, loads));
    });
  };
  if (loads > 1 && args.rows.size() > few_rows && args.conflicts != Conflicts::atomic)
    for_each_load([&](std::size_t load, Range entries) { spans[load] = rows_spanned(x, args, entries); });

  // The first load needs no rows of its own where the result is f64 itself.
  constexpr bool first_in_place = std::is_same_v<T, double>;
  if constexpr (first_in_place)
    spans[0] = args.rows;
  i64 rows = 0;
  for (const Range &span : spans)
    rows += span.size();
  const i64 own_rows = rows - (first_in_place ? spans[0].size() : 0);
  const bool few = loads == 1 || own_rows <= most_private_rows(args);
  const bool privatize = args.conflicts == Conflicts::automatic ? few : args.conflicts != Conflicts::atomic;
  if (!privatize)
    spans.assign(1, args.rows);
  const i64 buffered = privatize ? own_rows : (first_in_place ? 0 : args.rows.size());

  Buffer<double> memory(buffered * rank, "rows that threads add into");
  std::vector<Target> targets;
  double *free_rows = memory.data();
  for (const Range &span : spans) {
    if (first_in_place && targets.empty()) {
      targets.push_back({span, reinterpret_cast<double *>(args.out.row<T>(span.begin)), args.out.ld});
      continue;
    }
    targets.push_back({span, free_rows, rank});
    free_rows += span.size() * rank;
  }
  zero_targets(targets, rank, threads);
  for_each_load([&](std::size_t load, Range entries) {
    if (privatize)
      add_privately<T>(x, args, entries, targets[load]);
    else
      add_atomically<T>(x, args, entries, targets[0]);
  });
  if (!first_in_place || targets.size() > 1)
    merge<T>(args, targets, threads);
}

} // namespace

void mttkrp(const CooView &x, const MttkrpArgs &args, int threads) {
  dispatch(args.out.type, [&](auto zero) { mttkrp_as<decltype(zero)>(x, args, threads); });
}

void mttkrp(const BlcoView &x, const MttkrpArgs &args, int threads) {
  dispatch(args.out.type, [&](auto zero) { mttkrp_as<decltype(zero)>(x, args, threads); });
}

} // namespace td::kernels::cpu
