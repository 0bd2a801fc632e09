// Each row's nonzeros are neighbours, so a row is summed in registers and written once, by one thread, without
// conflict.
//
// A sum is cut at fixed places counted from the row's beginning: chunks of 256 nonzeros, added up in the result's type
// in order; blocks of 16 chunks, whose chunks are added in f64 in order; and the row, whose blocks are added in f64 in
// order. Threads share the nonzeros evenly and meet only at row or block boundaries, so the bits of a result depend
// neither on the number of threads nor on which rows are asked for, and a row that holds most of the tensor is still
// everyone's work.
//
// Copies that are cut into tiles: mttkrp_tiled.cpp.
#include "kernels/cpu/mttkrp.hpp"

#include <algorithm>
#include <vector>

#include "core/parallel.hpp"
#include "kernels/cpu/batch.hpp"
#include "kernels/cpu/mttkrp_tiled.hpp"

namespace td::kernels::cpu {

namespace {

constexpr i64 block_size = 16 * chunk_size;

/// A place where a thread's load begins: nonzero `at`, of row `slot`.
struct Boundary {
  i64 at = 0;
  i64 slot = 0;
};

/// A row that more than one thread works on; its blocks' sums stand at `first` in the side buffer.
struct CarryOut {
  i64 slot = 0;
  i64 first = 0;
};

/// A chunk of a row that has more than one.
struct Chunk {
  i64 slot = 0;
  i64 begin = 0; // counted from the row's first nonzero
  i64 end = 0;
};

void add_to(double *sum, const double *term, i64 rank, bool first) {
  for (i64 r = 0; r < rank; ++r)
    sum[r] = first ? term[r] : sum[r] + term[r];
}

/// What all threads of one call share.
struct Job {
  const SortedView &x;
  const MttkrpArgs &args;
  Range slots; // rows of the copy that are asked for
  std::vector<Boundary> boundaries;
  std::vector<CarryOut> carried;
  Buffer<double> side;

  i64 rank() const { return args.out.cols; }
  /// Where a row begins among the entries that are asked for, and the one before it ends.
  i64 begin_of(i64 slot) const { return std::clamp(x.row_begin[slot], args.entries.begin, args.entries.end); }
  i64 nonzeros_of(i64 slot) const { return begin_of(slot + 1) - begin_of(slot); }
  i64 blocks_of(i64 slot) const { return (nonzeros_of(slot) + block_size - 1) / block_size; }

  Job(const SortedView &view, const MttkrpArgs &arguments, int threads) : x(view), args(arguments) {
    const auto slot_of = [&](i64 row) {
      return std::lower_bound(x.row_index, x.row_index + x.rows, row) - x.row_index;
    };
    const i64 *ends = x.row_begin + 1;
    slots.begin = std::max(slot_of(args.rows.begin), std::upper_bound(ends, ends + x.rows, args.entries.begin) - ends);
    slots.end = std::min(slot_of(args.rows.end),
                         std::lower_bound(x.row_begin, x.row_begin + x.rows, args.entries.end) - x.row_begin);
    if (slots.end < slots.begin || args.entries.size() == 0)
      slots.end = slots.begin;
    const Range nonzeros{begin_of(slots.begin), begin_of(slots.end)};
    const i64 loads = std::clamp<i64>(nonzeros.size() / grain, 1, threads);
    i64 side_blocks = 0;
    for (i64 t = 0; t < loads; ++t) {
      const Boundary boundary =
          t == 0 ? Boundary{nonzeros.begin, slots.begin} : boundary_at(part_of(nonzeros, t, loads).begin);
      if (boundary.at > begin_of(boundary.slot) && (carried.empty() || carried.back().slot != boundary.slot)) {
        carried.push_back({boundary.slot, side_blocks});
        side_blocks += blocks_of(boundary.slot);
      }
      boundaries.push_back(boundary);
    }
    boundaries.push_back({nonzeros.end, slots.end});
    side = Buffer<double>(side_blocks * rank(), "the sums of rows that threads share");
  }

  /// The last row or block boundary up to nonzero `target`.
  Boundary boundary_at(i64 target) const {
    const i64 slot = slots.begin + part_holding(x.row_begin + slots.begin, slots.size(), target);
    const i64 into = slot == slots.end ? 0 : (target - begin_of(slot)) / block_size * block_size;
    return {begin_of(slot) + into, slot};
  }

  /// Where block `block` of a row that is split keeps its sum; null for a row that is not.
  double *side_of(i64 slot, i64 block) {
    for (const CarryOut &row : carried)
      if (row.slot == slot)
        return side.data() + (row.first + block) * rank();
    return nullptr;
  }

  /// Zeroes the rows asked for that stand empty before the row of `slot`.
  void zero_gap_before(i64 slot) const {
    const i64 begin = slot == slots.begin ? args.rows.begin : x.row_index[slot - 1] + 1;
    zero_rows(args.out, {begin, slot == slots.end ? args.rows.end : x.row_index[slot]});
  }

