#pragma once

#include "formats/formats.hpp"

namespace td::formats {

/// Columns and values of nnz entries, not yet filled.
Coo empty_coo(std::span<const i64> dims, ValueType type, i64 nnz);

} // namespace td::formats
