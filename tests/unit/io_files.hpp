// What the tests of files share.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "core/options.hpp"
#include "io/io.hpp"
#include "support/temporary.hpp"

namespace td::io {

class TempFolder : public tdtest::TemporaryFolder {
public:
  std::string put(const std::string &name, std::string_view content) const {
    std::ofstream(file(name), std::ios::binary) << content;
    return file(name);
  }
  std::string get(const std::string &name) const {
    std::ifstream in(file(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::size_t count() const {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator(path()), std::filesystem::directory_iterator()));
  }
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
