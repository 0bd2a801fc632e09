// Texts that are numbered as they come.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/buffer.hpp"

namespace td::io {

class Dictionary {
public:
  /// Texts are looked up so many at a time: each lookup waits for memory, and these wait together.
  static constexpr std::size_t batch = 64;

  /// The numbers of at most `batch` texts, counted from 0 in the order of arrival. New ones are added.
  void find_or_add(std::span<const std::string_view> texts, std::uint32_t *numbers);

  std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(texts_.size()); }
  std::string_view text(std::uint32_t number) const noexcept { return texts_[number]; }
  i64 bytes() const noexcept;

private:
  struct Slot {
    std::uint32_t tag;    // upper bits of the text's hash
    std::uint32_t number; // from 1; 0: free
  };
  std::uint32_t find_or_add(std::string_view text, u64 hash);
  void prefetch(std::span<const u64> hashes) const;
  void reserve(std::size_t more);
  std::string_view keep(std::string_view text);

  Buffer<Slot> slots_; // a power of two, probed one after the other, at most half of them taken
  std::vector<std::string_view> texts_;
  std::vector<Buffer<char>> blocks_; // in which the texts lie
  std::size_t used_ = 0;             // of the last block
  i64 block_bytes_ = 0;
};

} // namespace td::io
