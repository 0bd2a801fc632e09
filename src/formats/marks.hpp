// A set of whole numbers below some size, and the place of each in it: a bit a number.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <span>

#include "core/buffer.hpp"
#include "formats/parts.hpp"

namespace td::formats {

class Marks {
public:
  /// Marks take a quarter of a byte for each number below `size`.
  Marks() = default;
  explicit Marks(i64 size) : words_(Buffer<u64>::zeros(size / 64 + 1, "marks of what is not empty")) {}

  static double bytes_for(i64 size) noexcept { return 16 * static_cast<double>(size / 64 + 1); }

  /// Whether what marks take is no more than 16 bytes an entry, or 16 MiB.
  static bool are_small(i64 size, i64 entries) noexcept { return size / 64 <= std::max(entries, i64{1} << 20); }

  /// Any number of threads may call this at once, before settle().
  void add(i64 number) noexcept { add(number, words_.data()); }

  /// Adds all of them, as add() does.
  template <class Index> void add(std::span<const Index> numbers) noexcept {
    u64 *const words = words_.data(); // which atomic stores would have read again for each number
    for (const Index number : numbers)
      add(number, words);
  }

  /// A bit a number, and how many numbers are before each word (after settle()).
  Buffer<u64> &words() noexcept { return words_; }
  const Buffer<u64> &words() const noexcept { return words_; }
  const Buffer<i64> &before() const noexcept { return before_; }

  /// Gives how many numbers there are.
  i64 settle() {
    before_ = Buffer<i64>(words_.size(), "places of what is not empty");
    i64 count = 0;
    for (i64 w = 0; w < words_.size(); ++w) {
      before_[w] = count;
      count += std::popcount(words_[w]);
    }
    return count;
  }

  /// How many numbers are smaller than one that is there, after settle().
  i64 place(i64 number) const noexcept {
    const auto n = static_cast<u64>(number);
    const auto word = static_cast<i64>(n / 64);
    const u64 below = (u64{1} << (n % 64)) - 1;
    return before_[word] + std::popcount(words_[word] & below);
  }

  /// Calls f(place, number) for all, ranges of them on several threads.
  template <class F> void for_each(int threads, F &&f) const {
    parallel_ranges(threads, words_.size(), grain, [&](Range r) {
      for (i64 w = r.begin; w < r.end; ++w) {
        i64 place = before_[w];
        for (u64 left = words_[w]; left != 0; left &= left - 1)
          f(place++, w * 64 + std::countr_zero(left));
      }
    });
  }

  i64 bytes() const noexcept { return words_.bytes() + before_.bytes(); }

private:
  static void add(i64 number, u64 *words) noexcept {
    const auto n = static_cast<u64>(number); // its division is a shift
    const u64 bit = u64{1} << (n % 64);
    const std::atomic_ref word(words[n / 64]);
    if ((word.load(std::memory_order_relaxed) & bit) == 0)
      word.fetch_or(bit, std::memory_order_relaxed);
  }

  Buffer<u64> words_;
  Buffer<i64> before_; // numbers before each word
};

} // namespace td::formats
