#include "plan/reasons.hpp"

namespace td::plan {

formats::EmptyRows empty_rows_of(std::string_view option) {
  if (option == "keep")
    return formats::EmptyRows::keep;
  return option == "drop" ? formats::EmptyRows::drop : formats::EmptyRows::few;
}

std::string why_empty_rows(std::string_view option, std::string_view format) {
  if (format == "coo")
    return "format coo keeps indices as they are";
  if (option != "auto")
    return "asked for by option 'empty_rows'";
  return "rows without entries are dropped in modes that are long and have many";
}

std::string why_dense_groups(std::string_view option) {
  if (option != "auto")
    return "asked for by option 'groups'";
  return "the halves with the fewest cells, each shared where it takes at most a quarter of the tensor's memory";
}

} // namespace td::plan
