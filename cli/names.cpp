#include "names.hpp"

namespace cli {

namespace {

std::string labels_of(const td_tensor *x, std::int32_t mode) {
  std::int64_t bytes = 0;
  check(td_tensor_get_labels(x, mode, nullptr, 0, &bytes));
  std::string labels(static_cast<std::size_t>(bytes), '\0');
  check(td_tensor_get_labels(x, mode, labels.data(), bytes, nullptr));
  return labels;
}

} // namespace

bool has_names(const td_tensor *x) {
  for (std::int32_t m = 0; m < get<std::int32_t>(td_tensor_order, x); ++m)
    if (!text(td_tensor_get_mode_name, x, m).empty() || !labels_of(x, m).empty())
      return true;
  return false;
}

void copy_names(const td_tensor *from, td_tensor *to) {
  for (std::int32_t m = 0; m < get<std::int32_t>(td_tensor_order, from); ++m) {
    check(td_tensor_set_mode_name(to, m, text(td_tensor_get_mode_name, from, m).c_str()));
    const std::string labels = labels_of(from, m);
    check(td_tensor_set_labels(to, m, labels.data(), static_cast<std::int64_t>(labels.size())));
  }
}

std::string lost_names(const std::string &path, const TableFlags &table) {
  const std::string format = table.given().value("file_format", "auto");
  const bool held = format == "binary" || (format == "auto" && path.ends_with(".tdb"));
  return held ? "" : "; of its names it keeps none, td's binary format (.tdb) does";
}

} // namespace cli
