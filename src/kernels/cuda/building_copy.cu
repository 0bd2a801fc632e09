// A sorted copy of packed entries. What is sorted are words of a row's place and an entry's number, by the place: few
// bits, and the entries themselves are moved once. CUB's sort is stable, so within a row they stay in linearized order.
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>

#include "kernels/cuda/building_tools.cuh"

namespace td::kernels::cuda {

namespace {

/// The order that a tile has its rows in: heavy ones, ascending, then the others.
struct RowOrder {
  const i64 *heavy; // rows
  i64 count;
  /// The first of the heavy ones for which it holds, as for all behind it.
  template <class F> __device__ i64 first(F &&holds) const {
    i64 below = 0;
    for (i64 end = count; below < end;) {
      const i64 middle = (below + end) / 2;
      if (holds(middle))
        end = middle;
      else
        below = middle + 1;
    }
    return below;
  }
  __device__ i64 place_of(i64 row) const {
    const i64 below = first([&](i64 k) { return heavy[k] >= row; });
    return below < count && heavy[below] == row ? below : count + row - below;
  }
  __device__ i64 row_at(i64 place) const {
    if (place < count)
      return heavy[place];
    const i64 light = place - count;
    return light + first([&](i64 k) { return heavy[k] - k > light; });
  }
};

struct ListPlaces {
  RowOrder order;
  i64 *places;
  __device__ void operator()(i64 row) const { places[row] = order.place_of(row); }
};

struct TileFields {
  int count = 0;
  std::uint8_t shift[max_order];
  std::uint8_t bits[max_order];
  i64 stride[max_order];
};

/// Makes the words that are sorted: where an entry's row stands among all rows of all tiles, above the entry's number.
template <class Key, class Word> struct FindPlace {
  Field<Key> row;
  const i64 *places; // of rows in a tile; null: ascending
  TileFields fields;
  Word *words;
  __device__ void operator()(i64 k) const {
    i64 place = places == nullptr ? row(k) : places[row(k)];
    for (int c = 0; c < fields.count; ++c)
      place += Field<Key>{row.keys, fields.shift[c], fields.bits[c]}(k)*fields.stride[c];
    words[k] = static_cast<Word>(place) << number_bits | static_cast<Word>(k);
  }
};

template <class From, class To, class T, class Word> struct Gather {
  const Word *words;
  const From *keys;
  const T *values;
  Moves moves;
  To *keys_out;
  T *values_out;
  __device__ void operator()(i64 k) const {
    const auto number = static_cast<std::uint32_t>(words[k]);
    keys_out[k] = moves.template operator()<To>(keys[number]);
    values_out[k] = values[number];
  }
};

/// Rows, and the tiles' parts, of heavy and of light rows, that begin with them: parts[p] and, of the entries,
/// part_entries[p] for p up to the last part's end. A thread for each row, and one for the end.
template <class Word> struct FillRows {
  const Word *words;
  const std::uint32_t *first; // entries
  i64 rows, entries, dim, tiles;
  RowOrder order;
  i64 *row_begin;
  i64 *row_index;
  i64 *parts;
  i64 *part_entries;
  __device__ void operator()(i64 row) const {
    const i64 begin = row < rows ? i64{first[row]} : entries;
    row_begin[row] = begin;
    i64 last = 2 * tiles; // of the parts that begin here
    if (row < rows) {
      const i64 place = place_of(row);
      const i64 at = place % dim;
      row_index[row] = order.row_at(at);
      last = part_of(place);
    }
    for (i64 p = row == 0 ? 0 : part_of(place_of(row - 1)) + 1; p <= last; ++p) {
      parts[p] = row;
      part_entries[p] = begin;
    }
  }
  __device__ i64 place_of(i64 row) const { return static_cast<i64>(words[first[row]] >> number_bits); }
  __device__ i64 part_of(i64 place) const { return place / dim * 2 + (place % dim < order.count ? 0 : 1); }
};

class CopyMaker {
public:
  CopyMaker(Workspace &workspace, Staging &staging, const PackedOnGpu &entries, const CopyPlan &plan)
      : workspace_(workspace), device_(workspace.device()), staging_(staging), from_(entries), plan_(plan),
        heavy_(uploaded(workspace, staging, plan.heavy_rows.data(), static_cast<i64>(plan.heavy_rows.size_bytes()))),
        order_{heavy_.as<const i64>(), std::ssize(plan.heavy_rows)} {}

