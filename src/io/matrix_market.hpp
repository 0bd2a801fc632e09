// Matrix Market files (NIST, math.nist.gov/MatrixMarket/formats.html): the banner, and what a symmetric file leaves
// out.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/entries.hpp"
#include "io/text_chunks.hpp"

namespace td::io {

/// Files of symmetric matrices hold the lower triangle, those of skew-symmetric ones what is below the diagonal.
enum class Symmetry { general, symmetric, skew };

struct MatrixMarketBanner {
  bool dense = false;   // "array": values column by column; else "coordinate"
  bool pattern = false; // entries are indices alone, for values of 1
  Symmetry symmetry = Symmetry::general;
};

/// Whether a file's first line is such a banner; upper and lower case are alike.
bool is_matrix_market(std::string_view line) noexcept;

/// Throws, naming the word, for what td cannot hold: complex and hermitian matrices.
MatrixMarketBanner read_banner(const std::string &name, std::string_view line);

/// What a tensor's source tells of it.
std::string_view name_in_source(Symmetry symmetry) noexcept;

/// How many of an array's values its file holds; dims are those of a square if it is not general.
i64 values_in_file(Symmetry symmetry, std::span<const i64> dims, i64 elements) noexcept;

/// Makes the whole n x n matrix of the values that the file held.
void mirror_array(Symmetry symmetry, i64 n, ValueBuffer &values);

/// Adds to each entry off the diagonal the one that it stands for; refuses entries that are not where they should be.
void mirror_entries(Symmetry symmetry, const std::string &name, const Chunks &chunks, Entries &x);

} // namespace td::io
