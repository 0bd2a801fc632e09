#include "io/matrix_market.hpp"

#include <algorithm>
#include <initializer_list>

#include <fmt/ranges.h>

#include "io/text.hpp"

namespace td::io {

namespace {

constexpr std::string_view banner = "%%matrixmarket";

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return lower;
}

/// Takes the banner's next word, which must be one of some; % begins no comment here.
class BannerWords {
public:
  BannerWords(const std::string &name, std::string_view line) : name_(name), rest_(lower_case(line)) { take(); }

  std::string expect(std::string_view what, std::initializer_list<std::string_view> choices) {
    std::string word = take();
    if (std::find(choices.begin(), choices.end(), word) != choices.end())
      return word;
    throw_error(Status::io, "{}: line 1: the {} of a Matrix Market file is {}, expected {}", name_, what,
                io::quoted(word), fmt::join(choices, ", "));
  }
  void expect_end() {
    if (const std::string word = take(); !word.empty())
      throw_error(Status::io, "{}: line 1: {} after the banner of a Matrix Market file, expected nothing", name_,
                  io::quoted(word));
  }

private:
  std::string take() {
    const auto begin = std::min(rest_.find_first_not_of(" \t\r"), rest_.size());
    const auto end = std::min(rest_.find_first_of(" \t\r", begin), rest_.size());
    std::string word = rest_.substr(begin, end - begin);
    rest_.erase(0, end);
    return word;
  }

  const std::string &name_;
  std::string rest_;
};

template <class T> void mirror(Symmetry symmetry, i64 n, T *values) {
  const i64 below = symmetry == Symmetry::skew ? 1 : 0; // where a column of the file begins
  i64 from = (n - below) * (n - below + 1) / 2;
  // This goes from the end: a value's place in the matrix is never before its place in the file.
  for (i64 j = n - 1; j >= 0; --j)
    for (i64 i = n - 1; i >= j + below; --i)
      values[j * n + i] = values[--from];
  for (i64 j = 0; j < n; ++j) {
    if (symmetry == Symmetry::skew)
      values[j * n + j] = 0;
    for (i64 i = j + 1; i < n; ++i)
      values[i * n + j] = symmetry == Symmetry::skew ? -values[j * n + i] : values[j * n + i];
  }
}

} // namespace

bool is_matrix_market(std::string_view line) noexcept {
  return line.size() >= banner.size() &&
         std::equal(banner.begin(), banner.end(), line.begin(), [](char wanted, char c) {
           return wanted == (c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c);
         });
}

MatrixMarketBanner read_banner(const std::string &name, std::string_view line) {
  BannerWords words(name, line);
  MatrixMarketBanner found;
  words.expect("object", {"matrix"});
  found.dense = words.expect("format", {"coordinate", "array"}) == "array";
  const std::string field = words.expect("field", {"real", "integer", "unsigned-integer", "pattern", "complex"});
  const std::string symmetry = words.expect("symmetry", {"general", "symmetric", "skew-symmetric", "hermitian"});
  words.expect_end();
  for (const std::string &word : {field, symmetry})
    if (word == "complex" || word == "hermitian")
      throw_error(Status::unsupported, "{}: line 1: a {} matrix, expected a real, integer or pattern one", name, word);
  found.pattern = field == "pattern";
  found.symmetry = symmetry == "general"     ? Symmetry::general
                   : symmetry == "symmetric" ? Symmetry::symmetric
                                             : Symmetry::skew;
  if (found.pattern && (found.dense || found.symmetry == Symmetry::skew))
    throw_error(Status::io, "{}: line 1: a pattern has no values for an array or a skew-symmetric matrix", name);
  return found;
}

std::string_view name_in_source(Symmetry symmetry) noexcept {
  return symmetry == Symmetry::general     ? ""
         : symmetry == Symmetry::symmetric ? "; symmetric, mirrored"
                                           : "; skew-symmetric, mirrored";
}

i64 values_in_file(Symmetry symmetry, std::span<const i64> dims, i64 elements) noexcept {
  if (symmetry == Symmetry::general)
    return elements;
  const i64 below = (elements - dims[0]) / 2;
  return symmetry == Symmetry::skew ? below : below + dims[0];
}

void mirror_array(Symmetry symmetry, i64 n, ValueBuffer &values) {
  if (symmetry != Symmetry::general)
    dispatch(values.type(), [&](auto zero) { mirror(symmetry, n, values.as<decltype(zero)>()); });
}

void mirror_entries(Symmetry symmetry, const std::string &name, const Chunks &chunks, Entries &x) {
  if (symmetry == Symmetry::general)
    return;
  const bool skew = symmetry == Symmetry::skew;
  const i64 given = x.values.size();
  const i64 *rows = x.indices[0].data();
  const i64 *cols = x.indices[1].data();
  i64 off_diagonal = 0;
  for (i64 k = 0; k < given; ++k) {
    if (rows[k] < cols[k] || (skew && rows[k] == cols[k]))
      throw_error(Status::io,
                  "{}: line {}: an entry in row {}, column {}, expected entries {} the diagonal alone of a {}", name,
                  chunks.line_of(k), rows[k], cols[k], skew ? "below" : "on and below",
                  skew ? "skew-symmetric matrix" : "symmetric matrix");
    off_diagonal += rows[k] > cols[k] ? 1 : 0;
  }
  constexpr const char *what = "the entries of a symmetric matrix";
  Buffer<i64> all[] = {{given + off_diagonal, what}, {given + off_diagonal, what}};
  ValueBuffer values(x.values.type(), given + off_diagonal, what);
  dispatch(values.type(), [&](auto zero) {
    const auto *from = x.values.as<decltype(zero)>();
    auto *to = values.as<decltype(zero)>();
    const auto put = [&](i64 at, i64 row, i64 col, auto value) {
      all[0][at] = row;
      all[1][at] = col;
      to[at] = value;
    };
    i64 mirrored = given;
    for (i64 k = 0; k < given; ++k) {
      put(k, rows[k], cols[k], from[k]);
      if (rows[k] > cols[k])
        put(mirrored++, cols[k], rows[k], skew ? -from[k] : from[k]);
    }
  });
  x.indices[0] = std::move(all[0]);
  x.indices[1] = std::move(all[1]);
  x.values = std::move(values);
}

} // namespace td::io