  template <class T> void write_row(i64 slot, const double *sum) const {
    T *out = args.out.row<T>(x.row_index[slot]);
    for (i64 r = 0; r < rank(); ++r)
      out[r] = static_cast<T>(sum[r]);
  }
};

/// What one thread does of a call.
template <class T> class Worker {
public:
  explicit Worker(Job &job)
      : job_(job), batch_(job.args.factors, job.args.mode, job.rank()),
        partials_(job.rank() * most_partials, "the sums of chunks"), wide_(3 * job.rank(), "the sums of a row") {
    runs_.reserve(batch_size);
    chunks_.reserve(most_partials);
  }

  void work(Boundary from, Boundary to) {
    i64 slot = from.slot;
    for (i64 k = from.at; k < to.at;) {
      const i64 first = k;
      runs_.clear();
      chunks_.clear();
      while (k < to.at) {
        const i64 row_begin = job_.begin_of(slot);
        const i64 row_end = job_.begin_of(slot + 1);
        const i64 end = std::min(row_end, k + chunk_size);
        if (end - first > batch_size)
          break;
        if (k == row_begin)
          job_.zero_gap_before(slot);
        runs_.push_back({static_cast<std::int32_t>(k - first), static_cast<std::int32_t>(end - first),
                         destination(slot, k - row_begin, end - row_begin)});
        k = end;
        if (k == row_end)
          ++slot;
      }
      batch_.load(job_.x, 0, {first, k});
      simd::sum_runs(batch_.products(), runs_, false);
      fold_chunks();
    }
  }

private:
  // Only a row of more than chunk_size nonzeros has chunks, and at most its last one is short: two rows can meet in a
  // batch with a short chunk each, and further chunks are full.
  static constexpr i64 most_partials = 2 + batch_size / chunk_size * 2;

  T *destination(i64 slot, i64 begin, i64 end) {
    if (job_.nonzeros_of(slot) <= chunk_size)
      return job_.args.out.row<T>(job_.x.row_index[slot]);
    chunks_.push_back({slot, begin, end});
    return partials_.data() + (static_cast<i64>(chunks_.size()) - 1) * job_.rank();
  }

  void fold_chunks() {
    const i64 rank = job_.rank();
    double *chunk = wide_.data();
    double *block = chunk + rank;
    double *row = block + rank;
    for (std::size_t p = 0; p < chunks_.size(); ++p) {
      const Chunk &of = chunks_[p];
      const T *partial = partials_.data() + static_cast<i64>(p) * rank;
      std::copy_n(partial, rank, chunk);
      add_to(block, chunk, rank, of.begin % block_size == 0);
      const bool row_ends = of.end == job_.nonzeros_of(of.slot);
      if (!row_ends && of.end % block_size != 0)
        continue;
      const i64 number = of.begin / block_size;
      if (double *side = job_.side_of(of.slot, number)) {
        std::copy_n(block, rank, side);
        continue;
      }
      add_to(row, block, rank, number == 0);
      if (row_ends)
        job_.template write_row<T>(of.slot, row);
    }
  }

  Job &job_;
  Batch<T> batch_;
  std::vector<simd::Run<T>> runs_;
  std::vector<Chunk> chunks_;
  Buffer<T> partials_;  // [most_partials][rank]
  Buffer<double> wide_; // a chunk's, a block's and a row's sum
};

template <class T> void join_split_rows(Job &job) {
  Buffer<double> sum(job.rank(), "the sum of a row that threads share");
  for (const CarryOut &row : job.carried) {
    for (i64 block = 0; block < job.blocks_of(row.slot); ++block)
      add_to(sum.data(), job.side_of(row.slot, block), job.rank(), block == 0);
    job.write_row<T>(row.slot, sum.data());
  }
}

template <class T> void mttkrp_whole(const SortedView &x, const MttkrpArgs &args, int threads) {
  Job job(x, args, threads);
  const auto loads = static_cast<i64>(job.boundaries.size()) - 1;
  parallel(static_cast<int>(loads), [&](int thread, int count) {
    Worker<T> worker(job);
    const Range mine = part_of({0, loads}, thread, count);
    worker.work(job.boundaries[static_cast<std::size_t>(mine.begin)],
                job.boundaries[static_cast<std::size_t>(mine.end)]);
  });
  join_split_rows<T>(job);
  job.zero_gap_before(job.slots.end);
}

} // namespace

void zero_rows(Matrix out, Range rows) {
  dispatch(out.type, [&](auto zero) {
    for (i64 i = rows.begin; i < rows.end; ++i)
      std::fill_n(out.row<decltype(zero)>(i), out.cols, zero);
  });
}

void mttkrp(const SortedView &x, const MttkrpArgs &args, int threads) {
  if (args.mode != x.mode)
    throw_error(Status::internal, "a copy sorted by mode {} was given for MTTKRP in mode {}", x.mode, args.mode);
  if (x.tiles > 1)
    return mttkrp_tiled(x, args, threads);
  dispatch(args.out.type, [&](auto zero) { mttkrp_whole<decltype(zero)>(x, args, threads); });
}

} // namespace td::kernels::cpu