  template <class Word> Copy make() {
    const Array sorted = sorted_words<Word>();
    const auto *words = sorted.as<const Word>();
    const i64 n = from_.size;
    const Array first(workspace_, n * 4);
    const i64 rows = select(device_, n, Starts<Word>{words, ~Word{0} << number_bits}, first.as<std::uint32_t>());
    // All in one allocation, so that a copy that goes leaves room for one like it.
    const std::array<i64, 4> bytes{n * plan_.key_bytes, n * size_of(from_.type), rows * 8, (rows + 1) * 8};
    std::array<i64, 5> begin{};
    for (std::size_t k = 0; k < bytes.size(); ++k)
      begin[k + 1] = begin[k] + (bytes[k] + 255) / 256 * 256;
    auto arrays = std::make_shared<CudaArrays>(device_);
    auto *const all = static_cast<std::byte *>(workspace_.allocate(begin.back()));
    arrays->take(all, begin.back());
    for (std::size_t k = 0; k < bytes.size(); ++k)
      arrays->list(all + begin[k], bytes[k]);
    gather(words, all + begin[0], all + begin[1]);
    auto *const row_index = reinterpret_cast<i64 *>(all + begin[2]);
    auto *const row_begin = reinterpret_cast<i64 *>(all + begin[3]);
    const i64 parts = 2 * plan_.tiles + 1;
    const Array lists(workspace_, 2 * parts * 8);
    launch(device_, rows + 1,
           FillRows<Word>{words, first.as<const std::uint32_t>(), rows, n, plan_.dim, plan_.tiles, order_, row_begin,
                          row_index, lists.as<i64>(), lists.as<i64>() + parts});
    Copy copy = with_lists(lists, parts);
    copy.arrays = std::move(arrays);
    return copy;
  }

private:
  template <class Word> Array sorted_words() {
    const i64 bytes = from_.size * static_cast<i64>(sizeof(Word));
    Array words(workspace_, bytes);
    fill(words.as<Word>());
    Array others(workspace_, bytes);
    cub::DoubleBuffer<Word> both(words.as<Word>(), others.as<Word>());
    const int bits = std::max(1, static_cast<int>(std::bit_width(static_cast<u64>(plan_.tiles * plan_.dim - 1))));
    sort_words(device_, both, from_.size, bits);
    return both.Current() == words.as<Word>() ? std::move(words) : std::move(others);
  }

  template <class Word> void fill(Word *words) {
    TileFields fields;
    for (const TileField &field : plan_.tile_fields) {
      fields.shift[fields.count] = static_cast<std::uint8_t>(field.shift);
      fields.bits[fields.count] = static_cast<std::uint8_t>(field.bits);
      fields.stride[fields.count++] = field.stride * plan_.dim;
    }
    const bool any_heavy = order_.count > 0;
    const Array places(workspace_, any_heavy ? plan_.dim * 8 : 0);
    if (any_heavy)
      launch(device_, plan_.dim, ListPlaces{order_, places.as<i64>()});
    with_packed_key(from_.key_bytes, [&](auto key) {
      using Key = decltype(key);
      launch(device_, from_.size,
             FindPlace<Key, Word>{{static_cast<const Key *>(from_.keys), plan_.row_shift, plan_.row_bits},
                                  places.as<const i64>(),
                                  fields,
                                  words});
    });
  }

  template <class Word> void gather(const Word *words, void *keys_out, void *values_out) {
    with_packed_key(from_.key_bytes, [&](auto from) {
      with_key(plan_.key_bytes, [&](auto to) {
        dispatch(from_.type, [&](auto zero) {
          using From = decltype(from);
          using To = decltype(to);
          using T = decltype(zero);
          launch(device_, from_.size,
                 Gather<From, To, T, Word>{words, static_cast<const From *>(from_.keys),
                                           static_cast<const T *>(from_.values), Moves(plan_.kept),
                                           static_cast<To *>(keys_out), static_cast<T *>(values_out)});
        });
      });
    });
  }

  /// The lists of parts, on the host.
  Copy with_lists(const Array &lists, i64 parts) {
    std::vector<i64> both(static_cast<std::size_t>(2 * parts));
    staging_.download(both.data(), lists.as<void>(), 2 * parts * 8);
    const i64 *rows = both.data();
    const i64 *entries = rows + parts;
    Copy copy;
    for (i64 tile = 0; tile < plan_.tiles; ++tile) {
      copy.tile_begin.push_back(rows[2 * tile]);
      copy.tile_light.push_back(rows[2 * tile + 1]);
      copy.heavy_entries.push_back(entries[2 * tile + 1] - entries[2 * tile]);
    }
    copy.tile_begin.push_back(rows[2 * plan_.tiles]);
    return copy;
  }

  Workspace &workspace_;
  Gpu &device_;
  Staging &staging_;
  const PackedOnGpu &from_;
  const CopyPlan &plan_;
  Array heavy_;
  RowOrder order_;
};

} // namespace

Copy make_sorted_copy(Workspace &workspace, Staging &staging, const PackedOnGpu &entries, const CopyPlan &plan) {
  CopyMaker maker(workspace, staging, entries, plan);
  return plan.tiles * plan.dim <= i64{1} << 32 ? maker.make<u64>() : maker.make<u128>();
}

} // namespace td::kernels::cuda
