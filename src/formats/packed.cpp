#include <limits>

#include "formats/coo.hpp"
#include "formats/key.hpp"
#include "formats/merge.hpp"
#include "formats/radix_sort.hpp"

namespace td::formats {

namespace {

Packed empty_packed(std::span<const i64> dims) {
  const int bits = linear_bits(dims);
  if (bits > max_linear_bits)
    throw_error(Status::internal, "{} index bits do not fit a key of {}", bits, max_linear_bits);
  Packed p;
  p.dims.assign(dims.begin(), dims.end());
  p.layout = packed_layout(bits_of(dims));
  p.key_bytes = key_bytes_for(bits);
  return p;
}

Buffer<u64> key_buffer(i64 n, int key_bytes, const char *what) { return Buffer<u64>(n * (key_bytes / 8), what); }

/// In rows' indices.
template <class Key> std::vector<i64> coordinate_of(const Packed &p, const Numbering &numbering, Key packed_key) {
  std::vector<i64> coordinate;
  for (int m = 0; m < p.layout.order; ++m)
    coordinate.push_back(numbering.row(m, field(p.layout, m, packed_key)));
  return coordinate;
}

/// Writes the interleaved keys and the values of a caller's entries.
template <class Key, class T>
void encode(const EntriesView &e, const Numbering &numbering, const Interleaving<Key> &map, Pairs<Key, T> out,
            int threads) {
  // Mode after mode in blocks that stay in the cache: then one mode's tables are in use at a time.
  constexpr i64 block = 1024;
  const auto *values = static_cast<const T *>(e.values);
  dispatch(e.index_type, [&](auto zero) {
    using Index = decltype(zero);
    parallel_ranges(threads, e.nnz, grain, [&](Range r) {
      for (i64 begin = r.begin; begin < r.end; begin += block) {
        const i64 end = std::min(begin + block, r.end);
        std::fill(out.keys + begin, out.keys + end, Key{0});
        for (int m = 0; m < e.order(); ++m) {
          const auto *index = static_cast<const Index *>(e.indices[m]);
          const auto &spread = map.spread[static_cast<std::size_t>(m)];
          const auto spread_rows = [&](auto &&number_of) {
            for (i64 k = begin; k < end; ++k)
              out.keys[k] |= spread(static_cast<u64>(number_of(static_cast<i64>(index[k]) - e.index_base)));
          };
          if (numbering.is_index(m))
            spread_rows([](i64 row) { return row; });
          else
            spread_rows([&](i64 row) { return numbering.number(m, row); });
        }
        std::copy(values + begin, values + end, out.payload + begin);
      }
    });
  });
}

/// Sorts interleaved keys and their values.
template <class Key, class T> void sort(Packed &p, int threads) {
  auto other_keys = key_buffer(p.nnz(), p.key_bytes, "sorting keys");
  ValueBuffer other_values(p.values.type(), p.nnz(), "sorting values");
  const Pairs<Key, T> other{reinterpret_cast<Key *>(other_keys.data()), other_values.as<T>()};
  RadixSort<Key, T>({p.keys_as<Key>(), p.values.as<T>()}, other, ~Key{0}, threads).run(p.nnz());
}

/// Merges neighbours with the same key. `At` counts entries; one of 4 bytes keeps what this takes below what sorting
/// took.
template <class At, class Key, class T>
void merge_runs(Packed &p, const EntriesView &e, const Numbering &numbering, const Interleaving<Key> &map,
                int threads) {
  const i64 n = p.nnz();
  const Key *keys = p.keys_as<Key>();
  const auto begins =
      run_begins<At>(n, threads, "merging entries", [&](i64 k) { return k == 0 || keys[k] != keys[k - 1]; });
  const i64 runs = begins.size() - 1;
  const T *values = p.values.as<T>();
  p.values = sum_runs<T>( // the values that were are given back at once
      begins, e, threads, [&](i64 k) { return values[k]; },
      [&](i64 k) { return coordinate_of(p, numbering, map.pack(keys[k])); });
  auto kept = key_buffer(runs, p.key_bytes, "keys");
  auto *out = reinterpret_cast<Key *>(kept.data());
  parallel_ranges(threads, runs, grain, [&](Range r) {
    for (i64 run = r.begin; run < r.end; ++run)
      out[run] = keys[begins[run]];
  });
  p.keys = std::move(kept);
  p.duplicates = n - runs;
}

template <class Key, class T>
void merge(Packed &p, const EntriesView &e, const Numbering &numbering, const Interleaving<Key> &map, bool refuse,
           int threads) {
  const i64 n = p.nnz();
  const Key *keys = p.keys_as<Key>();
  const i64 repeat = first_repeat(n, threads, [&](i64 k) { return k > 0 && keys[k] == keys[k - 1]; });
  if (repeat < 0)
    return;
  if (refuse)
    refuse_duplicate(e, coordinate_of(p, numbering, map.pack(keys[repeat])));
  if (n <= i64{std::numeric_limits<std::uint32_t>::max()})
    merge_runs<std::uint32_t, Key, T>(p, e, numbering, map, threads);
  else
    merge_runs<i64, Key, T>(p, e, numbering, map, threads);
}

template <class Key, class T>
void build(Packed &p, const EntriesView &e, const Numbering &numbering, bool refuse, int threads) {
  const Interleaving<Key> map(p.dims, p.layout);
  encode<Key, T>(e, numbering, map, {p.keys_as<Key>(), p.values.as<T>()}, threads);
  sort<Key, T>(p, threads);
  merge<Key, T>(p, e, numbering, map, refuse, threads);
  Key *keys = p.keys_as<Key>();
  parallel_ranges(threads, p.nnz(), grain, [&](Range r) {
    for (i64 k = r.begin; k < r.end; ++k)
      keys[k] = map.pack(keys[k]);
  });
}

} // namespace

Packed build_packed(const EntriesView &e, bool refuse_duplicates, int threads) {
  return build_packed(e, Numbering(e.dims), refuse_duplicates, threads);
}

Packed build_packed(const EntriesView &e, const Numbering &numbering, bool refuse_duplicates, int threads) {
  Packed p = empty_packed(numbering.dims());
  p.keys = key_buffer(e.nnz, p.key_bytes, "keys");
  p.values = ValueBuffer(e.value_type, e.nnz, "values");
  dispatch_key(p.key_bytes, [&](auto key) {
    dispatch(e.value_type,
             [&](auto zero) { build<decltype(key), decltype(zero)>(p, e, numbering, refuse_duplicates, threads); });
  });
  return p;
}

Packed pack(const kernels::CooView &x, int threads) {
  Packed p = empty_packed(x.dims);
  p.keys = key_buffer(x.nnz, p.key_bytes, "keys");
  p.values = ValueBuffer(x.type, x.nnz, "values");
  if (x.nnz > 0)
    std::memcpy(p.values.data(), x.values, static_cast<std::size_t>(p.values.bytes()));
  dispatch_key(p.key_bytes, [&](auto zero) {
    using Key = decltype(zero);
    Key *keys = p.keys_as<Key>();
    parallel_ranges(threads, x.nnz, grain, [&](Range r) {
      for (i64 k = r.begin; k < r.end; ++k) {
        Key key = 0;
        for (std::size_t m = 0; m < p.dims.size(); ++m)
          key |= static_cast<Key>(x.indices[m][k]) << p.layout.shift[m];
        keys[k] = key;
      }
    });
  });
  return p;
}

Packed pack_entries(const EntriesView &e, const Numbering &numbering, int threads) {
  Packed p = empty_packed(numbering.dims());
  p.keys = key_buffer(e.nnz, p.key_bytes, "keys");
  p.values = ValueBuffer(e.value_type, e.nnz, "values");
  dispatch_key(p.key_bytes, [&](auto zero) {
    using Key = decltype(zero);
    Key *keys = p.keys_as<Key>();
    std::fill_n(keys, e.nnz, Key{0});
    dispatch(e.index_type, [&](auto index_zero) {
      for (int m = 0; m < e.order(); ++m) {
        const auto *index = static_cast<const decltype(index_zero) *>(e.indices[m]);
        const int shift = p.layout.shift[static_cast<std::size_t>(m)];
        parallel_ranges(threads, e.nnz, grain, [&](Range r) {
          for (i64 k = r.begin; k < r.end; ++k)
            keys[k] |= static_cast<Key>(numbering.number(m, static_cast<i64>(index[k]) - e.index_base)) << shift;
        });
      }
    });
  });
  return p;
}

namespace {

/// Adds a bit to moves, to the last of them where it continues that.
void add_bit(std::vector<kernels::BitMove> &moves, int from, int to) {
  if (!moves.empty() && moves.back().from + moves.back().count == from && moves.back().to + moves.back().count == to)
    ++moves.back().count;
  else
    moves.push_back({from, to, 1});
}

} // namespace

PackedThere build_packed(kernels::Building &building, const EntriesView &e, const Numbering &numbering, bool refuse) {
  const Packed shape = empty_packed(numbering.dims());
  PackedThere p{&building, shape.dims, shape.layout, shape.key_bytes, e.value_type, 0};
  std::vector<std::vector<kernels::BitMove>> spread(p.dims.size()); // as Interleaving does it
  std::vector<kernels::BitMove> pack;
  int position = 0;
  for (const auto [mode, level] : interleaved_bits(p.dims)) {
    const auto m = static_cast<std::size_t>(mode);
    add_bit(spread[m], level, position);
    add_bit(pack, position, p.layout.shift[m] + level);
    ++position;
  }
  std::vector<kernels::RowNumbers> numbers;
  for (int m = 0; m < e.order(); ++m)
    numbers.push_back(numbering.numbers(m));
  building.encode(p.key_bytes, spread, numbers);
  building.sort();
  const auto coordinate = [&](i64 k) {
    const Interleaving<u128> map(p.dims, p.layout);
    return coordinate_of(shape, numbering, map.pack(building.keys({&k, 1}).front()));
  };
  if (refuse)
    if (const i64 repeat = building.first_repeat(); repeat >= 0)
      refuse_duplicate(e, coordinate(repeat));
  if (const i64 bad = building.merge(); bad >= 0)
    refuse_sum(e, coordinate(bad));
  p.duplicates = e.nnz - building.size();
  building.recode(p.key_bytes, pack);
  return p;
}

Packed download(const PackedThere &there) {
  Packed p = empty_packed(there.dims);
  p.keys = key_buffer(there.building->size(), p.key_bytes, "keys");
  p.values = ValueBuffer(there.type, there.building->size(), "values");
  there.building->download_keys(p.keys.data());
  there.building->download_values(p.values.data());
  p.duplicates = there.duplicates;
  return p;
}

Coo unpack(const Packed &p, int threads) {
  Coo coo = empty_coo(p.dims, p.values.type(), p.nnz());
  if (p.nnz() > 0)
    std::memcpy(coo.values.data(), p.values.data(), static_cast<std::size_t>(p.values.bytes()));
  dispatch_key(p.key_bytes, [&](auto zero) {
    using Key = decltype(zero);
    const Key *keys = p.keys_as<Key>();
    parallel_ranges(threads, p.nnz(), grain, [&](Range r) {
      for (int m = 0; m < p.layout.order; ++m) {
        i64 *column = coo.indices[static_cast<std::size_t>(m)].data();
        for (i64 k = r.begin; k < r.end; ++k)
          column[k] = field(p.layout, m, keys[k]);
      }
    });
  });
  return coo;
}

} // namespace td::formats
