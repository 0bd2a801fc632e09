#include "formats/duplicates.hpp"

namespace td::formats {

std::string coordinate_text(std::span<const i64> coordinate, std::int32_t base) {
  std::string text = "(";
  for (const i64 i : coordinate)
    text += fmt::format("{}{}", text.size() > 1 ? ", " : "", i + base);
  return text + ")";
}

void refuse_sum(const EntriesView &e, std::span<const i64> coordinate) {
  throw_error(Status::argument, "the entries at {} have a sum beyond the range of {}",
              coordinate_text(coordinate, e.index_base), name_of(e.value_type));
}

void refuse_duplicate(const EntriesView &e, std::span<const i64> coordinate) {
  std::vector<i64> at;
  dispatch(e.index_type, [&](auto zero) {
    using Index = decltype(zero);
    for (i64 k = 0; k < e.nnz && at.size() < 2; ++k) {
      bool here = true;
      for (int m = 0; m < e.order() && here; ++m)
        here = static_cast<const Index *>(e.indices[m])[k] - e.index_base == coordinate[static_cast<std::size_t>(m)];
      if (here)
        at.push_back(k);
    }
  });
  throw_error(Status::index, "entries {} and {} (counting from {}) are both at {}: repeated coordinates are refused",
              at.at(0) + e.index_base, at.at(1) + e.index_base, e.index_base,
              coordinate_text(coordinate, e.index_base));
}

} // namespace td::formats
