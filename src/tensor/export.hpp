// A stored tensor back in a caller's arrays.
#pragma once

#include "tensor/tensor.hpp"

namespace td::tensor {

/// Sparse only (else Status::unsupported). indices, single indices[m] and values may be null to leave them out.
void export_entries(const Tensor &x, IndexType index_type, void *const *indices, std::int32_t index_base,
                    ValueType value_type, void *values);

/// Strides in elements, empty for first index fastest.
void export_dense(const Tensor &x, std::span<const i64> strides, ValueType value_type, void *values);

} // namespace td::tensor
