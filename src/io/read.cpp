// Which reader a file goes to, found from its first bytes.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <system_error>

#include "io/binary.hpp"
#include "io/container.hpp"
#include "io/npy.hpp"
#include "io/readers.hpp"

namespace td::io {

ReadChoices ReadChoices::from(const Options &options, int threads) {
  ReadChoices choices;
  choices.dialect = options.text("dialect");
  choices.index_base = static_cast<int>(options.integer("index_base"));
  const std::string type = options.text("value_type");
  if (type != "auto")
    choices.value_type = type == "f32" ? ValueType::f32 : ValueType::f64;
  choices.threads = std::max(threads, 1);
  choices.memory = MemoryBudget(options);
  return choices;
}

void ReadChoices::require_room(i64 values, i64 indices) const {
  MemoryNeed need;
  need.add("values", static_cast<double>(values) * static_cast<double>(size_of(value_type.value_or(ValueType::f64))));
  need.add("indices", 8 * static_cast<double>(indices));
  memory.require("reading a tensor", need);
}

i64 ReadTensor::bytes() const {
  if (const auto *array = std::get_if<DenseArray>(&content))
    return array->values.bytes();
  const auto &entries = std::get<Entries>(content);
  i64 bytes = entries.values.bytes();
  for (const Buffer<i64> &column : entries.indices)
    bytes += column.bytes();
  return bytes;
}

Input without_mark(const Input &text) {
  constexpr std::string_view mark = "\xef\xbb\xbf";
  const std::string_view begin(text.bytes.data(), std::min(mark.size(), text.bytes.size()));
  return begin == mark ? Input{text.name, text.bytes.subspan(mark.size())} : text;
}

ReadTensor read_tensor_bytes(const Input &input, const ReadChoices &choices) {
  if (is_container(input.bytes))
    return read_tensor_binary(input, choices);
  if (is_npy(input.bytes)) {
    NpyArray npy = read_npy(input, choices.value_type, choices.threads, choices.memory);
    if (npy.array.dims.size() < min_order)
      throw_error(Status::shape, "{}: .npy array of {} dims, expected {} to {}", input.name, npy.array.dims.size(),
                  min_order, max_order);
    return {std::move(npy.array), fmt::format("NumPy .npy; dense, {} elements", npy.type)};
  }
  const Input text = without_mark(input);
  const TextHeader header = read_text_header(text, choices.dialect);
  return header.dense ? read_array_text(text, header, choices) : read_entries_text(text, header, choices);
}

ReadTensor read_tensor(const std::string &path, const Options &options, int threads) {
  const File file(path);
  ReadChoices choices = ReadChoices::from(options, threads);
  const Plain plain(file.input(), choices.memory);
  choices.memory = choices.memory.beside(plain.bytes());
  ReadTensor tensor = read_tensor_bytes(plain.input(), choices);
  if (plain.was_gzip())
    tensor.source = "gzip of " + tensor.source;
  return tensor;
}

Ktensor read_ktensor_bytes(const Input &input, const MemoryBudget &budget) {
  return is_container(input.bytes) ? read_ktensor_binary(input, budget)
                                   : read_ktensor_text(without_mark(input), budget);
}

Ktensor read_ktensor(const std::string &path, const MemoryBudget &budget) {
  std::error_code unknown; // a path that cannot be looked at is left to File to complain about
  if (std::filesystem::is_directory(path, unknown))
    return read_ktensor_folder(path, budget);
  const File file(path);
  const Plain plain(file.input(), budget);
  return read_ktensor_bytes(plain.input(), budget.beside(plain.bytes()));
}

void check_finite(const Ktensor &k, const std::string &name) {
  for (const double weight : k.weights())
    if (!std::isfinite(weight))
      throw_error(Status::io, "{}: a weight is {}, expected a finite number", name, weight);
  for (int m = 0; m < k.order(); ++m) {
    const ConstMatrix a = k.factor(m);
    dispatch(k.type(), [&](auto zero) {
      using T = decltype(zero);
      for (i64 i = 0; i < a.rows; ++i)
        for (i64 r = 0; r < a.cols; ++r)
          if (!std::isfinite(a.row<T>(i)[r]))
            throw_error(Status::io, "{}: factor {}: entry at row {}, column {} is {}, expected a finite number", name,
                        m, i, r, a.row<T>(i)[r]);
    });
  }
}

Record read_record(const std::string &path, const MemoryBudget &budget) {
  const File file(path);
  if (!is_container(file.input().bytes))
    throw_error(Status::io, "{}: is not a td binary file, expected a checkpoint", path);
  return read_record_binary(file.input(), budget);
}

} // namespace td::io
