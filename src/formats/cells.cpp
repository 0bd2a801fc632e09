#include "formats/coo.hpp"

#include <algorithm>
#include <numeric>

#include "core/strides.hpp"

namespace td::formats {

Coo build_cells(std::span<const i64> dims, ValueType type) {
  const i64 count = element_count(dims);
  std::vector<i64> with_number(dims.begin(), dims.end());
  with_number.push_back(count);
  Coo cells = empty_coo(with_number, type, count);
  i64 stride = 1; // of a mode's index in the cell's number
  for (std::size_t m = 0; m < dims.size(); ++m) {
    i64 *index = cells.indices[m].data();
    for (i64 begin = 0; begin < count; begin += stride)
      std::fill_n(index + begin, stride, begin / stride % dims[m]);
    stride *= dims[m];
  }
  std::iota(cells.indices.back().begin(), cells.indices.back().end(), i64{0});
  dispatch(type, [&](auto zero) { std::fill_n(cells.values.as<decltype(zero)>(), count, decltype(zero){1}); });
  return cells;
}

} // namespace td::formats
