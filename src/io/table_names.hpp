// The names in a table's columns, in the order of the indices that they get.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/labels.hpp"
#include "io/dictionary.hpp"
#include "io/time_pattern.hpp"

namespace td::io {

/// Names of one column that several parsers have numbered each for itself, in one order: that of numbers if all names
/// are numbers, else that of their bytes; times, which are there as keys, in theirs. So the indices do not depend on
/// how lines are ordered, nor on the parsers.
class OrderedNames {
public:
  OrderedNames(std::span<const Dictionary *const> parsers, int threads);

  i64 size() const noexcept { return size_; }
  /// The index of the name that a parser calls `number`.
  std::uint32_t index(std::size_t parser, std::uint32_t number) const noexcept { return index_[parser][number]; }
  std::shared_ptr<const LabelList> labels(const std::optional<TimePattern> &time) const;
  /// What making it takes for so many names.
  static double bytes(double names) noexcept { return (sizeof(Name) + sizeof(std::uint32_t)) * names; }

private:
  struct Name {
    u64 key; // what comes first: a number's or the first bytes'
    std::string_view text;
    std::uint32_t parser;
    std::uint32_t number;

    bool operator<(const Name &other) const noexcept { return key != other.key ? key < other.key : text < other.text; }
  };
  void collect(std::span<const Dictionary *const> parsers, int threads);
  void sort(int threads);

  std::vector<Name> names_; // in order; equal ones of several parsers stand together
  std::vector<Buffer<std::uint32_t>> index_;
  i64 size_ = 0;
};

/// A time's key as a text for a dictionary, and back. Keys compare as these texts do.
void put_key(u64 key, char (&text)[8]) noexcept;
u64 key_in(std::string_view text) noexcept;

} // namespace td::io
