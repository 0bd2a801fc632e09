// The partial product of a dense tensor that keeps its first and last mode: each slab, a matrix of the first mode by
// the modes in between, times rows of the Khatri-Rao product of these, which are made in cache, a chunk at a time. A
// thread works on a group of a slab's rows at a time; each row is summed by one thread in an order that the shape alone
// decides.
#include <algorithm>
#include <atomic>

#include "core/parallel.hpp"
#include "kernels/cpu/cells_cuts.hpp"
#include "kernels/cpu/mttkrp.hpp"

namespace td::kernels::cpu {

namespace {

constexpr i64 cache_line = 64;

template <class T> class SlabsMttkrp {
public:
  SlabsMttkrp(const DenseView &x, std::span<const ConstMatrix> factors, Matrix out)
      : x_(static_cast<const T *>(x.values)), factors_(factors), out_(out), left_(x.dims.front()),
        slabs_(x.dims.back()), padded_(simd::padded(out.cols, x.type)), cuts_(x.dims, padded_, sizeof(T)) {}

  void run(int threads) {
    const i64 items = slabs_ * cuts_.groups;
    std::atomic<i64> next{0};
    parallel(static_cast<int>(std::min<i64>(threads, items)), [&](int, int) {
      Buffer<T> product(cuts_.chunk * padded_, "rows of a Khatri-Rao product");
      Buffer<double> sums(cuts_.rows * padded_, "sums of a partial product");
      KhatriRao<T> between(out_.cols);
      for (std::size_t m = 1; m + 1 < factors_.size(); ++m)
        between.add_factor(factors_[m]);
      i64 have = -1;
      for (i64 item = next.fetch_add(1); item < items; item = next.fetch_add(1)) {
        const i64 slab = item / cuts_.groups;
        const Range rows = part_of({0, left_}, item % cuts_.groups, cuts_.groups);
        std::fill_n(sums.data(), rows.size() * padded_, 0.0);
        for (i64 chunk = 0; chunk < cuts_.chunks; ++chunk) {
          const Range some = part_of({0, cuts_.depth}, chunk, cuts_.chunks);
          if (chunk != have)
            for_blocks(some,
                       [&](Range s) { between.write_panels(s, product.data() + (s.begin - some.begin) * padded_); });
          have = chunk;
          for_blocks(some, [&](Range s) {
            add_block(slab, rows, s, product.data() + (s.begin - some.begin) * padded_, sums.data());
          });
        }
        write_rows(slab, rows, sums.data());
      }
    });
  }

private:
  /// Ranges of the depth that are multiplied at a time.
  template <class Body> static void for_blocks(Range depth, Body &&body) {
    const i64 blocks = ceil_of(depth.size(), short_depth);
    for (i64 b = 0; b < blocks; ++b)
      body(part_of(depth, b, blocks));
  }

  const T *element(i64 l, i64 s, i64 slab) const { return x_ + l + left_ * (s + cuts_.depth * slab); }

  void add_block(i64 slab, Range rows, Range depth, const T *product, double *sums) const {
    simd::Block<T> block;
    block.a_row = 1;
    block.a_step = left_;
    block.segment = cache_line / static_cast<i64>(sizeof(T));
    block.a_segment = block.segment * left_;
    block.depth = depth.size();
    block.b = product;
    block.columns = padded_;
    const i64 segments = ceil_of(block.depth, block.segment);
    const i64 blocks = ceil_of(rows.size(), simd::block_rows);
    for (i64 i = rows.begin; i < rows.end; i += simd::block_rows) {
      block.a = element(i, depth.begin, slab);
      block.rows = std::min(simd::block_rows, rows.end - i);
      block.c = sums + (i - rows.begin) * padded_;
      // The next columns, evenly by blocks of rows; at the end of a slab those of the next one.
      if (rows.size() == left_ && slab + 1 < slabs_) {
        const i64 bytes = depth.size() * left_ * static_cast<i64>(sizeof(T));
        const i64 each = ceil_of(bytes, blocks);
        const char *next = reinterpret_cast<const char *>(element(0, depth.end, slab));
        const i64 lines = ceil_of(ceil_of(each, cache_line), segments);
        block.ahead = {
            next + (i - rows.begin) / simd::block_rows * each, lines, cache_line, lines * cache_line, segments, true};
      }
      simd::add_block(block);
    }
  }

  void write_rows(i64 slab, Range rows, const double *sums) const {
    for (i64 i = rows.begin; i < rows.end; ++i, sums += padded_) {
      T *out = out_.template row<T>(slab * left_ + i);
      for (i64 r = 0; r < out_.cols; ++r)
        out[r] = static_cast<T>(sums[r]);
    }
  }

  const T *x_;
  std::span<const ConstMatrix> factors_;
  Matrix out_;
  i64 left_;
  i64 slabs_;
  i64 padded_; // columns of sums: whole registers
  SlabCuts cuts_;
};

} // namespace

void mttkrp_slabs(const DenseView &x, std::span<const ConstMatrix> factors, Matrix out, int threads) {
  dispatch(out.type, [&](auto zero) { SlabsMttkrp<decltype(zero)>(x, factors, out).run(threads); });
}

} // namespace td::kernels::cpu
