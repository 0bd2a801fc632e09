// MTTKRP on a partial product, seen as left x n x right with the mode in the middle and a row for each cell. It is read
// once, in the order of memory: rows of cells are multiplied by the Khatri-Rao rows of the modes before, which are made
// once for a range of `left`, and their sums by the one row of the modes after.
//
// Tiles, a range of `left` for an index of `right`, are cut into parts by the shape and the rank alone, each part is
// summed in order in f64, and the parts are added in order: the bits depend neither on the threads nor on which rows
// are asked for.
#include <algorithm>

#include "kernels/cpu/cells_cuts.hpp"
#include "kernels/cpu/mttkrp.hpp"
#include "kernels/cpu/parts.hpp"

namespace td::kernels::cpu {

namespace {

template <class T> class CellsMttkrp {
public:
  CellsMttkrp(const CellsView &x, const MttkrpArgs &args)
      : x_(x), args_(args), shape_(x.dims, args.mode), rank_(args.out.cols), cuts_(shape_, rank_) {}

  void run(int threads) {
    const i64 rows = args_.rows.size();
    if (rows == 0)
      return;
    const i64 groups = cuts_.groups(rows, rank_, threads);
    if (cuts_.parts > 1)
      sums_ = Buffer<double>(cuts_.parts * rows * rank_, "the sums of MTTKRP on a partial product");
    for_each_item(threads, cuts_.parts * groups, [&](i64 item) {
      add_part(item / groups, part_of({0, rows}, item % groups, groups));
    });
    if (cuts_.parts > 1)
      parallel_ranges(threads, rows, 64,
                      [&](Range some) { write_rows(some, sums_.data() + some.begin * rank_, rows); });
  }

private:
  /// Sums the tiles of a part for rows counted from args.rows.begin.
  void add_part(i64 part, Range rows) {
    Buffer<double> own(cuts_.parts > 1 ? 0 : rows.size() * rank_, "sums of MTTKRP on a partial product");
    double *sums = cuts_.parts > 1 ? sums_.data() + (part * args_.rows.size() + rows.begin) * rank_ : own.data();
    std::fill_n(sums, rows.size() * rank_, 0.0);
    add_tiles(part_of({0, cuts_.tiles}, part, cuts_.parts),
              {args_.rows.begin + rows.begin, args_.rows.begin + rows.end}, sums);
    if (cuts_.parts == 1)
      write_rows(rows, sums, 0);
  }

  void add_tiles(Range tiles, Range rows, double *sums) {
    const auto order = static_cast<int>(args_.factors.size());
    KhatriRao<T> before(rank_);
    KhatriRao<T> after(rank_);
    for (int m = 0; m < order; ++m)
      if (m != args_.mode)
        (m < args_.mode ? before : after).add_factor(args_.factors[static_cast<std::size_t>(m)]);
    Buffer<T> products(before.empty() ? 0 : cuts_.depth(shape_) * rank_, "rows of a Khatri-Rao product");
    Buffer<T> scale(rank_, "a row of a Khatri-Rao product");
    simd::CellTile<T> tile;
    tile.ld = x_.rows.ld;
    tile.row_cells = shape_.left;
    tile.rank = rank_;
    i64 have = -1;
    for (i64 k = tiles.begin; k < tiles.end; ++k) {
      const i64 q = k % shape_.right;
      const Range left = part_of({0, shape_.left}, k / shape_.right, cuts_.ranges);
      if (!before.empty() && k / shape_.right != have) {
        before.write(left, products.data(), rank_);
        tile.left = products.data();
      }
      have = k / shape_.right;
      if (!after.empty()) {
        after.write({q, q + 1}, scale.data(), rank_);
        tile.right = scale.data();
      }
      tile.sums = sums;
      add_tile(tile, left, rows, q);
    }
  }

  /// It adds the cells of a tile that are asked for.
  void add_tile(simd::CellTile<T> tile, Range left, Range rows, i64 q) const {
    const auto first = [&](i64 i) { return shape_.left * (i + shape_.n * q); };
    const T *const cells = x_.rows.template row<T>(0);
    if (args_.entries.begin <= first(rows.begin) && first(rows.end) <= args_.entries.end) {
      tile.cells = cells + (first(rows.begin) + left.begin) * tile.ld;
      tile.rows = rows.size();
      tile.depth = left.size();
      return simd::add_cells(tile);
    }
    const T *const products = tile.left;
    tile.rows = 1;
    for (i64 i = rows.begin; i < rows.end; ++i, tile.sums += rank_) {
      const i64 begin = std::max(left.begin, args_.entries.begin - first(i));
      const i64 end = std::min(left.end, args_.entries.end - first(i));
      if (begin >= end)
        continue;
      tile.cells = cells + (first(i) + begin) * tile.ld;
      tile.depth = end - begin;
      tile.left = products == nullptr ? nullptr : products + (begin - left.begin) * rank_;
      simd::add_cells(tile);
    }
  }

  /// Rows of the result: of each part, sums that begin with those of rows.begin.
  void write_rows(Range rows, const double *sums, i64 rows_of_part) const {
    for (i64 i = rows.begin; i < rows.end; ++i, sums += rank_) {
      T *out = args_.out.template row<T>(args_.rows.begin + i);
      for (i64 r = 0; r < rank_; ++r) {
        double sum = 0;
        for (i64 part = 0; part < cuts_.parts; ++part)
          sum += sums[part * rows_of_part * rank_ + r];
        out[r] = static_cast<T>(sum);
      }
    }
  }

  const CellsView &x_;
  const MttkrpArgs &args_;
  Unfolding shape_;
  i64 rank_;
  CellsCuts cuts_;
  Buffer<double> sums_; // [parts][rows asked for][rank]
};

} // namespace

void mttkrp_cells(const CellsView &x, const MttkrpArgs &args, int threads) {
  dispatch(args.out.type, [&](auto zero) { CellsMttkrp<decltype(zero)>(x, args).run(threads); });
}

} // namespace td::kernels::cpu
