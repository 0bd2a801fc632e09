#include <atomic>
#include <limits>

#include "formats/bin_sort.hpp"
#include "formats/coo.hpp"
#include "formats/duplicates.hpp"
#include "formats/key.hpp"

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

/// The coordinate in rows' indices.
template <class Key> std::vector<i64> coordinate_of(const Packed &p, const Numbering &numbering, Key packed_key) {
  std::vector<i64> coordinate;
  for (int m = 0; m < p.layout.order; ++m)
    coordinate.push_back(numbering.row(m, field(p.layout, m, packed_key)));
  return coordinate;
}

/// Interleaved keys and values of a caller's entries.
template <class Key, class T> class Entries {
public:
  Entries(const EntriesView &e, const Numbering &numbering, const Interleaving<Key> &map)
      : e_(e), numbering_(numbering), map_(map) {}

  void keys(i64 first, i64 count, Key *out) const {
    std::fill_n(out, count, Key{0});
    for_modes(first, count, [&](std::size_t m, const u64 *index) { map_.spread[m].add_to(index, count, out); });
  }
  /// Makes the bits of keys from `shift` on, as keys() does keys.
  auto prefixes(int shift) const {
    std::vector<ByteTables<std::uint16_t>> tables;
    for (const auto &spread : map_.spread)
      tables.push_back(spread.template above<std::uint16_t>(shift));
    return [this, tables = std::move(tables)](i64 first, i64 count, std::uint16_t *out) {
      std::fill_n(out, count, std::uint16_t{0});
      for_modes(first, count, [&](std::size_t m, const u64 *index) { tables[m].add_to(index, count, out); });
    };
  }
  const T *payload(i64 first) const noexcept { return static_cast<const T *>(e_.values) + first; }

private:
  /// Calls body(mode, the entries' row numbers).
  template <class Body> void for_modes(i64 first, i64 count, Body &&body) const {
    std::array<u64, most_made> rows;
    dispatch(e_.index_type, [&](auto zero) {
      for (int m = 0; m < e_.order(); ++m) {
        const auto *index = static_cast<const decltype(zero) *>(e_.indices[m]) + first;
        for (i64 k = 0; k < count; ++k)
          rows[static_cast<std::size_t>(k)] = static_cast<u64>(static_cast<i64>(index[k]) - e_.index_base);
        if (!numbering_.is_index(m))
          for (i64 k = 0; k < count; ++k)
            rows[static_cast<std::size_t>(k)] =
                static_cast<u64>(numbering_.number(m, static_cast<i64>(rows[static_cast<std::size_t>(k)])));
        body(static_cast<std::size_t>(m), rows.data());
      }
    });
  }

  const EntriesView &e_;
  const Numbering &numbering_;
  const Interleaving<Key> &map_;
};

/// Merges neighbours with the same key. `At` counts entries.
template <class At, class Key, class T>
void merge_runs(Packed &p, const EntriesView &e, const Numbering &numbering, int threads) {
  const i64 n = p.nnz();
  const Key *keys = p.keys_as<Key>();
  const auto begins =
      run_begins<At>(n, threads, "merging entries", [&](i64 k) { return k == 0 || keys[k] != keys[k - 1]; });
  const i64 runs = begins.size() - 1;
  const T *values = p.values.as<T>();
  p.values = sum_runs<T>( // the values that were are given back at once
      begins, e, threads, [&](i64 k) { return values[k]; },
      [&](i64 k) { return coordinate_of(p, numbering, keys[k]); });
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
void merge(Packed &p, const EntriesView &e, const Numbering &numbering, bool refuse, int threads) {
  const i64 n = p.nnz();
  const Key *keys = p.keys_as<Key>();
  if (refuse) {
    const i64 repeat = first_repeat(n, threads, [&](i64 k) { return k > 0 && keys[k] == keys[k - 1]; });
    refuse_duplicate(e, coordinate_of(p, numbering, keys[repeat]));
  }
  if (n <= i64{std::numeric_limits<std::uint32_t>::max()})
    merge_runs<std::uint32_t, Key, T>(p, e, numbering, threads);
  else
    merge_runs<i64, Key, T>(p, e, numbering, threads);
}

template <class Key, class T>
void build(Packed &p, const EntriesView &e, const Numbering &numbering, bool refuse, int threads) {
  const Interleaving<Key> map(p.dims, p.layout);
  const Entries<Key, T> entries(e, numbering, map);
  Key *keys = p.keys_as<Key>();
  std::atomic<bool> repeats = false;
  BinSort<Key, T, Entries<Key, T>>(entries, e.nnz, total_bits(p.layout), {keys, p.values.as<T>()}, threads)
      .run([&](Range r) {
        bool repeat = false;
        for (i64 k = r.begin + 1; k < r.end; ++k)
          repeat |= keys[k] == keys[k - 1];
        if (repeat)
          repeats = true;
        std::array<Key, most_made> interleaved;
        for (i64 begin = r.begin; begin < r.end; begin += most_made) {
          const i64 count = std::min(most_made, r.end - begin);
          std::copy_n(keys + begin, count, interleaved.data());
          std::fill_n(keys + begin, count, Key{0});
          map.pack.add_to(interleaved.data(), count, keys + begin);
        }
      });
  if (repeats)
    merge<Key, T>(p, e, numbering, refuse, threads);
}

} // namespace

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

// Interleaving puts the bits of the host's keys there, too.
kernels::KeyMoves interleaved_keys(std::span<const i64> dims) {
  kernels::KeyMoves keys{key_bytes_for(linear_bits(dims)), std::vector<std::vector<kernels::BitMove>>(dims.size())};
  int position = 0;
  for (const auto [mode, level] : interleaved_bits(dims))
    add_bit(keys.moves[static_cast<std::size_t>(mode)], level, position++);
  return keys;
}

} // namespace

std::optional<kernels::KeyMoves> known_keys(const EntriesView &e, EmptyRows empty) {
  if (may_number(e.dims, e.nnz, empty))
    return std::nullopt;
  return interleaved_keys(e.dims);
}

PackedOnDevice build_packed(kernels::Building &building, const Given &given, const Numbering &numbering, bool refuse) {
  const EntriesView &e = given.view();
  const Packed shape = empty_packed(numbering.dims());
  PackedOnDevice p{&building, shape.dims, shape.layout, shape.key_bytes, e.value_type, 0};
  std::vector<kernels::BitMove> pack;
  int position = 0;
  for (const auto [mode, level] : interleaved_bits(p.dims))
    add_bit(pack, position++, p.layout.shift[static_cast<std::size_t>(mode)] + level);
  std::vector<kernels::RowNumbers> numbers;
  for (int m = 0; m < e.order(); ++m)
    numbers.push_back(numbering.numbers(m));
  building.encode(interleaved_keys(p.dims), numbers);
  building.sort();
  const auto coordinate = [&](i64 k) {
    const Interleaving<u128> map(p.dims, p.layout);
    return coordinate_of(shape, numbering, map.pack(building.keys({&k, 1}).front()));
  };
  if (refuse)
    if (const i64 repeat = building.first_repeat(); repeat >= 0)
      refuse_duplicate(given.on_host(), coordinate(repeat));
  if (const i64 bad = building.merge(); bad >= 0)
    refuse_sum(e, coordinate(bad));
  p.duplicates = e.nnz - building.size();
  building.recode(p.key_bytes, pack);
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
