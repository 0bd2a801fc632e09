// td's binary container: named arrays behind a versioned header, with checksums. The layout is in docs/file_formats.md.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/views.hpp"
#include "io/atomic_file.hpp"
#include "io/checksum.hpp"
#include "io/file.hpp"
#include "io/io.hpp"

namespace td::io {

enum class ContainerKind : std::uint32_t { sparse = 1, dense = 2, ktensor = 3, record = 4 };

std::string_view name_of(ContainerKind kind) noexcept;

enum class ElementType : std::uint32_t { f32 = 1, f64 = 2, i32 = 11, i64 = 12, text = 20 };

constexpr i64 size_of(ElementType t) noexcept {
  return t == ElementType::text ? 1 : t == ElementType::f32 || t == ElementType::i32 ? 4 : 8;
}
constexpr ElementType element_type(ValueType t) noexcept {
  return t == ValueType::f32 ? ElementType::f32 : ElementType::f64;
}
constexpr bool is_real(ElementType t) noexcept { return t == ElementType::f32 || t == ElementType::f64; }

inline constexpr std::uint32_t container_version = 1;

bool is_container(std::span<const char> bytes) noexcept;

/// Whether a file that begins so is, or was before it was damaged, of a kind.
bool is_container_of(ContainerKind kind, std::span<const char> bytes) noexcept;

/// Sections are written as they are added; commit() adds the table and the header, and the file appears. Of several
/// processes that make one file together the first writes what all have, and each its part of what they share.
class ContainerWriter {
public:
  ContainerWriter(const std::string &path, ContainerKind kind, const Writers &writers = {});
  void add(std::string_view name, ElementType type, i64 count, const void *data);
  /// For data that are not in memory as they will stand in the file: fill(range, out) makes elements [begin, end). It
  /// is called by several threads.
  using Fill = std::function<void(Range, char *)>;
  void add(std::string_view name, ElementType type, i64 count, const Fill &fill);
  /// Elements of which each process has a part, one after the other.
  void add(std::string_view name, ElementType type, i64 count, Range part, const void *data);
  void commit();

private:
  struct Entry {
    std::string name;
    ElementType type;
    i64 offset;
    i64 count;
    std::uint32_t checksum;
  };
  Entry &begin(std::string_view name, ElementType type, i64 count);
  void pad();

  Writers writers_;
  AtomicFile file_;
  ContainerKind kind_;
  std::vector<Entry> entries_;
};

struct Section {
  std::string name;
  ElementType type = ElementType::text;
  i64 count = 0;
  Range place; // of its bytes in the file
  std::uint32_t checksum = 0;
};

/// Header and table are checked when it is made, a section's content when it is read.
class ContainerReader {
public:
  explicit ContainerReader(const Source &source) : source_(source) { read_header(); }

  ContainerKind kind() const noexcept { return kind_; }
  std::span<const Section> sections() const noexcept { return sections_; }
  const Section &section(std::string_view name) const;
  /// Null if there is no section of this name.
  const Section *find(std::string_view name) const noexcept;

  std::string read_text(const Section &section) const;
  /// f32 and f64 in the file become `type`; a value that is too large for it is refused.
  void read_values(const Section &section, ValueType type, void *out, int threads, const Readers &readers = {}) const;
  /// i32 and i64 in the file become i64.
  void read_indices(const Section &section, i64 *out, int threads, const Readers &readers = {}) const;

  [[noreturn]] void refuse(const std::string &why) const;
  const std::string &name() const noexcept { return source_.name(); }

private:
  void read_header();
  void read_table(std::span<const char> table);
  /// Each of several readers looks at its part of the elements.
  void verify(const Section &section, int threads, const EachBlock &also, const Readers &readers = {}) const;

  Source source_;
  ContainerKind kind_ = ContainerKind::sparse;
  std::vector<Section> sections_;
};

} // namespace td::io
