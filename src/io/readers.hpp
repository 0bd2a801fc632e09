// The readers one by one: read_tensor and the like put files before them.
#pragma once

#include <optional>
#include <string>

#include "io/file.hpp"
#include "io/io.hpp"
#include "io/table_layout.hpp"
#include "io/text_header.hpp"

namespace td::io {

struct ReadChoices {
  std::optional<Dialect> dialect; // none: the content decides
  int index_base = -1;            // -1: as the file says
  std::optional<ValueType> value_type;
  TableChoices table;
  int threads = 1;
  MemoryBudget memory;
  Readers readers;

  /// A reader asks before it allocates a tensor of so many numbers, of which `indices` are indices.
  void require_room(i64 values, i64 indices) const;

  static ReadChoices from(const Options &options, int threads);
};

/// The form of a file's entries: order, dims as the file states them, or none, and index_base likewise, or -1.
struct FileForm {
  bool binary = false;
  int order = 0;
  std::vector<i64> dims;
  int index_base = -1;
};
/// The dims that a file states, or where each of several readers has a file of its own, those that any states. Throws
/// on all of them where their files differ in what their entries' meaning depends on.
std::vector<i64> common_dims(const std::string &name, const Readers &readers, const FileForm &form);
/// Throws where each reads a file of its own and that is dense.
void require_entries(const std::string &name, const Readers &readers);

/// Any tensor file that is not compressed.
ReadTensor read_tensor_bytes(const Source &source, const ReadChoices &choices);
/// A table, also compressed with gzip. Of its text so many bytes are in memory at a time, twice; no line may be longer.
inline constexpr i64 table_block = i64{1} << 22;
ReadTensor read_table(const Source &source, const ReadChoices &choices, i64 block = table_block);
Ktensor read_ktensor_bytes(const Source &source, const MemoryBudget &budget = {});

Ktensor read_ktensor_text(const Input &text, const MemoryBudget &budget = {});
Ktensor read_ktensor_folder(const std::string &folder, const MemoryBudget &budget = {});
/// The files of a folder: weights, then a factor each.
Ktensor read_ktensor_splatt(std::span<const Source> files, const MemoryBudget &budget = {});
Ktensor read_ktensor_npy(std::span<const Source> files, const MemoryBudget &budget = {});

/// Text behind its header.
ReadTensor read_entries_text(const Source &source, const TextHeader &header, const ReadChoices &choices);
ReadTensor read_array_text(const Source &source, const TextHeader &header, const ReadChoices &choices);

/// Throws if a weight or an entry of a factor is not finite.
void check_finite(const Ktensor &k, const std::string &name);

/// Bytes of the mark that some editors put before UTF-8, if the text begins with it.
i64 mark_size(std::string_view text) noexcept;

} // namespace td::io
