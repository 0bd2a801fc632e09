// NumPy's .npy files (versions 1 to 3), as numpy.lib.format documents them.
#pragma once

#include <optional>
#include <string>

#include "core/entries.hpp"
#include "io/atomic_file.hpp"
#include "io/file.hpp"
#include "io/io.hpp"

namespace td::io {

bool is_npy(std::span<const char> bytes) noexcept;

struct NpyArray {
  DenseArray array; // of any number of dims >= 1, each >= 1; strides always given
  std::string type; // NumPy's name, such as "<f8"
  Slab slab = {};
};

/// Real and whole numbers of either byte order become `type`, or f32 if they are that in the file, else f64. Numbers
/// that do not fit are refused: reals beyond the range, whole numbers that f64 or f32 cannot hold exactly. Several
/// readers get a slab each, of the mode that is slowest in the file.
NpyArray read_npy(const Source &source, std::optional<ValueType> type, int threads, const MemoryBudget &budget = {},
                  Readers readers = {});

/// First index fastest is fortran_order, last index fastest C order; other strides are copied to the first. The caller
/// commits.
void write_npy(const DenseArrayView &array, AtomicFile &file);

/// Writes what comes before a matrix whose rows follow.
void begin_npy_rows(i64 rows, i64 cols, ValueType type, AtomicFile &file);

} // namespace td::io
