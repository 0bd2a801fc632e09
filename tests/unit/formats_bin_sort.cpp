// Sorting pairs into bins: the order of std::stable_sort, whatever the keys and the number of threads.
#include <cstdint>
#include <mutex>
#include <numeric>
#include <string>

#include <gtest/gtest.h>

#include "formats/bin_sort.hpp"

namespace {

using namespace td;
using namespace td::formats;

template <class Key, class Payload> struct Source {
  std::vector<Key> all;
  std::vector<Payload> numbers;

  void keys(i64 first, i64 count, Key *out) const { std::copy_n(all.begin() + first, count, out); }
  auto prefixes(int shift) const {
    return [this, shift](i64 first, i64 count, std::uint16_t *out) {
      for (i64 k = 0; k < count; ++k)
        out[k] = static_cast<std::uint16_t>(all[static_cast<std::size_t>(first + k)] >> shift);
    };
  }
  const Payload *payload(i64 first) const { return numbers.data() + first; }
};

/// Keys have `bits` bits; with skew most keys have the same upper half.
template <class Key, class Payload> Source<Key, Payload> drawn(i64 n, int bits, bool skew) {
  Source<Key, Payload> source;
  std::uint64_t state = 1;
  const auto next = [&] {
    state = state * 6364136223846793005U + 1442695040888963407U;
    return state >> 17;
  };
  for (i64 k = 0; k < n; ++k) {
    Key key = next();
    if constexpr (sizeof(Key) > 8)
      key = key << 70 | next();
    key &= bits >= static_cast<int>(8 * sizeof(Key)) ? ~Key{0} : (Key{1} << bits) - 1;
    if (skew && k % 8 != 0)
      key &= (Key{1} << (bits / 2)) - 1;
    source.all.push_back(key);
    source.numbers.push_back(static_cast<Payload>(k));
  }
  return source;
}

template <class Key, class Payload> void check(i64 n, int bits, bool skew, int threads) {
  SCOPED_TRACE(std::to_string(n) + " keys of " + std::to_string(bits) + " bits, skew " + std::to_string(skew) + ", " +
               std::to_string(threads) + " threads");
  const auto source = drawn<Key, Payload>(n, bits, skew);
  Buffer<Key> keys(n, "keys");
  Buffer<Payload> numbers(n, "numbers");
  std::mutex mutex;
  std::vector<Range> settled;
  BinSort<Key, Payload, Source<Key, Payload>>(source, n, bits, {keys.data(), numbers.data()}, threads)
      .run([&](Range r) {
        const std::lock_guard lock(mutex);
        settled.push_back(r);
        EXPECT_TRUE(std::is_sorted(keys.data() + r.begin, keys.data() + r.end));
      });

  std::vector<i64> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), i64{0});
  const auto key_of = [&](i64 k) { return source.all[static_cast<std::size_t>(k)]; };
  std::stable_sort(order.begin(), order.end(), [&](i64 a, i64 b) { return key_of(a) < key_of(b); });
  i64 different = 0;
  for (i64 k = 0; k < n; ++k) {
    const i64 there = order[static_cast<std::size_t>(k)];
    different += keys[k] != key_of(there) || numbers[k] != static_cast<Payload>(there) ? 1 : 0;
  }
  EXPECT_EQ(different, 0);

  std::sort(settled.begin(), settled.end(), [](Range a, Range b) { return a.begin < b.begin; });
  i64 end = 0;
  for (const Range r : settled) {
    if (r.size() == 0)
      continue;
    EXPECT_EQ(r.begin, end);
    EXPECT_TRUE(r.begin == 0 || keys[r.begin] != keys[r.begin - 1]) << "equal keys were settled apart at " << r.begin;
    end = r.end;
  }
  EXPECT_EQ(end, n);
}

TEST(FormatsBinSort, is_a_stable_sort) {
  for (const int threads : {1, 2, 3, 7})
    for (const i64 n : {0, 1, 2, 9, 1000, 16385, 70000, 200001})
      for (const bool skew : {false, true}) {
        check<u64, double>(n, 43, skew, threads);
        check<u64, float>(std::min<i64>(n, 70000), 64, skew, threads);
        check<u128, double>(std::min<i64>(n, 70000), 128, skew, threads);
      }
}

TEST(FormatsBinSort, sorts_keys_of_few_bits) {
  for (const int bits : {1, 3, 8, 17})
    check<u64, double>(100000, bits, false, 2);
}

TEST(FormatsBinSort, sorts_equal_keys_of_no_bits) { check<u64, double>(100000, 0, false, 3); }

} // namespace
