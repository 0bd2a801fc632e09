// JSON as it is written: values one after the other into a text. A tree of values would be no gain here, and those of
// nlohmann-json allocate in their destructors, which ends the process where memory has run out.
#pragma once

#include <cmath>
#include <concepts>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace td::pages {

class JsonText {
public:
  void begin(char bracket) { // '{' or '['
    separate();
    text_ += bracket;
    first_ = true;
  }
  void end(char bracket) {
    text_ += bracket;
    first_ = false;
  }
  void key(std::string_view name) {
    string(name);
    text_ += ':';
    first_ = true;
  }

  void null() { raw("null"); }
  void value(bool v) { raw(v ? "true" : "false"); }
  void value(double v) { // the shortest text that reads back as the same number
    separate();
    if (std::isfinite(v))
      fmt::format_to(std::back_inserter(text_), "{}", v);
    else
      text_ += "null";
  }
  void value(std::integral auto v) {
    separate();
    fmt::format_to(std::back_inserter(text_), "{}", v);
  }
  /// '<' is written as an escape, so that the text can stand in a page; what is not UTF-8 is written as td::escaped has
  /// it.
  void string(std::string_view s);

  template <class T> void member(std::string_view name, const T &v) {
    key(name);
    if constexpr (std::convertible_to<T, std::string_view>)
      string(v);
    else
      value(v);
  }
  template <class List> void members(std::string_view name, const List &values) {
    key(name);
    begin('[');
    for (const auto &v : values) {
      if constexpr (std::convertible_to<decltype(v), std::string_view>)
        string(v);
      else
        value(v);
    }
    end(']');
  }

  std::string take() { return std::move(text_); }

private:
  void raw(std::string_view s) {
    separate();
    text_ += s;
  }
  void separate() {
    if (!first_)
      text_ += ',';
    first_ = false;
  }

  std::string text_;
  bool first_ = true; // nothing stands before in this object or array, or a key does
};

} // namespace td::pages
