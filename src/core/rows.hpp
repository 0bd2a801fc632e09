// Copying rows between matrices in host memory.
#pragma once

#include <cstring>

#include "core/views.hpp"

namespace td {

/// Both of the same type and number of columns.
inline void copy_rows(ConstMatrix from, Matrix to, Range rows) {
  for (i64 i = rows.begin; i < rows.end; ++i)
    std::memcpy(to.slice(i, i + 1).data, from.slice(i, i + 1).data,
                static_cast<std::size_t>(to.cols * size_of(to.type)));
}

} // namespace td
