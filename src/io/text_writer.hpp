// Text files: lines are made by several threads, and compressed by them if the name ends in .gz.
#pragma once

#include <charconv>
#include <functional>
#include <string>
#include <type_traits>

#include "core/views.hpp"
#include "io/atomic_file.hpp"

namespace td::io {

/// Appends the shortest text that reads back as the same number. f32 goes as f64, so that readers of either type get
/// exactly it.
template <class T> void append_number(std::string &out, T number) {
  constexpr std::size_t longest = 32; // "-2.2250738585072014e-308" has 24 characters
  char text[longest];
  const auto end = [&] {
    if constexpr (std::is_integral_v<T>)
      return std::to_chars(text, text + longest, number).ptr;
    else
      return std::to_chars(text, text + longest, static_cast<double>(number)).ptr;
  }();
  out.append(text, end);
}

/// Whether a file of this name is compressed.
bool is_gzip_name(std::string_view path) noexcept;

class TextWriter {
public:
  explicit TextWriter(const std::string &path);

  void put(std::string_view text);
  /// make(range, out) appends lines [begin, end) of `count`; it is called by several threads.
  void put_lines(i64 count, const std::function<void(Range, std::string &)> &make);

  void finish();
  void commit();

private:
  void flush();

  AtomicFile file_;
  bool gzip_;
  std::string pending_; // short texts wait for company
};

} // namespace td::io
