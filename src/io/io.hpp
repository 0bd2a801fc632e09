// Files. Readers give coordinates or arrays and say what they decided; writers make a file appear whole or not at all.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "core/entries.hpp"
#include "core/ktensor.hpp"
#include "core/options.hpp"
#include "io/file.hpp"

namespace td::io {

/// What part of a dense tensor one of several readers has: all elements from `offset` on in its array's dims.
struct Slab {
  std::vector<i64> dims; // of the tensor; empty: the array is all of it
  std::vector<i64> offset;
};

struct ReadTensor {
  std::variant<Entries, DenseArray> content;
  std::string source; // one line: file format or dialect, index base, and what they were decided by
  Labels labels = {}; // of files that hold them
  Slab slab = {};     // of a dense tensor

  i64 bytes() const; // of content and labels
};

/// Processes that read a tensor together, each a range of one file's entries, or a file of its own.
struct Readers {
  int number = 0;
  int count = 1;
  bool own_files = false;
  i64 unit = 1; // so many elements of a binary file's section go to one reader together
  /// Gives what each has brought, one after the other; all bring equally many numbers.
  std::function<std::vector<i64>(std::span<const i64>)> gather = [](std::span<const i64> mine) {
    return std::vector<i64>(mine.begin(), mine.end());
  };

  /// The range of so many elements of the file that all read that is this one's.
  Range own(i64 elements) const noexcept {
    const Range units = part_of({0, elements / unit}, number, count);
    return {units.begin * unit, units.end * unit};
  }
  /// Cuts an array along a mode whose slices follow one another in the file: what is left of dims is this one's slab.
  Slab cut(std::vector<i64> &dims, std::size_t mode) const;
};

/// Processes that write one file together, each its block of a ktensor's rows. All call the same functions in the same
/// order; the first decides about the file. One that fails breaks off, and the others fail in the function they are in.
struct Writers {
  int number = 0;
  int count = 1;
  /// It does what that of Readers does.
  std::function<std::vector<i64>(std::span<const i64>)> gather;
  /// Gives all what the first has.
  std::function<void(void *, i64)> broadcast;
  /// Brings the block of one process to the first.
  std::function<void(ConstMatrix, int, Matrix)> bring;

  bool first() const noexcept { return number == 0; }
};

/// Takes options "dialect", "index_base", "value_type", those of tables (TableChoices), and "memory_limit" for what is
/// read and what a compressed file inflates to. Text is parsed on `threads` threads. Several readers get entries each,
/// of a tensor whose dims all get, or a slab each of a dense tensor, of which the first has all where it is text. Files
/// of their own hold entries, and are alike but for these.
ReadTensor read_tensor(const std::string &path, const Options &options, int threads, const Readers &readers = {});

/// Only td's binary format holds labels.
void write_tensor(const EntriesView &entries, const std::string &path, const Options &options,
                  const Labels &labels = {});
void write_tensor(const DenseArrayView &array, const std::string &path, const Options &options,
                  const Labels &labels = {});

Ktensor read_ktensor(const std::string &path, const MemoryBudget &budget = {});
/// Writes it from a block on each of several processes: td's binary format all together, the others the first of them,
/// to which each brings its rows in turn.
void write_ktensor(const Ktensor &k, const std::string &path, const Options &options, const Writers &writers = {});

/// A named list of arrays in td's binary container (versioned header, checksums), for checkpoints.
struct Record {
  Ktensor factors;
  std::vector<std::pair<std::string, std::vector<double>>> series;
  std::vector<std::pair<std::string, std::string>> text;
};
/// Several readers each get their block of the factors, and all else.
Record read_record(const std::string &path, const MemoryBudget &budget = {}, const Readers &readers = {});
void write_record(const Record &record, const std::string &path, const Writers &writers = {});

/// Throws if a record could not be written under this name, or would replace a file that is no record and not empty.
/// What is there stays as it is.
void require_place_for_record(const std::string &path);

} // namespace td::io
