// Names of modes and of their indices, which go with a tensor or a ktensor and say what its numbers are about.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/buffer.hpp"
#include "core/types.hpp"

namespace td {

/// Why text is not `count` labels in UTF-8, one after the other, each ended by NUL; empty if it is.
std::string labels_problem(std::string_view text, i64 count);

/// Labels of one mode's indices. They never change, so that a tensor and its models share them.
class LabelList {
public:
  /// Text in which labels_problem finds none.
  LabelList(Buffer<char> text, i64 count);
  static std::shared_ptr<const LabelList> copy_of(std::string_view text, i64 count);

  i64 size() const noexcept { return begin_.size() - 1; }
  std::string_view operator[](i64 index) const noexcept {
    const i64 begin = begin_[index];
    return {text_.data() + begin, static_cast<std::size_t>(begin_[index + 1] - begin - 1)};
  }
  /// All of them, each ended by NUL.
  std::string_view text() const noexcept { return {text_.data(), static_cast<std::size_t>(text_.size())}; }
  i64 bytes() const noexcept { return text_.bytes() + begin_.bytes(); }

private:
  Buffer<char> text_;
  Buffer<i64> begin_; // [size + 1]
};

class Labels {
public:
  Labels() = default;
  explicit Labels(int order) : modes_(static_cast<std::size_t>(order)) {}

  bool empty() const noexcept;
  const std::string &name(int mode) const noexcept;
  /// Null where the mode's indices have no labels.
  const LabelList *list(int mode) const noexcept;
  void set_name(int mode, std::string_view name) { modes_[static_cast<std::size_t>(mode)].name = name; }
  void set_list(int mode, std::shared_ptr<const LabelList> list) {
    modes_[static_cast<std::size_t>(mode)].list = std::move(list);
  }
  i64 bytes() const noexcept;

private:
  struct Mode {
    std::string name;
    std::shared_ptr<const LabelList> list;
  };
  std::vector<Mode> modes_; // none where nothing has a name
};

} // namespace td
