// A tensor as a caller of td holds it: arrays of coordinates and values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "handles.hpp"

namespace cli {

/// An array of coordinates for each mode, in the form that td.h takes them.
struct Coordinates {
  std::vector<std::vector<std::int64_t>> modes;

  explicit Coordinates(std::size_t order = 0, std::int64_t n = 0)
      : modes(order, std::vector<std::int64_t>(static_cast<std::size_t>(n))) {}
  std::vector<const void *> read() const;
  std::vector<void *> write();
};

/// The number of elements. Throws Failure where they are more than any memory holds.
std::size_t dense_size(const std::vector<std::int64_t> &dims);

/// The entries of a sparse tensor with 64-bit coordinates, or the elements of a dense one, first index fastest.
class EntryArrays {
public:
  /// Copies them out of x; values become of the given type.
  EntryArrays(const td_tensor *x, td_type type);

  bool sparse() const noexcept { return sparse_; }
  Tensor build(td_context *context, const td_options *options) const;
  /// Puts the entries of a sparse tensor in random order, always the same.
  void shuffle();

private:
  std::vector<std::int64_t> dims_;
  bool sparse_;
  td_type type_;
  std::int64_t nnz_;
  Coordinates at_;
  std::vector<std::byte> values_;
};

} // namespace cli
