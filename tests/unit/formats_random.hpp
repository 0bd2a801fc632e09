// Random entries for tests of the formats, held as a caller would hold them.
#pragma once

#include <cstdlib>
#include <random>
#include <vector>

#include "formats/formats.hpp"

namespace td::test {

/// TD_TEST_LIGHT, as in the other suites, leaves the heaviest combinations out.
inline bool light() { return std::getenv("TD_TEST_LIGHT") != nullptr; }

/// Entries in any index and value type; `view` is valid while this lives.
template <class Index, class Value> struct CallerEntries {
  std::vector<i64> dims;
  std::int32_t base = 0;
  std::vector<std::vector<Index>> columns;
  std::vector<Value> values;
  std::vector<const void *> pointers;

  void add(const std::vector<i64> &coordinate, Value value) { // coordinate counted from 0
    columns.resize(dims.size());
    for (std::size_t m = 0; m < dims.size(); ++m)
      columns[m].push_back(static_cast<Index>(coordinate[m] + base));
    values.push_back(value);
  }

  EntriesView view() {
    columns.resize(dims.size());
    pointers.clear();
    for (const auto &column : columns)
      pointers.push_back(column.data());
    return {dims,
            static_cast<i64>(values.size()),
            sizeof(Index) == 4 ? IndexType::i32 : IndexType::i64,
            pointers.data(),
            base,
            value_type_of<Value>,
            values.data()};
  }
};

/// nnz entries with whole-number values in 1 .. 100, so that sums are exact in any order. Repeats happen where the
/// tensor is small.
template <class Index, class Value>
CallerEntries<Index, Value> random_entries(const std::vector<i64> &dims, i64 nnz, std::int32_t base, unsigned seed) {
  std::mt19937_64 random(seed);
  CallerEntries<Index, Value> e{dims, base, {}, {}, {}};
  for (i64 k = 0; k < nnz; ++k) {
    std::vector<i64> coordinate;
    for (const i64 d : dims)
      coordinate.push_back(static_cast<i64>(random() % static_cast<u64>(d)));
    e.add(coordinate, static_cast<Value>(1 + random() % 100));
  }
  return e;
}

inline formats::Packed packed_of(const EntriesView &e, int threads = 1) {
  return formats::build_packed(e, formats::Numbering(e.dims), false, threads);
}
inline formats::Packed packed_of(const formats::Coo &coo, int threads = 1) {
  const std::vector<const void *> columns(coo.columns.begin(), coo.columns.end());
  return packed_of(
      EntriesView{coo.dims, coo.values.size(), IndexType::i64, columns.data(), 0, coo.values.type(), coo.values.data()},
      threads);
}

/// A copy in the tiles that pay on a CPU.
inline formats::Sorted sorted_of(const formats::Packed &packed, int mode, int threads = 1) {
  return formats::build_sorted(packed, mode, formats::tile_bits(packed.dims, mode, packed.nnz()), threads);
}

} // namespace td::test
