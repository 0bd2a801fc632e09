// MTTKRP of a dense tensor without unfolding it and without the Khatri-Rao product: the columns of the unfolding are
// taken in tiles of at most a few hundred; the tile's rows of the Khatri-Rao product are made in cache and multiplied
// by the tile where it lies. Extra memory: O(rank * sum of dims).
//
// Two kinds of tiles, X seen as left x n x right with the mode in the middle:
//   long left    a piece of `left` for one index q of `right`. The Khatri-Rao rows of the modes before are the same for
//                every q; those of the modes after are one row, a scale of the product's columns.
//   short left   all of `left` for several q, with rows of the whole Khatri-Rao product.
//
// The tiles are cut into parts by the tensor's shape alone, each part is summed in order in f64, and the parts are
// added in order; so the bits depend neither on the number of threads nor on which rows are asked for.
#include "kernels/cpu/mttkrp.hpp"

#include <algorithm>

#include "kernels/cpu/dense.hpp"
#include "kernels/cpu/parts.hpp"

namespace td::kernels::cpu {

namespace {

constexpr i64 most_depth = 256;   // columns of a tile at most, when left is long
constexpr i64 few_rows = 32;      // where no more rows than this share a tile's rows of the Khatri-Rao product, these
constexpr i64 near_bytes = 32768; // should stay in the first-level cache (12 rows, rank 32: 39 ms, then 35)
constexpr i64 short_left = 64;    // below this, tiles span several q
constexpr i64 short_depth = 128;  // columns that such a tile aims at
constexpr i64 most_parts = 64;
constexpr i64 part_rows = 4096;     // rows of all parts' sums together, unless one part has more
constexpr i64 items_per_thread = 2; // shares of the work, so that a slow thread does not keep the others waiting
constexpr i64 least_group = 16;     // rows that make good use of a tile's Khatri-Rao rows
constexpr i64 group_rows = 24;      // rows between two requests for memory ahead
constexpr i64 prefetched_bytes = i64{256} << 10; // a quarter of a second-level cache
constexpr i64 packed_rows = 64;                  // rows that are gathered at once where a row's columns are scattered

template <class T> class DenseMttkrp {
public:
  DenseMttkrp(const DenseView &x, const MttkrpArgs &args)
      : x_(static_cast<const T *>(x.values)), args_(args), shape_(x.dims, args.mode), rank_(args.out.cols),
        padded_(simd::padded(rank_, x.type)), long_left_(shape_.left >= short_left) {
    if (shape_.n <= few_rows)
      depth_ = std::clamp<i64>(near_bytes / (padded_ * static_cast<i64>(sizeof(T))), short_left, most_depth);
    pieces_ = long_left_ ? (shape_.left + depth_ - 1) / depth_ : 1;
    q_per_tile_ = long_left_ ? 1 : std::max<i64>(1, short_depth / shape_.left);
    tiles_ = pieces_ * ((shape_.right + q_per_tile_ - 1) / q_per_tile_);
    parts_ = std::min(tiles_, std::clamp<i64>(part_rows / shape_.n, 1, most_parts));
  }

  void run(int threads) {
    const i64 rows = args_.rows.size();
    if (rows == 0)
      return;
    // Where parts are few, rows are shared too: each group makes the Khatri-Rao rows of its tiles again.
    const i64 wanted = (items_per_thread * threads + parts_ - 1) / parts_;
    const i64 groups = std::clamp<i64>(wanted, 1, std::max<i64>(rows / least_group, 1));
    sums_ = Buffer<double>(parts_ * rows * padded_, "the sums of a dense MTTKRP");
    for_each_item(threads, parts_ * groups, [&](i64 item) {
      add_part(item / groups, part_of({0, rows}, item % groups, groups));
    });
    parallel_ranges(threads, rows, 64, [&](Range part) { write_rows(part); });
  }

private:
  /// Sums the tiles of a part for rows counted from args.rows.begin.
  void add_part(i64 part, Range rows) {
    double *sums = sums_.data() + (part * args_.rows.size() + rows.begin) * padded_;
    std::fill_n(sums, rows.size() * padded_, 0.0);
    const Range whole{args_.rows.begin + rows.begin, args_.rows.begin + rows.end};
    const Range tiles = part_of({0, tiles_}, part, parts_);
    if (long_left_)
      add_long_tiles(tiles, whole, sums);
    else
      add_short_tiles(tiles, whole, sums);
  }

  simd::Product<T> product(const T *a, i64 a_row, i64 a_depth, const T *b, double *c, i64 rows, i64 depth) const {
    return {a, a_row, a_depth, b, padded_, c, padded_, rows, depth, padded_, nullptr};
  }

  /// Adds a product some rows at a time. If the tile is all of a stretch of memory, and the next tile the stretch
  /// behind it, that one is asked for meanwhile: a tile is walked across its memory, which hardware does not foresee.
  void multiply(simd::Product<T> p, bool next_is_behind) const {
    const i64 numbers = shape_.n * p.depth;
    const bool ahead =
        next_is_behind && p.rows == shape_.n && numbers * static_cast<i64>(sizeof(T)) <= prefetched_bytes;
    const T *next = p.a + numbers;
    const i64 groups = (p.rows + group_rows - 1) / group_rows;
    const Range rows{0, p.rows};
    for (i64 g = 0; g < groups; ++g) {
      const Range share = part_of({0, ahead ? numbers : 0}, g, groups);
      simd::prefetch(next + share.begin, share.size() * static_cast<i64>(sizeof(T)));
      p.rows = part_of(rows, g, groups).size();
      simd::add_product(p);
      p.a += p.rows * p.a_row;
      p.c += p.rows * p.c_ld;
    }
  }

  void add_factors(KhatriRao<T> &product, int begin, int end) const {
    for (int m = begin; m < end; ++m)
      if (m != args_.mode)
        product.add_factor(args_.factors[static_cast<std::size_t>(m)]);
  }

  void add_long_tiles(Range tiles, Range rows, double *sums) {
    const auto order = static_cast<int>(args_.factors.size());
    KhatriRao<T> before(rank_);
    KhatriRao<T> after(rank_);
    add_factors(before, 0, args_.mode);
    add_factors(after, args_.mode + 1, order);
    auto b = Buffer<T>::zeros(depth_ * padded_, "a tile of a Khatri-Rao product");
    auto scale = Buffer<T>::zeros(padded_, "a row of a Khatri-Rao product");
    i64 have = -1;
    for (i64 tile = tiles.begin; tile < tiles.end; ++tile) {
      const i64 piece = tile / shape_.right;
      const i64 q = tile % shape_.right;
      const Range left = part_of({0, shape_.left}, piece, pieces_);
      if (piece != have)
        before.write(left, b.data(), padded_);
      have = piece;
      auto p = product(x_ + left.begin + shape_.left * (rows.begin + shape_.n * q), shape_.left, 1, b.data(), sums,
                       rows.size(), left.size());
      if (!after.empty()) {
        after.write({q, q + 1}, scale.data(), padded_);
        p.scale = scale.data();
      }
      multiply(p, pieces_ == 1 && tile + 1 < tiles.end);
    }
  }

  void add_short_tiles(Range tiles, Range rows, double *sums) {
    KhatriRao<T> others(rank_);
    add_factors(others, 0, static_cast<int>(args_.factors.size()));
    const i64 depth = q_per_tile_ * shape_.left;
    auto b = Buffer<T>::zeros(depth * padded_, "a tile of a Khatri-Rao product");
    Buffer<T> packed(shape_.left > 1 ? packed_rows * depth : 0, "rows of an unfolding");
    for (i64 tile = tiles.begin; tile < tiles.end; ++tile) {
      const Range q{tile * q_per_tile_, std::min((tile + 1) * q_per_tile_, shape_.right)};
      const i64 columns = q.size() * shape_.left;
      others.write({q.begin * shape_.left, q.end * shape_.left}, b.data(), padded_);
      if (shape_.left == 1) {
        multiply(product(x_ + rows.begin + shape_.n * q.begin, 1, shape_.n, b.data(), sums, rows.size(), columns),
                 tile + 1 < tiles.end);
        continue;
      }
      for (i64 i = rows.begin; i < rows.end; i += packed_rows) {
        const Range some{i, std::min(i + packed_rows, rows.end)};
        pack(some, q, packed.data());
        simd::add_product(
            product(packed.data(), columns, 1, b.data(), sums + (i - rows.begin) * padded_, some.size(), columns));
      }
    }
  }

  /// The columns of q, row by row.
  void pack(Range rows, Range q, T *to) const {
    for (i64 i = rows.begin; i < rows.end; ++i)
      for (i64 k = q.begin; k < q.end; ++k)
        to = std::copy_n(x_ + shape_.left * (i + shape_.n * k), shape_.left, to);
  }

  void write_rows(Range rows) const {
    const i64 part_size = args_.rows.size() * padded_;
    for (i64 i = rows.begin; i < rows.end; ++i) {
      T *out = args_.out.template row<T>(args_.rows.begin + i);
      for (i64 r = 0; r < rank_; ++r) {
        double sum = 0;
        for (i64 part = 0; part < parts_; ++part)
          sum += sums_[part * part_size + i * padded_ + r];
        out[r] = static_cast<T>(sum);
      }
    }
  }

  const T *x_;
  const MttkrpArgs &args_;
  Unfolding shape_;
  i64 rank_;
  i64 padded_; // columns of tiles and sums: whole registers
  bool long_left_;
  i64 depth_ = most_depth; // columns of a tile at most, when left is long
  i64 pieces_ = 1;         // of left
  i64 q_per_tile_ = 1;
  i64 tiles_ = 1;
  i64 parts_ = 1;
  Buffer<double> sums_; // [parts][rows asked for][padded]
};

} // namespace

void mttkrp(const DenseView &x, const MttkrpArgs &args, int threads) {
  dispatch(x.type, [&](auto zero) { DenseMttkrp<decltype(zero)>(x, args).run(threads); });
}

} // namespace td::kernels::cpu
