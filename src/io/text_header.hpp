// What the beginning of a text file says about the rest.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/file.hpp"
#include "io/matrix_market.hpp"

namespace td::io {

/// The words of option "dialect" in its order, behind auto.
enum class Dialect { frostt, parti, toolbox, genten, matrix_market };
std::string_view name_of(Dialect dialect) noexcept;

struct TextHeader {
  Dialect dialect = Dialect::frostt;
  bool dense = false;   // Tensor Toolbox "tensor", Matrix Market "array"
  bool pattern = false; // entries without values, which are 1
  Symmetry symmetry = Symmetry::general;
  int order = 0;
  std::vector<i64> dims;         // empty: the largest indices
  std::optional<i64> entries;    // as stated
  i64 entries_line = 0;          // where
  std::optional<int> index_base; // as stated, or as the dialect has it
  std::string base_reason;
  std::string dims_reason; // empty where the dialect states dims
  Range body;              // in the source
  i64 body_line = 1;       // number of the body's first line
};

/// First line of FROSTT text that td writes when the largest indices are smaller than the dims, which follow it.
inline constexpr std::string_view dims_comment = "# td: dims";

/// The content decides where no dialect is wanted.
TextHeader read_text_header(const Source &text, std::optional<Dialect> wanted);

/// "Tensor Toolbox sptensor text", ...
std::string_view dialect_title(Dialect dialect, bool dense) noexcept;

} // namespace td::io
