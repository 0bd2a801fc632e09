// Files in a folder of their own that goes away with the test, and checks of errors.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include <unistd.h>

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "core/options.hpp"
#include "io/io.hpp"

namespace td::io {

class TempFolder {
public:
  TempFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "td_io_XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr)
      throw std::runtime_error("no temporary folder");
    path_ = name;
  }
  TempFolder(const TempFolder &) = delete;
  TempFolder &operator=(const TempFolder &) = delete;
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::string &path() const { return path_; }
  std::string file(std::string_view name) const { return path_ + "/" + std::string(name); }
  std::string put(std::string_view name, std::string_view content) const {
    std::ofstream(file(name), std::ios::binary) << content;
    return file(name);
  }
  std::string get(std::string_view name) const {
    std::ifstream in(file(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::size_t count() const {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator(path_), std::filesystem::directory_iterator()));
  }

private:
  std::string path_;
};

/// Runs f, which must throw an Error of that status whose text holds every one of `parts`.
template <class F> void expect_error(Status status, std::initializer_list<std::string_view> parts, F &&f) {
  try {
    f();
    ADD_FAILURE() << "no error, expected one with: " << *parts.begin();
  } catch (const Error &e) {
    EXPECT_EQ(static_cast<int>(e.status()), static_cast<int>(status)) << e.what();
    for (const auto part : parts)
      EXPECT_NE(std::string_view(e.what()).find(part), std::string_view::npos)
          << "text: " << e.what() << "\nexpected: " << part;
  }
}

inline Options options(std::initializer_list<std::pair<std::string_view, std::string_view>> settings) {
  Options o;
  for (const auto &[name, value] : settings)
    o.set_text(name, value);
  return o;
}

} // namespace td::io
