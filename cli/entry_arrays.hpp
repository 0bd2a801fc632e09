// A tensor as a caller of td holds it: arrays of coordinates and values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <variant>
#include <vector>

#include "handles.hpp"
#include "parallel.hpp"

namespace cli {

/// An array of coordinates for each mode, in a form that td.h takes.
template <class Index> struct Coordinates {
  static constexpr td_type type = sizeof(Index) == sizeof(std::int32_t) ? TD_I32 : TD_I64;
  std::vector<std::vector<Index>> modes;

  explicit Coordinates(std::size_t order = 0, std::int64_t n = 0)
      : modes(order, std::vector<Index>(static_cast<std::size_t>(n))) {}
  std::vector<const void *> read() const {
    std::vector<const void *> out;
    for (const auto &m : modes)
      out.push_back(m.data());
    return out;
  }
  std::vector<void *> write() {
    std::vector<void *> out;
    for (auto &m : modes)
      out.push_back(m.data());
    return out;
  }
};

using AnyCoordinates = std::variant<Coordinates<std::int32_t>, Coordinates<std::int64_t>>;

/// Arrays of 4 bytes where these suffice: those of a billion entries are to leave room for the tensor.
AnyCoordinates coordinates_for(const std::vector<std::int64_t> &dims, std::int64_t n);

/// Room for the elements of a dense tensor. Throws Failure where there is none.
template <class Value> std::vector<Value> dense_array(const std::vector<std::int64_t> &dims);

/// The entries of a sparse tensor, or the elements of a dense one, first index fastest.
class EntryArrays {
public:
  /// Copies them out of x; values become of the given type.
  EntryArrays(const td_tensor *x, td_type type);

  std::int64_t count() const noexcept { return nnz_; }
  bool sparse() const noexcept { return sparse_; }
  Tensor build(td_context *context, const td_options *options) const;
  /// Puts the entries of a sparse tensor in random order, always the same.
  void shuffle();
  /// Entry k becomes f(k), which several threads call.
  template <class F> void set_values(const F &f) {
    std::visit(
        [&](auto &values) {
          using Value = typename std::remove_reference_t<decltype(values)>::value_type;
          in_parallel(nnz_, [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t k = begin; k < end; ++k)
              values[static_cast<std::size_t>(k)] = static_cast<Value>(f(static_cast<std::uint64_t>(k)));
          });
        },
        values_);
  }

private:
  std::vector<std::int64_t> dims_;
  bool sparse_;
  td_type type_;
  std::int64_t nnz_;
  AnyCoordinates at_;
  std::variant<std::vector<float>, std::vector<double>> values_;
};

} // namespace cli
