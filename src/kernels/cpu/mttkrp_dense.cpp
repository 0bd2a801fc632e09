// MTTKRP of a dense tensor without unfolding it and without the Khatri-Rao product: the columns of the unfolding are
// taken in tiles; the tile's rows of the Khatri-Rao product are made in cache and multiplied by the tile where it lies,
// a block of rows and columns at a time. Extra memory: O(rank * sum of dims).
//
// Two kinds of tiles, X seen as left x n x right with the mode in the middle:
//   long left    a range of `left` for one index q of `right`. The Khatri-Rao rows of the modes before are the same for
//                every q; those of the modes after are one row, a scale of the product's columns.
//   short left   all of `left` for several q, with rows of the whole Khatri-Rao product. In the first mode, where left
//                is 1, a column of the unfolding is contiguous, and registers hold its rows: see FiberBlock.
//
// Modes may be in any order in memory, and there may be gaps between elements. Where a block's rows or columns do not
// lie evenly for that, the block is gathered first, in the near caches, as it would lie without gaps: the same products
// are added in the same order.
//
// The tiles are cut into parts by the tensor's shape and the rank alone, each part is summed in order in f64, and the
// parts are added in order; so the bits depend neither on the number of threads nor on which rows are asked for.
#include "kernels/cpu/mttkrp.hpp"

#include <algorithm>

#include "kernels/cpu/dense_cuts.hpp"
#include "kernels/cpu/parts.hpp"

