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
  return choices;
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
    NpyArray npy = read_npy(input, choices.value_type, choices.threads);
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
  const Plain plain(file.input());
  ReadTensor tensor = read_tensor_bytes(plain.input(), ReadChoices::from(options, threads));
  if (plain.was_gzip())
    tensor.source = "gzip of " + tensor.source;
  return tensor;
}

Ktensor read_ktensor_bytes(const Input &input) {
  return is_container(input.bytes) ? read_ktensor_binary(input) : read_ktensor_text(without_mark(input));
}

Ktensor read_ktensor(const std::string &path) {
  std::error_code unknown; // a path that cannot be looked at is left to File to complain about
  if (std::filesystem::is_directory(path, unknown))
    return read_ktensor_folder(path);
  const File file(path);
  const Plain plain(file.input());
  return read_ktensor_bytes(plain.input());
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

Record read_record(const std::string &path) {
  const File file(path);
  if (!is_container(file.input().bytes))
    throw_error(Status::io, "{}: is not a td binary file, expected a checkpoint", path);
  return read_record_binary(file.input());
}

} // namespace td::io
