// What the beginning of a text file says about the rest.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "io/file.hpp"

namespace td::io {

enum class Dialect { frostt, parti, toolbox, genten };

struct TextHeader {
  Dialect dialect = Dialect::frostt;
  bool dense = false; // Tensor Toolbox "tensor"
  int order = 0;
  std::vector<i64> dims;         // empty: the largest indices
  std::optional<i64> entries;    // as stated
  i64 entries_line = 0;          // where
  std::optional<int> index_base; // as stated, or as the dialect has it
  std::string base_reason;
  std::string dims_reason; // empty where the dialect states dims
  std::span<const char> body;
  i64 body_line = 1; // number of the body's first line
};

/// First line of FROSTT text that td writes when the largest indices are smaller than the dims, which follow it.
inline constexpr std::string_view dims_comment = "# td: dims";

/// `dialect` is the option's value: "auto" decides by the content.
TextHeader read_text_header(const Input &text, std::string_view dialect);

/// "Tensor Toolbox sptensor text", ...
std::string_view dialect_title(Dialect dialect) noexcept;

} // namespace td::io
