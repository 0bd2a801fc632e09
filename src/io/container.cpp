#include "io/container.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <optional>

#include "core/buffer.hpp"
#include "core/parallel.hpp"
#include "io/checksum.hpp"

namespace td::io {

namespace {

constexpr std::string_view magic = "\x89tdb\r\n\x1a\n"; // as PNG's: shows transfers that change bytes
constexpr std::uint32_t byte_order = 0x01020304;
constexpr i64 alignment = 64;
constexpr std::size_t name_room = 40;

struct Header {
  char magic[8];
  std::uint32_t byte_order;
  std::uint32_t version;
  std::uint32_t kind;
  std::uint32_t sections;
  std::uint64_t table_offset;
  std::uint64_t file_size;
  std::uint32_t table_checksum;
  std::uint32_t unused[4];
  std::uint32_t checksum; // of the bytes before it
};
static_assert(sizeof(Header) == 64 && offsetof(Header, checksum) == 60);

struct TableEntry {
  char name[name_room]; // padded with zeros, at least one
  std::uint32_t type;
  std::uint32_t checksum;
  std::uint64_t offset; // from the beginning of the file
  std::uint64_t count;  // of elements
};
static_assert(sizeof(TableEntry) == 64);

template <class T> std::span<const char> bytes_of(const T &object) {
  return {reinterpret_cast<const char *>(&object), sizeof(T)};
}

std::uint32_t header_checksum(const Header &header) {
  return checksum(bytes_of(header).first(offsetof(Header, checksum)), 1);
}

bool is_element_type(std::uint32_t type) {
  constexpr ElementType known[] = {ElementType::f32, ElementType::f64, ElementType::i32, ElementType::i64,
                                   ElementType::text};
  return std::any_of(std::begin(known), std::end(known), [&](ElementType t) { return t == ElementType{type}; });
}

/// The checksum of a section, from that and the bytes of each process's part.
std::uint32_t joined(std::span<const i64> parts) {
  std::uint32_t sum = 0;
  for (std::size_t part = 0; part < parts.size(); part += 2)
    sum = join_checksums(sum, static_cast<std::uint32_t>(parts[part]), parts[part + 1]);
  return sum;
}

/// Converts the elements of a block, which need not be aligned; false if one does not fit.
template <class From, class To> bool convert(std::span<const char> from, To *to) {
  bool fits = true;
  for (std::size_t i = 0; i < from.size() / sizeof(From); ++i) {
    From v;
    std::memcpy(&v, from.data() + i * sizeof v, sizeof v);
    to[i] = static_cast<To>(v);
    if constexpr (sizeof(To) < sizeof(From))
      fits = fits && (std::isfinite(to[i]) || !std::isfinite(v));
  }
  return fits;
}

} // namespace

std::string_view name_of(ContainerKind kind) noexcept {
  switch (kind) {
  case ContainerKind::sparse:
    return "sparse tensor";
  case ContainerKind::dense:
    return "dense tensor";
  case ContainerKind::ktensor:
    return "ktensor";
  case ContainerKind::record:
    break;
  }
  return "checkpoint";
}

bool is_container(std::span<const char> bytes) noexcept {
  return bytes.size() >= magic.size() && std::equal(magic.begin(), magic.end(), bytes.begin());
}

bool is_container_of(ContainerKind kind, std::span<const char> bytes) noexcept {
  Header header;
  if (!is_container(bytes) || bytes.size() < sizeof header)
    return false;
  std::memcpy(&header, bytes.data(), sizeof header);
  return header.kind == static_cast<std::uint32_t>(kind);
}

namespace {

/// The first of several processes makes the temporary file, which the others open.
AtomicFile open_together(const std::string &path, const Writers &writers) {
  if (writers.count == 1)
    return AtomicFile(path);
  std::optional<AtomicFile> file;
  if (writers.first())
    file.emplace(path);
  std::string temporary = file ? file->temporary() : std::string();
  auto size = static_cast<i64>(temporary.size());
  writers.broadcast(&size, sizeof size);
  temporary.resize(static_cast<std::size_t>(size));
  writers.broadcast(temporary.data(), size);
  return file ? std::move(*file) : AtomicFile(path, temporary);
}

} // namespace

ContainerWriter::ContainerWriter(const std::string &path, ContainerKind kind, const Writers &writers)
    : writers_(writers), file_(open_together(path, writers)), kind_(kind) {
  if (writers_.first())
    file_.write(bytes_of(Header{})); // its place; commit() fills it
}

void ContainerWriter::pad() {
  constexpr char zeros[alignment] = {};
  const i64 over = file_.size() % alignment;
  if (over != 0)
    file_.write({zeros, static_cast<std::size_t>(alignment - over)});
}

ContainerWriter::Entry &ContainerWriter::begin(std::string_view name, ElementType type, i64 count) {
  if (name.size() >= name_room)
    throw_error(Status::argument, "section name '{}' has {} bytes, expected at most {}", name, name.size(),
                name_room - 1);
  pad();
  return entries_.emplace_back(Entry{std::string(name), type, file_.size(), count, 0});
}

void ContainerWriter::add(std::string_view name, ElementType type, i64 count, const void *data) {
  if (!writers_.first())
    return;
  Entry &entry = begin(name, type, count);
  const std::span<const char> bytes(static_cast<const char *>(data), static_cast<std::size_t>(count * size_of(type)));
  entry.checksum = checksum(bytes, available_threads());
  file_.write(bytes);
}

void ContainerWriter::add(std::string_view name, ElementType type, i64 count, Range part, const void *data) {
  if (writers_.count == 1)
    return add(name, type, count, data);
  i64 offset = 0;
  if (writers_.first()) {
    offset = begin(name, type, count).offset;
    file_.leave_room(count * size_of(type));
  }
  writers_.broadcast(&offset, sizeof offset);
  const std::span<const char> bytes(static_cast<const char *>(data),
                                    static_cast<std::size_t>(part.size() * size_of(type)));
  file_.rewrite(offset + part.begin * size_of(type), bytes);
  const i64 here[] = {checksum(bytes, available_threads()), std::ssize(bytes)};
  const std::vector<i64> all = writers_.gather(here);
  if (writers_.first())
    entries_.back().checksum = joined(all);
}

void ContainerWriter::add(std::string_view name, ElementType type, i64 count, const Fill &fill) {
  constexpr i64 block = i64{1} << 20; // elements: large enough to partition, small enough to add little memory
  constexpr i64 grain = i64{1} << 14;
  Entry &entry = begin(name, type, count);
  const i64 step = size_of(type);
  const int threads = available_threads();
  Buffer<char> made(std::min(block, count) * step, "a block of a binary file");
  for (i64 k = 0; k < count; k += block) {
    const i64 n = std::min(block, count - k);
    parallel_ranges(threads, n, grain, [&](Range r) { fill({k + r.begin, k + r.end}, made.data() + r.begin * step); });
    const std::span<const char> bytes(made.data(), static_cast<std::size_t>(n * step));
    entry.checksum = join_checksums(entry.checksum, checksum(bytes, threads), n * step);
    file_.write(bytes);
  }
}

void ContainerWriter::commit() {
  if (!writers_.first())
    file_.finish();
  if (writers_.count > 1) // the first goes on when all that the others have written is on disk
    writers_.gather(std::vector<i64>{0});
  if (!writers_.first())
    return;
  pad();
  std::vector<TableEntry> table;
  for (const Entry &e : entries_) {
    TableEntry t = {};
    std::memcpy(t.name, e.name.data(), e.name.size());
    t.type = static_cast<std::uint32_t>(e.type);
    t.checksum = e.checksum;
    t.offset = static_cast<u64>(e.offset);
    t.count = static_cast<u64>(e.count);
    table.push_back(t);
  }
  const std::span<const char> bytes(reinterpret_cast<const char *>(table.data()), table.size() * sizeof(TableEntry));
  Header header = {};
  std::memcpy(header.magic, magic.data(), magic.size());
  header.byte_order = byte_order;
  header.version = container_version;
  header.kind = static_cast<std::uint32_t>(kind_);
  header.sections = static_cast<std::uint32_t>(table.size());
  header.table_offset = static_cast<u64>(file_.size());
  header.table_checksum = checksum(bytes, 1);
  file_.write(bytes);
  header.file_size = static_cast<u64>(file_.size());
  header.checksum = header_checksum(header);
  file_.rewrite(0, bytes_of(header));
  file_.commit();
}

void ContainerReader::refuse(const std::string &why) const {
  source_.require_unchanged(); // else that is the reason
  throw_error(Status::io, "{}: td binary file: {}", source_.name(), why);
}

void ContainerReader::read_header() {
  Header header;
  const auto size = static_cast<u64>(source_.size());
  if (size < sizeof header)
    refuse(fmt::format("truncated: {} bytes are less than a header's {}", size, sizeof header));
  source_.read(0, {reinterpret_cast<char *>(&header), sizeof header});
  if (header.byte_order != byte_order)
    refuse("was written on a machine of the other byte order, or is corrupt");
  if (header.version != container_version)
    refuse(fmt::format("version {}, expected {}", header.version, container_version));
  if (header.checksum != header_checksum(header))
    refuse("corrupt: the header's checksum does not match");
  if (header.file_size != size)
    refuse(fmt::format("truncated or extended: {} bytes, expected {}", size, header.file_size));
  if (header.kind < 1 || header.kind > 4)
    refuse(fmt::format("kind of content {}, expected 1 to 4", header.kind));
  kind_ = ContainerKind{header.kind};
  const u64 table_size = u64{header.sections} * sizeof(TableEntry);
  if (header.table_offset > size || table_size > size - header.table_offset)
    refuse(fmt::format("a table of {} sections at byte {} goes beyond the file's {} bytes", header.sections,
                       header.table_offset, size));
  Buffer<char> room;
  const auto begin = static_cast<i64>(header.table_offset);
  const auto table = source_.bytes({begin, begin + static_cast<i64>(table_size)}, room);
  if (header.table_checksum != checksum(table, 1))
    refuse("corrupt: the table's checksum does not match");
  read_table(table);
}

void ContainerReader::read_table(std::span<const char> table) {
  const auto size = static_cast<u64>(source_.size());
  for (; !table.empty(); table = table.subspan(sizeof(TableEntry))) {
    TableEntry e;
    std::memcpy(&e, table.data(), sizeof e);
    const std::string_view name(e.name, name_room);
    const auto length = name.find('\0');
    if (length == std::string_view::npos)
      refuse("a section's name does not end");
    Section s;
    s.name = name.substr(0, length);
    if (!is_element_type(e.type))
      refuse(fmt::format("section {}: unknown element type {}", s.name, e.type));
    s.type = ElementType{e.type};
    const auto step = static_cast<u64>(size_of(s.type));
    if (e.offset % alignment != 0 || e.offset > size || e.count > (size - e.offset) / step)
      refuse(fmt::format("section {}: {} elements of {} bytes at byte {} go beyond the file's {} bytes or are not "
                         "aligned to {}",
                         s.name, e.count, step, e.offset, size, alignment));
    s.count = static_cast<i64>(e.count);
    s.place = {static_cast<i64>(e.offset), static_cast<i64>(e.offset + e.count * step)};
    s.checksum = e.checksum;
    sections_.push_back(std::move(s));
  }
}

const Section *ContainerReader::find(std::string_view name) const noexcept {
  for (const Section &s : sections_)
    if (s.name == name)
      return &s;
  return nullptr;
}

const Section &ContainerReader::section(std::string_view name) const {
  if (const Section *found = find(name))
    return *found;
  refuse(fmt::format("{} without section {}", name_of(kind_), name));
}

void ContainerReader::verify(const Section &section, int threads, const EachBlock &also, const Readers &readers) const {
  const Range part = readers.own(section.count);
  const i64 element = size_of(section.type);
  const Range mine{section.place.begin + part.begin * element, section.place.begin + part.end * element};
  const i64 here[] = {checksum(source_, mine, threads, also), mine.size()};
  const std::vector<i64> all = readers.gather(here);
  if (joined(all) != section.checksum)
    refuse(fmt::format("corrupt: the checksum of section {} does not match", section.name));
}

std::string ContainerReader::read_text(const Section &section) const {
  if (section.type != ElementType::text)
    refuse(fmt::format("section {}: expected text", section.name));
  std::string text(static_cast<std::size_t>(section.count), '\0');
  verify(section, 1,
         [&](i64 begin, std::span<const char> block) { std::copy(block.begin(), block.end(), text.begin() + begin); });
  return text;
}

void ContainerReader::read_values(const Section &section, ValueType type, void *out, int threads,
                                  const Readers &readers) const {
  if (!is_real(section.type))
    refuse(fmt::format("section {}: expected f32 or f64 elements", section.name));
  std::atomic<bool> fits{true};
  dispatch(type, [&](auto zero) {
    using T = decltype(zero);
    T *to = static_cast<T *>(out);
    verify(
        section, threads,
        [&](i64 begin, std::span<const char> block) {
          T *first = to + begin / size_of(section.type);
          if (section.type == ElementType::f32 ? !convert<float>(block, first) : !convert<double>(block, first))
            fits = false;
        },
        readers);
  });
  if (!fits)
    refuse(fmt::format("section {}: a value is beyond the range of {}", section.name, name_of(type)));
}

void ContainerReader::read_indices(const Section &section, i64 *out, int threads, const Readers &readers) const {
  if (section.type != ElementType::i32 && section.type != ElementType::i64)
    refuse(fmt::format("section {}: expected i32 or i64 elements", section.name));
  verify(
      section, threads,
      [&](i64 begin, std::span<const char> block) {
        i64 *first = out + begin / size_of(section.type);
        if (section.type == ElementType::i32)
          convert<std::int32_t>(block, first);
        else
          convert<i64>(block, first);
      },
      readers);
}

} // namespace td::io