namespace td::kernels::cpu {

namespace {

constexpr i64 cache_line = 64;
constexpr i64 many_streams = 32; // of memory at once, which a processor does not foresee

template <class T> class DenseMttkrp {
public:
  DenseMttkrp(const DenseView &x, const MttkrpArgs &args)
      : x_(static_cast<const T *>(x.values)), args_(args), shape_(x.dims, args.mode), places_(x, args.mode),
        no_gaps_(x.strides.empty()), rank_(args.out.cols), padded_(simd::padded(rank_, x.type)),
        cuts_(x.dims, args.mode, padded_, size), outer_left_(shape_.left / cuts_.inner_left),
        by_fibers_(has_even_fibers(places_, cuts_) &&
                   cuts_.by_fibers(args.rows.size(), rank_, padded_, simd::lanes(x.type))),
        unit_(by_fibers_ ? simd::lanes(x.type) : 1), units_(ceil_of(args.rows.size(), unit_)) {}

  void run(int threads) {
    const i64 rows = args_.rows.size();
    if (rows == 0)
      return;
    const i64 groups = cuts_.groups(rows, padded_, threads);
    if (cuts_.parts > 1)
      sums_ = Buffer<double>(cuts_.parts * units_ * unit_ * padded_, "the sums of a dense MTTKRP");
    for_each_item(threads, cuts_.parts * groups, [&](i64 item) {
      add_part(item / groups, part_of({0, units_}, item % groups, groups));
    });
    if (cuts_.parts > 1)
      parallel_ranges(threads, units_, 64 / unit_,
                      [&](Range part) { write(part, sums_.data() + part.begin * unit_ * padded_, units_); });
  }

private:
  static constexpr i64 size = sizeof(T);

  /// Sums the tiles of a part for units counted from args.rows.begin.
  void add_part(i64 part, Range units) {
    const i64 unit_sums = unit_ * padded_;
    Buffer<double> own(cuts_.parts > 1 ? 0 : cuts_.summed(units.size(), unit_) * padded_, "sums of a dense MTTKRP");
    double *sums = cuts_.parts > 1 ? sums_.data() + (part * units_ + units.begin) * unit_sums : own.data();
    const Range tiles = part_of({0, cuts_.tiles}, part, cuts_.parts);
    if (by_fibers_)
      add_fibers(tiles, units, sums);
    else if (cuts_.long_left)
      add_long_tiles(tiles, rows_of(units), sums);
    else
      add_short_tiles(tiles, rows_of(units), sums);
    if (cuts_.parts == 1 && !cuts_.whole)
      write(units, sums, 0);
  }

  /// The first row of a register; the last one overlaps the one before where the rows do not fill it.
  i64 first_row(i64 unit) const { return args_.rows.begin + std::min(unit * unit_, args_.rows.size() - unit_); }
  Range rows_of(Range units) const { return {first_row(units.begin), first_row(units.end - 1) + unit_}; }

  void add_factors(KhatriRao<T> &product, int begin, int end) const {
    for (int m = begin; m < end; ++m)
      if (m != args_.mode)
        product.add_factor(args_.factors[static_cast<std::size_t>(m)]);
  }

  /// Khatri-Rao rows of the inner modes, and the row of the outer ones that scales a product.
  struct Products {
    KhatriRao<T> inner, outer;
    Buffer<T> panels, scale;
    i64 range = -1; // whose rows are in the panels
  };

  Products products() const {
    Products p{KhatriRao<T>(rank_), KhatriRao<T>(rank_), {}, {}};
    add_factors(p.inner, 0, cuts_.inner_end);
    add_factors(p.outer, cuts_.inner_end, static_cast<int>(args_.factors.size()));
    p.panels = Buffer<T>(cuts_.product_rows() * padded_, "rows of a Khatri-Rao product");
    if (!p.outer.empty())
      p.scale = Buffer<T>::zeros(padded_, "a row of a Khatri-Rao product");
    return p;
  }

  /// The scale at an index of the outer modes; null: ones.
  const T *scale_at(Products &p, i64 outer) const {
    if (p.outer.empty())
      return nullptr;
    p.outer.write({outer, outer + 1}, p.scale.data(), padded_);
    return p.scale.data();
  }

  const T *element(i64 l, i64 i, i64 q) const {
    return x_ + places_.left.offset(l) + i * places_.row + places_.right.offset(q);
  }

  /// to[i * l.size() + k] := element (l.begin + k, rows.begin + i, q).
  void gather_rows(Range l, Range rows, i64 q, T *to) const {
    std::array<i64, long_depth> offsets;
    for (i64 k = 0; k < l.size(); ++k)
      offsets[static_cast<std::size_t>(k)] = places_.left.offset(l.begin + k);
    for (i64 i = rows.begin; i < rows.end; ++i, to += l.size()) {
      const T *from = element(0, i, q);
      for (i64 k = 0; k < l.size(); ++k)
        to[k] = from[offsets[static_cast<std::size_t>(k)]];
    }
  }

  /// to[l + left * (i + count * (j - q.begin))] := element (l, rows.begin + i, j) for the count of these rows.
  void gather_tile(Range rows, Range q, T *to) const {
    std::array<i64, short_left> offsets;
    for (i64 l = 0; l < shape_.left; ++l)
      offsets[static_cast<std::size_t>(l)] = places_.left.offset(l);
    for (i64 j = q.begin; j < q.end; ++j)
      for (i64 i = rows.begin; i < rows.end; ++i, to += shape_.left) {
        const T *from = element(0, i, j);
        for (i64 l = 0; l < shape_.left; ++l)
          to[l] = from[offsets[static_cast<std::size_t>(l)]];
      }
  }

  /// The memory of the next block is asked for beside the work on this one; null: there is none.
  void look_ahead(simd::Block<T> &block, const T *next) const {
    block.ahead = {};
    if (next != nullptr && block.depth == places_.row) // one segment
      block.ahead = {bytes_of(next), block.rows, cache_line, block.rows * cache_line, segments_of(block), true};
    else if (next != nullptr)
      block.ahead = {bytes_of(next), block.rows, places_.row * size, cache_line, segments_of(block), false};
  }

  // Rows outside, columns inside: the memory of a row is one segment.
  void add_long_tiles(Range tiles, Range rows, double *sums) {
    Products product = products();
    simd::Block<T> block;
    block.a_row = places_.row;
    block.a_step = 1;
    block.segment = block.a_segment = cache_line / size;
    block.columns = padded_;
    const bool gathers = gathers_blocks(places_, cuts_);
    Buffer<T> gathered(gathers ? cuts_.gathered(rows.size()) : 0, "a block of a dense tensor");
    const i64 row_blocks = ceil_of(rows.size(), simd::block_rows);
    const auto left_of = [&](i64 tile) { return part_of({0, cuts_.inner_left}, tile / cuts_.outer, cuts_.ranges); };
    const auto at = [&](i64 tile, i64 l) { // the first column of a block, as one of left and one of right
      const i64 outer = tile % cuts_.outer;
      return std::pair(l + cuts_.inner_left * (outer % outer_left_), outer / outer_left_);
    };
    for (i64 tile = tiles.begin; tile < tiles.end; ++tile) {
      const Range left = left_of(tile);
      const i64 column_blocks = ceil_of(left.size(), long_depth);
      if (tile / cuts_.outer != product.range)
        for (i64 k = 0; k < column_blocks; ++k) {
          const Range some = part_of(left, k, column_blocks);
          product.inner.write_panels(some, product.panels.data() + (some.begin - left.begin) * padded_);
        }
      product.range = tile / cuts_.outer;
      block.scale = scale_at(product, tile % cuts_.outer);
      for (i64 b = 0; b < row_blocks * column_blocks; ++b) {
        const Range i = part_of(rows, b / column_blocks, row_blocks);
        const Range some = part_of(left, b % column_blocks, column_blocks);
        const auto [l, q] = at(tile, some.begin);
        const T *next = nullptr;
        if (b + 1 < row_blocks * column_blocks)
          next = element(at(tile, part_of(left, (b + 1) % column_blocks, column_blocks).begin).first,
                         part_of(rows, (b + 1) / column_blocks, row_blocks).begin, q);
        else if (tile + 1 < tiles.end) {
          const auto [next_l, next_q] = at(tile + 1, left_of(tile + 1).begin);
          next = element(next_l, rows.begin, next_q);
        }
        block.rows = i.size();
        block.depth = some.size();
        block.a = element(l, i.begin, q);
        if (gathers) {
          gather_rows({l, l + some.size()}, i, q, gathered.data());
          block.a = gathered.data();
          block.a_row = some.size();
        }
        block.b = product.panels.data() + (some.begin - left.begin) * padded_;
        block.c = sums + (i.begin - rows.begin) * padded_;
        block.first = tile == tiles.begin && b % column_blocks == 0;
        look_ahead(block, gathers ? nullptr : next);
        simd::add_block(block);
      }
    }
  }

  /// The columns of a tile of short left, as those of `right`.
  Range right_of(i64 tile) const {
    const i64 first = cuts_.inner_q * (tile % cuts_.outer);
    const i64 begin = tile / cuts_.outer * cuts_.q_per_tile;
    return {first + begin, first + std::min(begin + cuts_.q_per_tile, cuts_.inner_q)};
  }

  /// Makes a tile's Khatri-Rao rows where the tile before had others.
  void make_panels(Products &product, i64 tile) const {
    if (tile / cuts_.outer == product.range)
      return;
    product.range = tile / cuts_.outer;
    const Range q = right_of(product.range * cuts_.outer);
    product.inner.write_panels({q.begin * shape_.left, q.end * shape_.left}, product.panels.data());
  }

  // Columns outside, rows inside: the memory of a tile is one segment, or one for each q.
  void add_short_tiles(Range tiles, Range rows, double *sums) {
    Products product = products();
    simd::Block<T> block;
    block.b = product.panels.data();
    block.columns = padded_;
    const bool gathers = gathers_blocks(places_, cuts_);
    Buffer<T> gathered(gathers ? cuts_.gathered(rows.size()) : 0, "a block of a dense tensor");
    block.segment = shape_.left > 1 ? shape_.left : cache_line / size;
    const auto lies = [&](i64 row, i64 step) { // from a row, and from a q, to the next
      block.a_row = row;
      block.a_step = shape_.left > 1 ? 1 : step;
      block.a_segment = shape_.left > 1 ? step : block.segment * step;
    };
    const bool one_segment = cuts_.whole && !gathers && shape_.left > 1 && shape_.right == 1; // of memory, for each row
    if (one_segment)
      block.segment = cache_line / size;
    lies(places_.row, one_segment ? block.segment : places_.right.step());
    for (i64 tile = tiles.begin; tile < tiles.end; ++tile) {
      const Range q = right_of(tile);
      make_panels(product, tile);
      block.scale = scale_at(product, tile % cuts_.outer);
      block.first = tile == tiles.begin;
      block.depth = q.size() * shape_.left;
      // Not evenly divided: where memory begins with a line, so do all blocks.
      for (i64 i = rows.begin; i < rows.end; i += simd::block_rows) {
        block.a = element(0, i, q.begin);
        block.rows = std::min(simd::block_rows, rows.end - i);
        if (gathers) {
          gather_tile({i, i + block.rows}, q, gathered.data());
          block.a = gathered.data();
          lies(shape_.left, shape_.left * block.rows);
        }
        block.c = cuts_.whole ? sums : sums + (i - rows.begin) * padded_;
        if (cuts_.whole)
          block.ahead =
              next_rows({i + block.rows, std::min(i + 2 * block.rows, rows.end)}, segments_of(block), block.segment);
        else if (no_gaps_ && tile + 1 < tiles.end)
          block.ahead = next_tile(rows, right_of(tile + 1), (i - rows.begin) / simd::block_rows,
                                  ceil_of(rows.size(), simd::block_rows), segments_of(block));
        else
          block.ahead = {};
        simd::add_block(block);
        if (cuts_.whole)
          write({i - args_.rows.begin, i - args_.rows.begin + block.rows}, sums, 0);
      }
    }
  }

  // Fibers are added as short tiles are, with registers of rows. The last register stands alone if it overlaps the one
  // before.
  void add_fibers(Range tiles, Range units, double *sums) {
    Products product = products();
    simd::FiberBlock<T> block;
    block.a_step = places_.right.step();
    block.segment = cache_line / size;
    block.b = product.panels.data();
    block.columns = rank_;
    const Range rows = rows_of(units);
    const bool overlaps = units.end == units_ && args_.rows.size() % unit_ != 0;
    const i64 full = units.size() - (overlaps ? 1 : 0);
    const i64 full_blocks = ceil_of(full, simd::fiber_registers);
    const i64 blocks = full_blocks + (overlaps ? 1 : 0);
    for (i64 tile = tiles.begin; tile < tiles.end; ++tile) {
      const Range q = right_of(tile);
      make_panels(product, tile);
      block.scale = scale_at(product, tile % cuts_.outer);
      block.first = tile == tiles.begin;
      block.depth = q.size();
      for (i64 b = 0; b < blocks; ++b) {
        // Evenly divided: a register that stands alone multiplies more slowly.
        const Range some = b < full_blocks ? part_of({0, full}, b, full_blocks) : Range{full, full + 1};
        block.registers = some.size();
        block.a = element(0, first_row(units.begin + some.begin), q.begin);
        block.c = cuts_.whole ? sums : sums + some.begin * unit_ * padded_;
        if (cuts_.whole)
          block.ahead = b + 1 < full_blocks
                            ? next_rows(rows_of({units.begin + some.end,
                                                 units.begin + part_of({0, full}, b + 1, full_blocks).end}),
                                        segments_of(block), block.segment)
                            : simd::Ahead();
        else if (no_gaps_ && tile + 1 < tiles.end)
          block.ahead = next_tile(rows, right_of(tile + 1), b, blocks, segments_of(block));
        else
          block.ahead = {};
        simd::add_fibers(block);
        if (cuts_.whole)
          write({units.begin + some.begin, units.begin + some.end}, sums, 0);
      }
    }
  }

  /// What a block that has all columns asks for of the next one's rows, where that is more than hardware foresees.
  simd::Ahead next_rows(Range rows, i64 segments, i64 segment) const {
    if (!no_gaps_ || rows.size() <= 0 || shape_.columns() < many_streams)
      return {};
    const char *at = bytes_of(element(0, rows.begin, 0));
    const i64 lines = ceil_of(rows.size() * shape_.left * size, cache_line);
    if (shape_.right == 1)
      return {at, ceil_of(lines, segments), cache_line, ceil_of(lines, segments) * cache_line, segments};
    if (shape_.left > 1)
      return {};
    const i64 step = places_.right.step() * size;
    return {at, segment, step, segment * step, segments, false, lines};
  }

  /// What one of a tile's blocks asks for of the next tile, which has all rows for some q.
  simd::Ahead next_tile(Range rows, Range q, i64 number, i64 blocks, i64 segments) const {
    const Range next = part_of(q, number, blocks);
    const char *at = bytes_of(element(0, rows.begin, next.begin));
    const i64 row_bytes = rows.size() * shape_.left * size;
    if (rows.size() < shape_.n)
      return {at,
              ceil_of(row_bytes, cache_line),
              cache_line,
              shape_.left * shape_.n * size,
              std::min(segments, next.size()),
              true};
    const i64 lines = ceil_of(ceil_of(next.size() * row_bytes, cache_line), segments);
    return {at, lines, cache_line, lines * cache_line, segments, true};
  }

  static const char *bytes_of(const T *x) { return reinterpret_cast<const char *>(x); }
  template <class Block> static i64 segments_of(const Block &block) { return ceil_of(block.depth, block.segment); }

  /// Rows of the result: of each part, sums that begin with those of units.begin.
  void write(Range units, const double *sums, i64 units_of_part) const {
    for (i64 unit = units.begin; unit < units.end; ++unit, sums += unit_ * padded_) {
      // Rows that the register before has too are left to it: another thread may write them.
      const i64 row = args_.rows.begin + unit * unit_;
      for (i64 lane = row - first_row(unit); lane < unit_; ++lane)
        write_row(args_.out.template row<T>(first_row(unit) + lane), sums + lane, units_of_part * unit_ * padded_);
    }
  }

  void write_row(T *__restrict out, const double *__restrict sums, i64 next_part) const {
    if (cuts_.parts > 1) {
      for (i64 r = 0; r < rank_; ++r) {
        double sum = 0;
        for (i64 part = 0; part < cuts_.parts; ++part)
          sum += sums[part * next_part + r * unit_];
        out[r] = static_cast<T>(sum);
      }
    } else if (unit_ == 1) {
      for (i64 r = 0; r < rank_; ++r)
        out[r] = static_cast<T>(sums[r]);
    } else {
      for (i64 r = 0; r < rank_; ++r)
        out[r] = static_cast<T>(sums[r * unit_]);
    }
  }

  const T *x_;
  const MttkrpArgs &args_;
  Unfolding shape_;
  UnfoldingPlaces places_;
  bool no_gaps_;
  i64 rank_;
  i64 padded_; // columns of tiles and sums: whole registers
  DenseCuts cuts_;
  i64 outer_left_; // outer indices of the modes before
  bool by_fibers_;
  i64 unit_;            // rows that are summed together: a register of them, or one
  i64 units_;           // of the rows asked for
  Buffer<double> sums_; // [parts][units_][padded][unit_]
};

} // namespace

void mttkrp(const DenseView &x, const MttkrpArgs &args, int threads) {
  const InMemoryOrder ordered(x, args);
  dispatch(args.out.type, [&](auto zero) { DenseMttkrp<decltype(zero)>(ordered.view(), ordered.args()).run(threads); });
}

} // namespace td::kernels::cpu
