// Stable sort of (key, payload) pairs on their way into two arrays: they are made twice, once to be counted and once to
// be put into bins of neighbouring keys, which are then sorted one by one in a core's cache. So nothing of the pairs'
// size is needed besides the two arrays, unless one bin holds many of them, and these are passed over twice.
#pragma once

#include <algorithm>
#include <atomic>

#include "core/stream.hpp"
#include "formats/radix_sort.hpp"

namespace td::formats {

/// Writes an array at many places in turn, each of which moves on by one at a write. What goes to a place is gathered
/// until a cache line is full, which is then written without being read first.
template <class T> class LineWriter {
public:
  LineWriter(T *out, std::span<const i64> places)
      : out_(out), first_(places), lines_(std::ssize(places) * per_line, "lines to be written") {}

  /// `at` is how far place has come.
  void write(i64 place, i64 at, T value) noexcept {
    T *line = lines_.data() + place * per_line;
    const i64 in_line = at & (per_line - 1);
    line[in_line] = value;
    if (in_line == per_line - 1)
      flush(line, at + 1 - per_line, first_[static_cast<std::size_t>(place)]);
  }
  /// Writes what no full line was made of; ends[place] is how far place has come.
  void finish(std::span<const i64> ends) noexcept {
    for (std::size_t place = 0; place < ends.size(); ++place) {
      const i64 begin = ends[place] / per_line * per_line;
      const T *line = lines_.data() + static_cast<i64>(place) * per_line;
      for (i64 at = std::max(first_[place], begin); at < ends[place]; ++at)
        out_[at] = line[at - begin];
    }
    finish_streams();
  }

private:
  static constexpr i64 per_line = static_cast<i64>(line_bytes / sizeof(T)); // a power of two

  void flush(const T *line, i64 begin, i64 first) noexcept {
    if (begin < first) { // another thread's are before it in this line
      std::copy(line + first - begin, line + per_line, out_ + first);
      return;
    }
    stream_line(out_ + begin, line);
  }

  T *out_;
  std::span<const i64> first_;
  Buffer<T> lines_;
};

inline constexpr i64 most_made = 1024; // pairs at a time

/// Pairs that a bin should have. Bins are few enough that a line of each fits in a second-level cache.
constexpr i64 bin_size(i64 n) noexcept {
  const i64 least = n / (i64{1} << 11);
  return least > (i64{1} << 14) ? least : i64{1} << 14;
}

/// Bits by which keys are counted: more than there are bins, so that bins can be made of equal sizes.
constexpr int prefix_bits(i64 n, int bits) noexcept {
  int prefix = bits > 0 ? 1 : 0;
  while (prefix < bits && prefix < 16 && (n >> prefix) > 8)
    ++prefix;
  return prefix;
}

/// The workspace of BinSort, if no prefix is more frequent than a bin is large.
inline double bin_sort_bytes(i64 n, int bits, double pair_bytes, int threads) noexcept {
  const double parts = parts_for(n, threads);
  const double prefixes = static_cast<double>(i64{1} << prefix_bits(n, bits));
  const double counting = 8 * parts * prefixes;
  const double most = static_cast<double>(std::min(n, bin_size(n)));
  const double sorting = std::min(parts * most, static_cast<double>(n)) * pair_bytes;
  return 2 * prefixes + std::max(counting, sorting);
}

/// `source.keys(first, count, out)` makes keys of `bits` bits, `source.prefixes(shift)` gives a function that makes
/// their bits from `shift` on, which are 16 at most; `source.payload(first)` points to their payloads.
/// `settle(range)` is called for ranges of sorted pairs that hold all pairs of their keys, while they are in a cache.
template <class Key, class Payload, class Source> class BinSort {
public:
  BinSort(const Source &source, i64 n, int bits, Pairs<Key, Payload> out, int threads)
      : source_(source), out_(out), n_(n), parts_(parts_for(n, threads)), threads_(threads), bits_(bits) {}

  template <class Settle> void run(Settle &&settle) {
    make_bins();
    fill_bins();
    sort_bins(settle);
  }

private:
  /// Prefixes of keys are gathered into bins of equal sizes, as far as they go.
  void make_bins() {
    const int prefix = prefix_bits(n_, bits_);
    shift_ = bits_ - prefix;
    const i64 prefixes = i64{1} << prefix;
    auto count = Buffer<i64>::zeros(parts_ * prefixes, "counters of key prefixes");
    const auto make_prefixes = source_.prefixes(shift_);
    for_parts(n_, parts_, [&](int part, Range r) {
      i64 *here = count.data() + part * prefixes;
      std::array<std::uint16_t, most_made> prefix_of;
      for (i64 begin = r.begin; begin < r.end; begin += most_made) {
        const i64 size = std::min(most_made, r.end - begin);
        make_prefixes(begin, size, prefix_of.data());
        for (i64 k = 0; k < size; ++k)
          ++here[prefix_of[static_cast<std::size_t>(k)]];
      }
    });

    const i64 full = bin_size(n_);
    bin_of_ = Buffer<std::uint16_t>(prefixes, "bins of key prefixes");
    begins_.assign(1, 0);
    i64 in_bin = 0;
    for (i64 p = 0; p < prefixes; ++p) {
      i64 entries = 0;
      for (int part = 0; part < parts_; ++part)
        entries += count[part * prefixes + p];
      if (in_bin > 0 && in_bin + entries > full) {
        begins_.push_back(begins_.back() + in_bin);
        in_bin = 0;
      }
      in_bin += entries;
      bin_of_[p] = static_cast<std::uint16_t>(begins_.size() - 1);
    }
    begins_.push_back(n_);

    place_ = Buffer<i64>::zeros(parts_ * bins(), "places in bins");
    for (i64 p = 0; p < prefixes; ++p)
      for (int part = 0; part < parts_; ++part)
        place_[part * bins() + bin_of_[p]] += count[part * prefixes + p];
    i64 next = 0;
    for (i64 bin = 0; bin < bins(); ++bin)
      for (int part = 0; part < parts_; ++part)
        next += std::exchange(place_[part * bins() + bin], next);
  }

  void fill_bins() {
    for_parts(n_, parts_, [&](int part, Range r) {
      const std::span<i64> at = place_.span().subspan(static_cast<std::size_t>(part * bins()), begins_.size() - 1);
      const std::vector<i64> first(at.begin(), at.end());
      LineWriter<Key> key_writer(out_.keys, first);
      LineWriter<Payload> payload_writer(out_.payload, first);
      std::array<Key, most_made> keys;
      for (i64 begin = r.begin; begin < r.end; begin += most_made) {
        const i64 size = std::min(most_made, r.end - begin);
        source_.keys(begin, size, keys.data());
        const Payload *payload = source_.payload(begin);
        for (i64 k = 0; k < size; ++k) {
          const Key key = keys[static_cast<std::size_t>(k)];
          const i64 bin = bin_of_[static_cast<i64>(key >> shift_)];
          const i64 to = at[static_cast<std::size_t>(bin)]++;
          key_writer.write(bin, to, key);
          payload_writer.write(bin, to, payload[k]);
        }
      }
      key_writer.finish(at);
      payload_writer.finish(at);
    });
  }

  /// All threads sort the bins that are too large for a cache, one after the other; then one thread each sorts the
  /// others.
  template <class Settle> void sort_bins(Settle &&settle) {
    i64 largest = 0; // of the others
    for (i64 bin = 0; bin < bins(); ++bin) {
      const i64 size = size_of(bin);
      if (!is_large(bin)) {
        largest = std::max(largest, size);
        continue;
      }
      Scratch other(size);
      RadixSort<Key, Payload>(out_.from(begin_of(bin)), other.pairs(), ~Key{0}, threads_).run(size);
      settle(Range{begin_of(bin), begin_of(bin) + size});
    }
    const auto workers = static_cast<int>(std::min<i64>(parts_, bins()));
    Scratch others(workers * largest);
    std::atomic<i64> next = 0;
    parallel(workers, [&](int thread, int) {
      const auto other = others.pairs().from(thread * largest);
      for (i64 bin = next++; bin < bins(); bin = next++) {
        const i64 size = size_of(bin);
        if (is_large(bin))
          continue;
        const auto here = out_.from(begin_of(bin));
        if (CachedSort<Key, Payload>(~Key{0}).run(here, other, size)) {
          std::copy_n(other.keys, size, here.keys);
          std::copy_n(other.payload, size, here.payload);
        }
        settle(Range{begin_of(bin), begin_of(bin) + size});
      }
    });
  }

  struct Scratch {
    explicit Scratch(i64 n) : keys(n, "sorting keys"), payload(n, "sorting values") {}
    Pairs<Key, Payload> pairs() noexcept { return {keys.data(), payload.data()}; }
    Buffer<Key> keys;
    Buffer<Payload> payload;
  };

  i64 bins() const noexcept { return static_cast<i64>(begins_.size()) - 1; }
  i64 size_of(i64 bin) const noexcept { return begin_of(bin + 1) - begin_of(bin); }
  bool is_large(i64 bin) const noexcept { return size_of(bin) > 4 * bin_size(n_); }
  i64 begin_of(i64 bin) const noexcept { return begins_[static_cast<std::size_t>(bin)]; }

  const Source &source_;
  Pairs<Key, Payload> out_;
  i64 n_;
  int parts_;
  int threads_;
  int bits_;
  int shift_ = 0;
  Buffer<std::uint16_t> bin_of_;
  std::vector<i64> begins_; // of bins, then n
  Buffer<i64> place_;       // [parts * bins] where a part's next pair of a bin goes
};

} // namespace td::formats
