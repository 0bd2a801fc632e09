#include "formats/coo.hpp"
#include "formats/key.hpp"
#include "formats/radix_sort.hpp"
#include "formats/runs.hpp"

namespace td::formats {

namespace {

/// Sorts packed entries into s. `Key` is the type of packed keys, `Kept` that of keys without the sorted mode.
template <class Key, class Kept, class T> class Builder {
public:
  Builder(Sorted &s, const Packed &p, int threads)
      : s_(s), p_(p), threads_(threads), n_(p.nnz()), packed_(p.keys_as<Key>()), values_(p.values.as<T>()),
        shift_(p.layout.shift[static_cast<std::size_t>(s.mode)]),
        width_(p.layout.bits[static_cast<std::size_t>(s.mode)]) {}

  void run() {
    s_.keys = Buffer<std::byte>(n_ * static_cast<i64>(sizeof(Kept)), "keys sorted by mode");
    s_.values = ValueBuffer(p_.values.type(), n_, "values sorted by mode");
    const i64 dim = s_.dims[static_cast<std::size_t>(s_.mode)];
    const int parts = parts_for(n_, threads_);
    // A counter for each row and part is the fast way, as long as the counters take no more than a copy of the
    // entries would.
    if (dim <= std::max(i64{1024}, 2 * n_ / parts))
      count_rows(dim, parts);
    else
      sort_rows();
  }

private:
  i64 row_of(Key key) const noexcept { return static_cast<i64>((key >> shift_) & low_bits<Key>(width_)); }

  /// The row's own field goes and the gap closes; in two shifts, as one could reach the key's width.
  Kept without_row(Key key) const noexcept {
    return static_cast<Kept>((key & low_bits<Key>(shift_)) | (((key >> shift_) >> width_) << shift_));
  }

  Kept *kept() const noexcept { return reinterpret_cast<Kept *>(s_.keys.data()); }

  /// One counting pass and one that moves. Canonical neighbours are near in every mode, so the places that are written
  /// to at a time are few, however many rows there are.
  void count_rows(i64 dim, int parts) {
    auto place = Buffer<i64>::zeros(parts * dim, "row counters");
    for_parts(n_, parts, [&](int part, Range r) {
      i64 *count = place.data() + part * dim;
      for (i64 k = r.begin; k < r.end; ++k)
        ++count[row_of(packed_[k])];
    });
    i64 next = 0;
    i64 rows = 0;
    for (i64 row = 0; row < dim; ++row) {
      const i64 begin = next;
      for (int part = 0; part < parts; ++part)
        next += std::exchange(place[part * dim + row], next);
      rows += next > begin ? 1 : 0;
    }
    s_.row_index = Buffer<i64>(rows, "row indices");
    s_.row_begin = Buffer<i64>(rows + 1, "row boundaries");
    i64 at_row = 0;
    for (i64 row = 0; row < dim; ++row) {
      const i64 begin = place[row];
      if (begin == (row + 1 < dim ? place[row + 1] : n_))
        continue;
      s_.row_index[at_row] = row;
      s_.row_begin[at_row++] = begin;
    }
    s_.row_begin[rows] = n_;

    Kept *keys = kept();
    T *values = s_.values.as<T>();
    for_parts(n_, parts, [&](int part, Range r) {
      i64 *at = place.data() + part * dim;
      for (i64 k = r.begin; k < r.end; ++k) {
        const Key key = packed_[k];
        const i64 to = at[row_of(key)]++;
        keys[to] = without_row(key);
        values[to] = values_[k];
      }
    });
  }

  void sort_rows() {
    Buffer<Key> keys(n_, "sorting keys");
    Buffer<Key> other_keys(n_, "sorting keys");
    ValueBuffer other_values(p_.values.type(), n_, "sorting values");
    T *values = s_.values.as<T>();
    parallel_ranges(threads_, n_, grain, [&](Range r) {
      std::copy(packed_ + r.begin, packed_ + r.end, keys.data() + r.begin);
      std::copy(values_ + r.begin, values_ + r.end, values + r.begin);
    });
    const Key row_bits = low_bits<Key>(width_) << shift_;
    RadixSort<Key, T>({keys.data(), values}, {other_keys.data(), other_values.as<T>()}, row_bits, threads_).run(n_);
    s_.row_begin = run_begins(n_, threads_, "row boundaries",
                              [&](i64 k) { return k == 0 || ((keys[k] ^ keys[k - 1]) & row_bits) != 0; });
    const i64 rows = s_.row_begin.size() - 1;
    s_.row_index = Buffer<i64>(rows, "row indices");
    for (i64 row = 0; row < rows; ++row)
      s_.row_index[row] = row_of(keys[s_.row_begin[row]]);
    Kept *out = kept();
    parallel_ranges(threads_, n_, grain, [&](Range r) {
      for (i64 k = r.begin; k < r.end; ++k)
        out[k] = without_row(keys[k]);
    });
  }

  Sorted &s_;
  const Packed &p_;
  int threads_;
  i64 n_;
  const Key *packed_;
  const T *values_;
  int shift_;
  int width_;
};

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
    dispatch_key(s.key_bytes, [&](auto kept) {
      dispatch(p.values.type(),
               [&](auto zero) { Builder<decltype(key), decltype(kept), decltype(zero)>(s, p, threads).run(); });
    });
  });
  return s;
}

Sorted build_sorted(const kernels::CooView &canonical, int mode, int threads) {
  return build_sorted(pack(canonical, threads), mode, threads);
}

Coo decode(const Sorted &s, int threads) {
  const i64 nnz = s.values.size();
  Coo coo = empty_coo(s.dims, s.values.type(), nnz);
  i64 *rows = coo.indices[static_cast<std::size_t>(s.mode)].data();
  for (i64 row = 0; row < s.row_index.size(); ++row)
    std::fill(rows + s.row_begin[row], rows + s.row_begin[row + 1], s.row_index[row]);
  dispatch_key(s.key_bytes, [&](auto zero) {
    using Key = decltype(zero);
    const auto *keys = reinterpret_cast<const Key *>(s.keys.data());
    parallel_ranges(threads, nnz, grain, [&](Range r) {
      for (int m = 0; m < s.layout.order; ++m)
        for (i64 k = r.begin; k < r.end && m != s.mode; ++k)
          coo.indices[static_cast<std::size_t>(m)][k] = field(s.layout, m, keys[k]);
    });
  });
  const std::vector<const void *> columns(coo.columns.begin(), coo.columns.end());
  const EntriesView by_rows{s.dims, nnz, IndexType::i64, columns.data(), 0, s.values.type(), s.values.data()};
  return build_canonical(by_rows, false, threads).coo;
}

} // namespace td::formats
