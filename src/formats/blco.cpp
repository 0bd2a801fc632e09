#include "formats/coo.hpp"
#include "formats/key.hpp"
#include "formats/runs.hpp"

namespace td::formats {

namespace {

/// Cuts blocks longer than max_block_nonzeros.
Buffer<i64> cut_long(std::span<const i64> begins) {
  i64 blocks = 0;
  for (std::size_t b = 0; b + 1 < begins.size(); ++b)
    blocks += (begins[b + 1] - begins[b] + max_block_nonzeros - 1) / max_block_nonzeros;
  Buffer<i64> cut(blocks + 1, "block boundaries");
  i64 next = 0;
  for (std::size_t b = 0; b + 1 < begins.size(); ++b)
    for (i64 k = begins[b]; k < begins[b + 1]; k += max_block_nonzeros)
      cut[next++] = k;
  cut[next] = begins.back();
  return cut;
}

/// The bits of packed keys that entries of a block share.
u128 upper_bits(const Blco &x, const kernels::KeyLayout &packed) {
  u128 upper = 0;
  for (int m = 0; m < x.layout.order; ++m) {
    const auto at = static_cast<std::size_t>(m);
    upper |= field_mask<u128>(packed, m) & ~(low_bits<u128>(x.layout.bits[at]) << packed.shift[at]);
  }
  return upper;
}

/// Splits 128-bit packed keys into block bases and 64-bit keys.
void split(Blco &x, const Packed &p, int threads) {
  const auto *wide = p.keys_as<u128>();
  const int order = x.layout.order;
  const u128 upper = upper_bits(x, p.layout);
  x.block_begin = cut_long(run_begins(p.nnz(), threads, "block boundaries", [&](i64 k) {
                             return k == 0 || ((wide[k] ^ wide[k - 1]) & upper) != 0;
                           }).span());
  const i64 blocks = x.block_begin.size() - 1;
  x.block_base = Buffer<i64>(blocks * order, "block bases");
  for (i64 b = 0; b < blocks; ++b)
    for (int m = 0; m < order; ++m)
      x.block_base[b * order + m] = field(p.layout, m, wide[x.block_begin[b]] & upper);

  x.keys = Buffer<u64>(p.nnz(), "keys");
  parallel_ranges(threads, p.nnz(), grain, [&](Range r) {
    for (i64 k = r.begin; k < r.end; ++k) {
      u64 key = 0;
      for (std::size_t m = 0; m < x.dims.size(); ++m)
        key |= static_cast<u64>((wide[k] >> p.layout.shift[m]) & low_bits<u128>(x.layout.bits[m])) << x.layout.shift[m];
      x.keys[k] = key;
    }
  });
}

} // namespace

kernels::BlcoView Blco::view() const {
  return {dims,          values.size(),          values.type(),      layout,           keys.data(),
          values.data(), block_begin.size() - 1, block_begin.data(), block_base.data()};
}

i64 Blco::bytes() const {
  return 8 * std::ssize(dims) + keys.bytes() + values.bytes() + block_begin.bytes() + block_base.bytes();
}

Blco build_blco(Packed p, int threads) {
  Blco x;
  x.dims = std::move(p.dims);
  x.layout = packed_layout(blco_bits(x.dims));
  if (p.key_bytes == 16) {
    split(x, p, threads);
  } else {
    const i64 nnz = p.nnz();
    x.block_begin = cut_long(run_begins(nnz, threads, "block boundaries", [](i64 k) { return k == 0; }).span());
    x.block_base = Buffer<i64>::zeros((x.block_begin.size() - 1) * x.layout.order, "block bases");
    x.keys = std::move(p.keys);
  }
  x.values = std::move(p.values);
  return x;
}

OnDevice<Blco> build_blco(const PackedOnDevice &p) {
  kernels::Building &building = *p.building;
  Blco x;
  x.dims = p.dims;
  x.layout = packed_layout(blco_bits(x.dims));
  const u128 upper = upper_bits(x, p.layout); // of keys of 64 bits none
  x.block_begin = cut_long(building.runs(upper));
  const i64 blocks = x.block_begin.size() - 1;
  const auto first = building.keys({x.block_begin.data(), static_cast<std::size_t>(blocks)});
  x.block_base = Buffer<i64>(blocks * x.layout.order, "block bases");
  std::vector<kernels::BitMove> moves;
  for (int m = 0; m < x.layout.order; ++m) {
    const auto at = static_cast<std::size_t>(m);
    for (i64 b = 0; b < blocks; ++b)
      x.block_base[b * x.layout.order + m] = field(p.layout, m, first[static_cast<std::size_t>(b)] & upper);
    moves.push_back({p.layout.shift[at], x.layout.shift[at], x.layout.bits[at]});
  }
  building.recode(8, moves);
  kernels::BlcoView view = x.view();
  view.nnz = building.size();
  view.type = p.type;
  return {std::move(x), building.take_entries(), view};
}

Coo decode(const kernels::BlcoView &x, int threads) {
  Coo coo = empty_coo(x.dims, x.type, x.nnz);
  if (x.nnz > 0)
    std::memcpy(coo.values.data(), x.values, static_cast<std::size_t>(coo.values.bytes()));
  parallel_ranges(threads, x.nnz, grain, [&](Range r) {
    const i64 *begin = std::upper_bound(x.block_begin, x.block_begin + x.blocks + 1, r.begin) - 1;
    i64 block = begin - x.block_begin;
    for (i64 k = r.begin; k < r.end; ++k) {
      while (k >= x.block_begin[block + 1])
        ++block;
      for (int m = 0; m < x.layout.order; ++m)
        coo.indices[static_cast<std::size_t>(m)][k] =
            x.block_base[block * x.layout.order + m] + field(x.layout, m, x.keys[k]);
    }
  });
  return coo;
}

} // namespace td::formats
