// Made-up files in td's binary format with right checksums, as docs/file_formats.md lays them out: what is behind the
// checksums must stand up too. Written from the document, not from the library's code.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>

#include <zlib.h>

namespace tdtest {

inline constexpr std::size_t container_header_size = 64;
inline constexpr std::size_t container_version_at = 12;
inline constexpr std::size_t container_kind_at = 16;
inline constexpr std::size_t container_sections_at = 20;
inline constexpr std::size_t container_table_at = 24;
inline constexpr std::size_t container_size_at = 32;
inline constexpr std::size_t container_table_checksum_at = 40;
inline constexpr std::size_t container_header_checksum_at = 60;

inline constexpr std::size_t table_entry_size = 64;
inline constexpr std::size_t entry_type_at = 40;
inline constexpr std::size_t entry_checksum_at = 44;
inline constexpr std::size_t entry_offset_at = 48;
inline constexpr std::size_t entry_count_at = 56;

template <class T> T number_at(const std::string &bytes, std::size_t at) {
  T v;
  std::memcpy(&v, bytes.data() + at, sizeof v);
  return v;
}

template <class T> void put_at(std::string &bytes, std::size_t at, T v) {
  std::memcpy(bytes.data() + at, &v, sizeof v);
}

inline std::uint32_t crc32_of(const std::string &bytes, std::size_t begin, std::size_t size) {
  return static_cast<std::uint32_t>(
      ::crc32_z(0, reinterpret_cast<const Bytef *>(bytes.data()) + begin, static_cast<z_size_t>(size)));
}

/// Makes right every checksum whose bytes are in the file.
inline void seal_container(std::string &bytes) {
  if (bytes.size() < container_header_size)
    return;
  const auto table = number_at<std::uint64_t>(bytes, container_table_at);
  const std::uint64_t table_size =
      std::uint64_t{number_at<std::uint32_t>(bytes, container_sections_at)} * table_entry_size;
  if (table >= container_header_size && table <= bytes.size() && table_size <= bytes.size() - table) {
    for (std::size_t e = table; e < table + table_size; e += table_entry_size) {
      const auto type = number_at<std::uint32_t>(bytes, e + entry_type_at);
      const std::uint64_t step = type == 20 ? 1 : type == 1 || type == 11 ? 4 : 8;
      const auto offset = number_at<std::uint64_t>(bytes, e + entry_offset_at);
      const auto count = number_at<std::uint64_t>(bytes, e + entry_count_at);
      if (offset <= bytes.size() && count <= (bytes.size() - offset) / step)
        put_at(bytes, e + entry_checksum_at, crc32_of(bytes, offset, count * step));
    }
    put_at(bytes, container_table_checksum_at, crc32_of(bytes, table, table_size));
  }
  put_at(bytes, container_header_checksum_at, crc32_of(bytes, 0, container_header_checksum_at));
}

} // namespace tdtest
