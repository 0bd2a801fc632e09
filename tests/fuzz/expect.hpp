// What must hold of whatever a reader accepts; a fuzz target has no other way to complain than to stop.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <variant>

#include "core/error.hpp"
#include "io/readers.hpp"

namespace tdtest {

using namespace td;

inline void expect(bool holds, const char *what) {
  if (holds)
    return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

/// Runs a reader; refusing is fine as long as it says why.
template <class Read> void read_or_refuse(Read &&read) {
  try {
    read();
  } catch (const Error &e) {
    expect(e.what()[0] != '\0' && e.status() != Status::internal, "a refusal has a sentence and is no defect of td");
  }
}

inline void expect_sound(const io::ReadTensor &tensor) {
  expect(!tensor.source.empty() && tensor.source.find('\n') == std::string::npos, "the source is one line");
  if (const auto *x = std::get_if<Entries>(&tensor.content)) {
    expect(x->dims.size() >= min_order && x->dims.size() <= max_order, "order in range");
    expect(x->indices.size() == x->dims.size(), "indices of every mode");
    for (const auto &column : x->indices)
      expect(column.size() == x->values.size(), "as many indices as values");
  } else {
    const auto &a = std::get<DenseArray>(tensor.content);
    i64 elements = 1;
    for (const i64 dim : a.dims)
      elements *= dim;
    expect(elements == a.values.size(), "as many values as the dims say");
    expect(a.strides.empty() || a.strides.size() == a.dims.size(), "strides of every mode");
  }
}

/// Text is checked entry by entry: its errors name lines, so that nothing is left to those who take the tensor.
inline void expect_in_range(const io::ReadTensor &tensor) {
  const auto *x = std::get_if<Entries>(&tensor.content);
  if (x == nullptr)
    return;
  for (std::size_t m = 0; m < x->dims.size(); ++m)
    for (const i64 index : x->indices[m])
      expect(index >= x->index_base && index - x->index_base < x->dims[m], "indices are in range");
}

inline void expect_sound(const Ktensor &k) {
  expect(k.order() >= min_order && k.order() <= max_order && k.rank() >= 1, "order and rank in range");
  io::check_finite(k, "k");
}

inline io::Input input_of(const std::uint8_t *data, std::size_t size) {
  return {"input", {reinterpret_cast<const char *>(data), size}};
}

} // namespace tdtest
