// What the writers of tensors and ktensors share.
#pragma once

#include <string>
#include <string_view>

#include "core/ktensor.hpp"
#include "core/views.hpp"

namespace td::io {

/// `format` is "frostt", "parti", "toolbox" or "genten".
void write_entries_text(const EntriesView &entries, const std::string &path, std::string_view format);
void write_array_text(const DenseArrayView &array, const std::string &path); // Tensor Toolbox "tensor"
void write_ktensor_text(const Ktensor &k, const std::string &path);

/// Appends rows [begin, end) of a matrix, a line each.
void append_rows(std::string &out, ConstMatrix a, Range rows);

/// Writes into a folder, which is made if it is not there: lambda.mat, mode1.mat, ...
void write_ktensor_splatt(const Ktensor &k, const std::string &folder);
/// Writes into a folder, which is made if it is not there: weights.npy, factor0.npy, ...
void write_ktensor_npy(const Ktensor &k, const std::string &folder);

} // namespace td::io
