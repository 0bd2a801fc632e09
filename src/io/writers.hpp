// The writers of tensors and ktensors, and what they share.
#pragma once

#include <string>

#include "core/ktensor.hpp"
#include "core/views.hpp"
#include "io/io.hpp"

namespace td::io {

/// The words of option "file_format" in its order, behind auto.
enum class FileFormat { frostt, toolbox, genten, parti, binary, npy, splatt };

/// The format is one of text.
void write_entries_text(const EntriesView &entries, const std::string &path, FileFormat format);
void write_array_text(const DenseArrayView &array, const std::string &path); // Tensor Toolbox "tensor"
void write_ktensor_text(const Ktensor &k, const std::string &path, const Writers &writers = {});

/// Appends rows [begin, end) of a matrix, a line each.
void append_rows(std::string &out, ConstMatrix a, Range rows);

/// Writes into a folder, which is made if it is not there: lambda.mat, mode1.mat, ...
void write_ktensor_splatt(const Ktensor &k, const std::string &folder, const Writers &writers = {});
/// Writes into a folder, which is made if it is not there: weights.npy, factor0.npy, ...
void write_ktensor_npy(const Ktensor &k, const std::string &folder, const Writers &writers = {});

/// Calls body(rows) for all rows of a factor, block after block, on the first of the processes that have one each.
template <class Body> void for_blocks(const Ktensor &k, int mode, const Writers &writers, Body &&body) {
  const ConstMatrix here = k.factor(mode);
  if (writers.first())
    body(here);
  const i64 dim = k.dims()[static_cast<std::size_t>(mode)];
  const auto rows_of = [&](int process) {
    return writers.first() ? RowBlock{process, writers.count}.of(dim).size() : 0;
  };
  ValueBuffer room(k.type(), writers.count > 1 ? rows_of(1) * k.rank() : 0, "rows of a ktensor on their way to a file");
  for (int process = 1; process < writers.count; ++process) {
    const Matrix rows{room.data(), k.type(), rows_of(process), k.rank(), k.rank()};
    writers.bring(here, process, rows);
    if (writers.first())
      body(rows);
  }
}

/// Processes that do not write call it, so that the first gets their blocks.
inline void send_blocks(const Ktensor &k, const Writers &writers) {
  for (int m = 0; m < k.order(); ++m)
    for_blocks(k, m, writers, [](const ConstMatrix &) {});
}

} // namespace td::io
