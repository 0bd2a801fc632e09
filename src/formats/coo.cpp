#include "formats/coo.hpp"

#include <numeric>

#include "formats/duplicates.hpp"
#include "formats/key.hpp"
#include "formats/radix_sort.hpp"

namespace td::formats {

namespace {

/// A permutation that orders entries by all modes but `skip` (-1: by all), stably: by one key where the bits allow,
/// else lexicographically, sorting by one mode after the other from the last to the first. index_of(m, k): 0-based.
template <class IndexOf>
Buffer<i64> ordering(std::span<const i64> dims, i64 nnz, int skip, int threads, IndexOf &&index_of) {
  std::vector<int> bits = bits_of(dims);
  if (skip >= 0)
    bits[static_cast<std::size_t>(skip)] = 0;
  const int total = std::accumulate(bits.begin(), bits.end(), 0);
  const bool one_key = total <= max_linear_bits;
  const auto layout = one_key ? packed_layout(bits) : kernels::KeyLayout{};
  const int count = static_cast<int>(dims.size());

  Buffer<i64> order(nnz, "sorting entries");
  std::iota(order.begin(), order.end(), i64{0});
  Buffer<i64> other_order(nnz, "sorting entries");
  dispatch_key(one_key ? key_bytes_for(total) : 8, [&](auto zero) {
    using Key = decltype(zero);
    Buffer<Key> keys(nnz, "sorting entries");
    Buffer<Key> other_keys(nnz, "sorting entries");
    const auto sort_by = [&](auto &&key_of) {
      parallel_ranges(threads, nnz, grain, [&](Range r) {
        for (i64 k = r.begin; k < r.end; ++k)
          keys[k] = key_of(order[k]);
      });
      RadixSort<Key, i64>({keys.data(), order.data()}, {other_keys.data(), other_order.data()}, ~Key{0}, threads)
          .run(nnz);
    };
    if (one_key)
      sort_by([&](i64 k) {
        Key key = 0;
        for (int m = 0; m < count; ++m)
          if (m != skip)
            key |= static_cast<Key>(index_of(m, k)) << layout.shift[static_cast<std::size_t>(m)];
        return key;
      });
    for (int m = count - 1; m >= 0 && !one_key; --m)
      if (m != skip)
        sort_by([&](i64 k) { return static_cast<Key>(index_of(m, k)); });
  });
  return order;
}

/// Entry `order[pick(k)]` of a source for every k of n.
template <class IndexOf, class Pick>
void gather_indices(Coo &coo, const Buffer<i64> &order, int threads, IndexOf &&index_of, Pick &&pick) {
  parallel_ranges(threads, coo.values.size(), grain, [&](Range r) {
    for (std::size_t m = 0; m < coo.indices.size(); ++m)
      for (i64 k = r.begin; k < r.end; ++k)
        coo.indices[m][k] = index_of(static_cast<int>(m), order[pick(k)]);
  });
}

template <class T> void gather_values(Coo &coo, const Buffer<i64> &order, int threads, const void *from) {
  T *to = coo.values.as<T>();
  parallel_ranges(threads, coo.values.size(), grain, [&](Range r) {
    for (i64 k = r.begin; k < r.end; ++k)
      to[k] = static_cast<const T *>(from)[order[k]];
  });
}

template <class Index, class T> Canonical build_lexicographic(const EntriesView &e, bool refuse, int threads) {
  const auto index_of = [&](int m, i64 k) { return i64{static_cast<const Index *>(e.indices[m])[k]} - e.index_base; };
  const auto order = ordering(e.dims, e.nnz, -1, threads, index_of);
  const auto coordinate_of = [&](i64 k) {
    std::vector<i64> coordinate;
    for (int m = 0; m < e.order(); ++m)
      coordinate.push_back(index_of(m, order[k]));
    return coordinate;
  };
  const auto repeats = [&](i64 k) {
    for (int m = 0; m < e.order() && k > 0; ++m)
      if (index_of(m, order[k]) != index_of(m, order[k - 1]))
        return false;
    return k > 0;
  };
  if (refuse)
    if (const i64 k = first_repeat(e.nnz, threads, repeats); k >= 0)
      refuse_duplicate(e, coordinate_of(k));

  const auto begins = run_begins(e.nnz, threads, "merging entries", [&](i64 k) { return !repeats(k); });
  const auto *values = static_cast<const T *>(e.values);
  Canonical c;
  c.coo = empty_coo(e.dims, e.value_type, begins.size() - 1);
  c.coo.values = ValueBuffer(); // the sums take its place
  c.coo.values = sum_runs<T>(
      begins, e, threads, [&](i64 k) { return values[order[k]]; }, coordinate_of);
  gather_indices(c.coo, order, threads, index_of, [&](i64 run) { return begins[run]; });
  c.duplicates = e.nnz - c.coo.values.size();
  return c;
}

} // namespace

kernels::CooView Coo::view() const { return {dims, values.size(), values.type(), columns.data(), values.data()}; }

i64 Coo::bytes() const {
  i64 total = 8 * std::ssize(dims) + values.bytes();
  for (const auto &column : indices)
    total += column.bytes();
  return total;
}

Coo empty_coo(std::span<const i64> dims, ValueType type, i64 nnz) {
  Coo coo;
  coo.dims.assign(dims.begin(), dims.end());
  for (std::size_t m = 0; m < dims.size(); ++m)
    coo.indices.emplace_back(nnz, "coordinates");
  for (const auto &column : coo.indices)
    coo.columns.push_back(column.data());
  coo.values = ValueBuffer(type, nnz, "values");
  return coo;
}

Canonical build_canonical(const EntriesView &e, bool refuse_duplicates, int threads) {
  if (linear_bits(e.dims) <= max_linear_bits) {
    const Packed p = build_packed(e, Numbering(e.dims), refuse_duplicates, threads);
    return {unpack(p, threads), p.duplicates};
  }
  return dispatch(e.index_type, [&](auto index) {
    return dispatch(e.value_type, [&](auto value) {
      return build_lexicographic<decltype(index), decltype(value)>(e, refuse_duplicates, threads);
    });
  });
}

void restore_indices(Coo &coo, const Numbering &numbering, std::span<const i64> dims, int threads) {
  coo.dims.assign(dims.begin(), dims.end());
  for (int m = 0; m < static_cast<int>(dims.size()); ++m) {
    if (numbering.is_index(m))
      continue;
    i64 *index = coo.indices[static_cast<std::size_t>(m)].data();
    parallel_ranges(threads, coo.values.size(), grain, [&](Range r) {
      for (i64 k = r.begin; k < r.end; ++k)
        index[k] = numbering.row(m, index[k]);
    });
  }
}

Coo build_fibers(const kernels::CooView &x, int mode, int threads) {
  const auto index_of = [&](int m, i64 k) { return x.indices[m][k]; };
  const auto order = ordering(x.dims, x.nnz, mode, threads, index_of);
  Coo coo = empty_coo(x.dims, x.type, x.nnz);
  gather_indices(coo, order, threads, index_of, [](i64 k) { return k; });
  dispatch(x.type, [&](auto zero) { gather_values<decltype(zero)>(coo, order, threads, x.values); });
  return coo;
}

} // namespace td::formats
