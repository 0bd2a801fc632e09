#include "formats/coo.hpp"
#include "formats/key.hpp"
#include "formats/merge.hpp"

namespace td::formats {

namespace {

template <class Key, class T> void build(Sorted &s, const Packed &p, int threads) {
  const i64 n = p.nnz();
  const Key *packed = p.keys_as<Key>();
  const Key row_bits = field_mask<Key>(p.layout, s.mode);
  Buffer<std::byte> keys(n * static_cast<i64>(sizeof(Key)), "keys sorted by mode");
  s.values = ValueBuffer(p.values.type(), n, "values sorted by mode");
  const Pairs<Key, T> a{reinterpret_cast<Key *>(keys.data()), s.values.as<T>()};

  const auto digits = varying_digits(packed, n, row_bits, threads);
  if (digits.empty()) {
    std::copy(packed, packed + n, a.keys);
    std::copy(p.values.as<T>(), p.values.as<T>() + n, a.payload);
  } else {
    const i64 other_n = digits.size() > 1 ? n : 0;
    Buffer<std::byte> other_keys(other_n * static_cast<i64>(sizeof(Key)), "sorting keys");
    ValueBuffer other_values(p.values.type(), other_n, "sorting values");
    const Pairs<Key, T> b{reinterpret_cast<Key *>(other_keys.data()), other_values.as<T>()};
    radix_sort<Key, T>(digits, {packed, p.values.as<T>()}, a, b, n, threads);
    if (digits.size() % 2 == 0) {
      std::swap(keys, other_keys);
      std::swap(s.values, other_values);
    }
  }

  auto *sorted = reinterpret_cast<Key *>(keys.data());
  s.row_begin = run_begins(n, threads, "row boundaries",
                           [&](i64 k) { return k == 0 || ((sorted[k] ^ sorted[k - 1]) & row_bits) != 0; });
  const i64 rows = s.row_begin.size() - 1;
  s.row_index = Buffer<i64>(rows, "row indices");
  for (i64 row = 0; row < rows; ++row)
    s.row_index[row] = field(p.layout, s.mode, sorted[s.row_begin[row]]);

  const int shift = p.layout.shift[static_cast<std::size_t>(s.mode)];
  const int width = p.layout.bits[static_cast<std::size_t>(s.mode)];
  const bool narrow = s.key_bytes < static_cast<int>(sizeof(Key));
  Buffer<std::byte> narrow_keys(narrow ? n * s.key_bytes : 0, "keys sorted by mode");
  auto *words = reinterpret_cast<u64 *>(narrow_keys.data());
  parallel_ranges(threads, n, sort_grain, [&](Range r) {
    for (i64 k = r.begin; k < r.end; ++k) {
      // The row's own field goes and the gap closes; in two shifts, as one could reach the key's width.
      const Key key = (sorted[k] & low_bits<Key>(shift)) | (((sorted[k] >> shift) >> width) << shift);
      if (narrow)
        words[k] = static_cast<u64>(key);
      else
        sorted[k] = key;
    }
  });
  s.keys = narrow ? std::move(narrow_keys) : std::move(keys);
}

} // namespace

Sorted build_sorted(const Packed &p, int mode, int threads) {
  Sorted s;
  s.dims = p.dims;
  s.mode = mode;
  auto bits = bits_of(p.dims);
  bits[static_cast<std::size_t>(mode)] = 0;
  s.layout = packed_layout(bits);
  s.key_bytes = key_bytes_for(total_bits(s.layout));
  dispatch_key(p.key_bytes, [&](auto key) {
    dispatch(p.values.type(), [&](auto zero) { build<decltype(key), decltype(zero)>(s, p, threads); });
  });
  return s;
}

Sorted build_sorted(const kernels::CooView &canonical, int mode, int threads) {
  return build_sorted(pack(canonical, threads), mode, threads);
}

Coo decode(const Sorted &s, int threads) {
  const i64 nnz = s.values.size();
  Coo coo = empty_coo(s.dims, s.values.type(), nnz);
  for (i64 row = 0; row < s.row_index.size(); ++row)
    std::fill(coo.indices[static_cast<std::size_t>(s.mode)].data() + s.row_begin[row],
              coo.indices[static_cast<std::size_t>(s.mode)].data() + s.row_begin[row + 1], s.row_index[row]);
  dispatch_key(s.key_bytes, [&](auto zero) {
    using Key = decltype(zero);
    const auto *keys = reinterpret_cast<const Key *>(s.keys.data());
    parallel_ranges(threads, nnz, sort_grain, [&](Range r) {
      for (int m = 0; m < s.layout.order; ++m)
        for (i64 k = r.begin; k < r.end && m != s.mode; ++k)
          coo.indices[static_cast<std::size_t>(m)][k] = field(s.layout, m, keys[k]);
    });
  });
  const std::vector<const void *> columns(coo.columns.begin(), coo.columns.end());
  const EntriesView in_rows{s.dims, nnz, IndexType::i64, columns.data(), 0, s.values.type(), s.values.data()};
  return build_canonical(in_rows, false, threads).coo;
}

} // namespace td::formats
