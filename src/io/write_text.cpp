// Tensors as text.
#include <algorithm>
#include <vector>

#include "core/parallel.hpp"
#include "io/dense_order.hpp"
#include "io/text_header.hpp"
#include "io/text_writer.hpp"
#include "io/writers.hpp"

namespace td::io {

namespace {

std::string joined(std::span<const i64> numbers) {
  std::string text;
  for (const i64 number : numbers) {
    append_number(text, number);
    text += ' ';
  }
  text.back() = '\n'; // a tensor has dims
  return text;
}

/// Whether in some mode, or in every mode, the last index occurs.
struct LastIndices {
  bool some = false;
  bool all = true;
};

LastIndices last_indices(const EntriesView &entries) {
  LastIndices found;
  for (std::size_t m = 0; m < entries.dims.size(); ++m) {
    const i64 last = entries.dims[m] - 1 + entries.index_base;
    const bool here = dispatch(entries.index_type, [&](auto zero) {
      using I = decltype(zero);
      const I *column = static_cast<const I *>(entries.indices[m]);
      return std::any_of(column, column + entries.nnz, [&](I index) { return static_cast<i64>(index) == last; });
    });
    found.some = found.some || here;
    found.all = found.all && here;
  }
  return found;
}

std::string text_header(const EntriesView &entries, FileFormat format) {
  const std::string dims = joined(entries.dims);
  // FROSTT has no place for dims: without the comment, empty slices at the end would be lost.
  if (format == FileFormat::frostt)
    return last_indices(entries).all ? std::string() : fmt::format("{} {}", dims_comment, dims);
  if (format == FileFormat::parti)
    return fmt::format("{}\n{}", entries.dims.size(), dims);
  // Tensor Toolbox and pyttb look at the first word only; the rest is for readers that also know GenTen's files, and
  // only where the indices leave the base open.
  const std::string_view base = format == FileFormat::genten                     ? " indices-start-at-zero"
                                : entries.nnz == 0 || last_indices(entries).some ? ""
                                                                                 : " indices-start-at-one";
  return fmt::format("sptensor{}\n{}\n{}{}\n", base, entries.dims.size(), dims, entries.nnz);
}

} // namespace

void write_entries_text(const EntriesView &entries, const std::string &path, FileFormat format) {
  TextWriter file(path);
  file.put(text_header(entries, format));
  const i64 shift = (format == FileFormat::genten ? 0 : 1) - entries.index_base;
  dispatch(entries.index_type, [&](auto index_zero) {
    dispatch(entries.value_type, [&](auto value_zero) {
      using I = decltype(index_zero);
      const auto *values = static_cast<const decltype(value_zero) *>(entries.values);
      std::vector<const I *> columns;
      for (std::size_t m = 0; m < entries.dims.size(); ++m)
        columns.push_back(static_cast<const I *>(entries.indices[m]));
      file.put_lines(entries.nnz, [&](Range r, std::string &out) {
        for (i64 k = r.begin; k < r.end; ++k) {
          for (const I *column : columns) {
            append_number(out, static_cast<i64>(column[k]) + shift);
            out += ' ';
          }
          append_number(out, values[k]);
          out += '\n';
        }
      });
    });
  });
  file.commit();
}

void write_array_text(const DenseArrayView &array, const std::string &path) {
  TextWriter file(path);
  file.put(fmt::format("tensor\n{}\n{}", array.dims.size(), joined(array.dims)));
  dispatch(array.value_type, [&](auto zero) {
    const auto *values = static_cast<const decltype(zero) *>(array.values);
    file.put_lines(element_count(array), [&](Range r, std::string &out) {
      for_each_offset(array, r, [&](i64 offset) {
        append_number(out, values[offset]);
        out += '\n';
      });
    });
  });
  file.commit();
}

} // namespace td::io
