// A sorted copy that is cut into tiles: the factor rows that a tile needs stay in a near cache while all its entries
// are walked, and the segments of a row are added up, tile after tile, in f64.
//
// Threads share the light rows evenly, each walks all tiles for its own. Heavy rows, which would make that uneven, are
// the work of parts: ranges of tiles, fixed by the copy, whose sums are added in order. So the bits of a result depend
// neither on the number of threads nor on which rows are asked for.
#include "kernels/cpu/mttkrp_tiled.hpp"

#include <algorithm>
#include <atomic>
#include <type_traits>
#include <vector>

#include "core/parallel.hpp"
#include "kernels/cpu/batch.hpp"
#include "kernels/cpu/mttkrp.hpp"

namespace td::kernels::cpu {

namespace {

constexpr i64 longest_row = 448; // bytes of a row taken at once

/// Adds rows of tiles to f64 sums.
template <class T> class Adder {
public:
  Adder(const SortedView &x, const MttkrpArgs &args)
      : x_(x), entries_(args.entries), rank_(args.out.cols), batch_(args.factors, args.mode, rank_),
        partials_(in_place ? 0 : batch_size * rank_, "the sums of chunks") {
    runs_.reserve(batch_size);
    sums_.reserve(batch_size);
  }

  /// Slots [slots.begin, slots.end) of a tile; sum_of(row) gives where the sum of a row is kept.
  template <class SumOf> void add(i64 tile, Range slots, SumOf &&sum_of) {
    if (begin_of(slots.begin) == begin_of(slots.end))
      return;
    i64 first = begin_of(slots.begin);
    for (i64 slot = slots.begin; slot < slots.end; ++slot) {
      double *sum = sum_of(x_.row_index[slot]);
      const i64 row_end = begin_of(slot + 1);
      for (i64 k = begin_of(slot); k < row_end;) {
        const i64 end = std::min(k + chunk_size, row_end);
        if (end - first > batch_size) {
          flush(tile, {first, k});
          first = k;
        }
        push({static_cast<std::int32_t>(k - first), static_cast<std::int32_t>(end - first), nullptr}, sum);
        k = end;
      }
    }
    flush(tile, {first, begin_of(slots.end)});
  }

private:
  static constexpr bool in_place = std::is_same_v<T, double>;

  /// Among the entries that are asked for.
  i64 begin_of(i64 slot) const { return std::clamp(x_.row_begin[slot], entries_.begin, entries_.end); }

  void push(simd::Run<T> run, double *sum) {
    if constexpr (in_place) {
      run.out = sum;
    } else {
      run.out = partials_.data() + static_cast<i64>(runs_.size()) * rank_;
      sums_.push_back(sum);
    }
    runs_.push_back(run);
  }

  void flush(i64 tile, Range entries) {
    batch_.load(x_, tile, entries);
    simd::sum_runs(batch_.products(), runs_, in_place);
    for (std::size_t run = 0; run < sums_.size(); ++run)
      for (i64 r = 0; r < rank_; ++r)
        sums_[run][r] += static_cast<double>(runs_[run].out[r]);
    runs_.clear();
    sums_.clear();
  }

  const SortedView &x_;
  Range entries_;
  i64 rank_;
  Batch<T> batch_;
  std::vector<simd::Run<T>> runs_;
  std::vector<double *> sums_; // of an f32 tensor: where the sums of runs go
  Buffer<T> partials_;         // of an f32 tensor: the sums of runs
};

/// What all threads of one call share.
template <class T> class Job {
public:
  Job(const SortedView &x, const MttkrpArgs &args, int threads)
      : x_(x), args_(args), rank_(args.out.cols), cuts_(equal_rows(threads)),
        heavy_(slots_of(x.heavy_rows.data(), static_cast<i64>(x.heavy_rows.size()))),
        parts_(heavy_.size() > 0 ? static_cast<i64>(x.heavy_cuts.size()) - 1 : 0),
        sums_(Buffer<double>::zeros(parts_ * heavy_.size() * rank_, "the sums of heavy rows")) {}

  void run(int threads) {
    const i64 light = static_cast<i64>(cuts_.size()) - 1;
    std::atomic<i64> next{0};
    parallel(threads, [&](int, int) {
      Adder<T> adder(x_, args_);
      for (i64 item = next.fetch_add(1); item < light + parts_; item = next.fetch_add(1)) {
        if (item < light)
          add_light(adder, {cuts_[static_cast<std::size_t>(item)], cuts_[static_cast<std::size_t>(item) + 1]});
        else
          add_heavy(adder, item - light);
      }
    });
    write_heavy();
  }

private:
  /// The rows asked for are a range of [rows, rows + count), which ascends.
  Range slots_of(const i64 *rows, i64 count) const {
    return {std::lower_bound(rows, rows + count, args_.rows.begin) - rows,
            std::lower_bound(rows, rows + count, args_.rows.end) - rows};
  }

  /// Cuts the rows asked for into parts of about equally many nonzeros in light rows.
  std::vector<i64> equal_rows(int parts) const {
    const auto at = [&](i64 row) {
      return std::lower_bound(x_.light_cuts.begin(), x_.light_cuts.end(), row) - x_.light_cuts.begin();
    };
    const Range loads{at(args_.rows.begin), at(args_.rows.end)};
    std::vector<i64> cuts{args_.rows.begin};
    for (int part = 1; part < parts; ++part) {
      const i64 row = x_.light_cuts[static_cast<std::size_t>(part_of(loads, part, parts).begin)];
      cuts.push_back(std::clamp(row, cuts.back(), args_.rows.end));
    }
    cuts.push_back(args_.rows.end);
    return cuts;
  }

  void add_light(Adder<T> &adder, Range rows) {
    constexpr bool in_place = std::is_same_v<T, double>;
    zero_rows(args_.out, rows);
    auto sums = Buffer<double>::zeros(in_place ? 0 : rows.size() * rank_, "the sums of rows");
    const auto sum_of = [&](i64 row) -> double * {
      if constexpr (in_place)
        return args_.out.template row<double>(row);
      else
        return sums.data() + (row - rows.begin) * rank_;
    };
    for (i64 tile = 0; tile < x_.tiles; ++tile) {
      const i64 *begin = x_.row_index + x_.tile_light[tile];
      const i64 *end = x_.row_index + x_.tile_begin[tile + 1];
      adder.add(tile,
                {std::lower_bound(begin, end, rows.begin) - x_.row_index,
                 std::lower_bound(begin, end, rows.end) - x_.row_index},
                sum_of);
    }
    if constexpr (!in_place)
      for (i64 i = 0; i < rows.size(); ++i)
        write_row(rows.begin + i, sums.data() + i * rank_);
  }

  void add_heavy(Adder<T> &adder, i64 part) {
    const i64 *begin = x_.heavy_rows.data() + heavy_.begin;
    double *sums = sums_.data() + part * heavy_.size() * rank_;
    const auto sum_of = [&](i64 row) {
      return sums + (std::lower_bound(begin, begin + heavy_.size(), row) - begin) * rank_;
    };
    for (i64 tile = x_.heavy_cuts[static_cast<std::size_t>(part)];
         tile < x_.heavy_cuts[static_cast<std::size_t>(part) + 1]; ++tile) {
      const i64 first = x_.tile_begin[tile];
      const Range slots = slots_of(x_.row_index + first, x_.tile_light[tile] - first);
      adder.add(tile, {first + slots.begin, first + slots.end}, sum_of);
    }
  }

  void write_heavy() {
    Buffer<double> sum(rank_, "the sum of a heavy row");
    for (i64 h = 0; h < heavy_.size(); ++h) {
      std::fill(sum.begin(), sum.end(), 0.0);
      for (i64 part = 0; part < parts_; ++part)
        for (i64 r = 0; r < rank_; ++r)
          sum[r] += sums_[(part * heavy_.size() + h) * rank_ + r];
      write_row(x_.heavy_rows[static_cast<std::size_t>(heavy_.begin + h)], sum.data());
    }
  }

  void write_row(i64 row, const double *sum) {
    T *out = args_.out.template row<T>(row);
    for (i64 r = 0; r < rank_; ++r)
      out[r] = static_cast<T>(sum[r]);
  }

  const SortedView &x_;
  const MttkrpArgs &args_;
  i64 rank_;
  std::vector<i64> cuts_; // of rows, between threads
  Range heavy_;           // those of the heavy rows that are asked for
  i64 parts_;
  Buffer<double> sums_; // [parts][heavy rows asked for][rank]
};

} // namespace

// Tiles are made for rows of some 256 bytes: longer rows are taken a part at a time, each in a pass of its own, so that
// the rows of a tile stay in the cache that it was made for.
void mttkrp_tiled(const SortedView &x, const MttkrpArgs &args, int threads) {
  const auto useful = static_cast<int>(std::clamp<i64>(x.nnz / grain, 1, threads));
  const i64 lanes = simd::lanes(args.out.type);
  const i64 registers = (args.out.cols + lanes - 1) / lanes;
  const i64 passes = (args.out.cols * size_of(args.out.type) + longest_row - 1) / longest_row;
  for (i64 pass = 0; pass < passes; ++pass) {
    const Range part = part_of({0, registers}, pass, passes);
    const Range columns{part.begin * lanes, std::min(part.end * lanes, args.out.cols)};
    std::vector<ConstMatrix> factors;
    for (const ConstMatrix &a : args.factors)
      factors.push_back(a.data == nullptr ? a : a.columns(columns.begin, columns.end));
    MttkrpArgs some = args;
    some.factors = factors;
    some.out = args.out.columns(columns.begin, columns.end);
    dispatch(args.out.type, [&](auto zero) { Job<decltype(zero)>(x, some, useful).run(useful); });
  }
}

} // namespace td::kernels::cpu
