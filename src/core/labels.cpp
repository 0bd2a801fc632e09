#include "core/labels.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "core/sentence.hpp"

namespace td {

std::string labels_problem(std::string_view text, i64 count) {
  std::size_t at = 0;
  for (i64 index = 0; index < count; ++index) {
    const std::size_t end = text.find('\0', at);
    if (end == std::string_view::npos)
      return fmt::format("{} ended by NUL, expected {}, one for each index of the mode",
                         count_text(index, "label", "labels"), count);
    constexpr std::size_t longest = 32;
    if (const std::string_view label = text.substr(at, end - at); !is_utf8(label))
      return fmt::format("the label of index {}, '{}', is not UTF-8", index, escaped(label.substr(0, longest)));
    at = end + 1;
  }
  if (at == text.size())
    return {};
  return fmt::format("{} behind the last of {}, one for each index of the mode",
                     count_text(static_cast<i64>(text.size() - at), "byte", "bytes"),
                     count_text(count, "label", "labels"));
}

LabelList::LabelList(Buffer<char> text, i64 count) : text_(std::move(text)), begin_(count + 1, "where labels begin") {
  const char *at = text_.data();
  for (i64 index = 0; index < count; ++index) {
    begin_[index] = at - text_.data();
    at += std::strlen(at) + 1;
  }
  begin_[count] = at - text_.data();
}

std::shared_ptr<const LabelList> LabelList::copy_of(std::string_view text, i64 count) {
  Buffer<char> copy(static_cast<i64>(text.size()), "labels");
  std::copy(text.begin(), text.end(), copy.begin());
  return std::make_shared<const LabelList>(std::move(copy), count);
}

bool Labels::empty() const noexcept {
  return std::all_of(modes_.begin(), modes_.end(),
                     [](const Mode &mode) { return mode.name.empty() && mode.list == nullptr; });
}

const std::string &Labels::name(int mode) const noexcept {
  static const std::string none;
  return modes_.empty() ? none : modes_[static_cast<std::size_t>(mode)].name;
}

const LabelList *Labels::list(int mode) const noexcept {
  return modes_.empty() ? nullptr : modes_[static_cast<std::size_t>(mode)].list.get();
}

i64 Labels::bytes() const noexcept {
  i64 bytes = 0;
  for (const Mode &mode : modes_)
    bytes += mode.list == nullptr ? 0 : mode.list->bytes();
  return bytes;
}

} // namespace td
