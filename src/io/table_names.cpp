#include "io/table_names.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <system_error>

#include <fast_float/fast_float.h>

#include "core/parallel.hpp"

namespace td::io {

namespace {

constexpr i64 grain = i64{1} << 14; // names; below this threads cost more than they bring

/// The first bytes, so that texts are mostly ordered without a look at them.
u64 first_bytes(std::string_view text) noexcept {
  u64 key = 0;
  for (std::size_t i = 0; i < 8; ++i)
    key = key << 8 | (i < text.size() ? static_cast<unsigned char>(text[i]) : 0U);
  return key;
}

/// A key that grows with the number which a text is; nothing if it is none.
std::optional<u64> number_key(std::string_view text) noexcept {
  double value = 0;
  const auto [end, error] = fast_float::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value))
    return std::nullopt;
  constexpr u64 sign = u64{1} << 63;
  const auto bits = std::bit_cast<u64>(value == 0 ? 0.0 : value); // -0 is 0
  return (bits & sign) != 0 ? ~bits : bits | sign;
}

} // namespace

void put_key(u64 key, char (&text)[8]) noexcept {
  for (int i = 7; i >= 0; --i, key >>= 8)
    text[i] = static_cast<char>(key & 0xff);
}

u64 key_in(std::string_view text) noexcept { return first_bytes(text); }

OrderedNames::OrderedNames(std::span<const Dictionary *const> parsers, int threads) {
  collect(parsers, threads);
  sort(threads);
  for (const Dictionary *parser : parsers)
    index_.emplace_back(i64{parser->size()}, "the order of a table's names");
  for (std::size_t i = 0; i < names_.size(); ++i) {
    const Name &name = names_[i];
    size_ += i == 0 || names_[i - 1].text != name.text ? 1 : 0;
    index_[name.parser][name.number] = static_cast<std::uint32_t>(size_ - 1);
  }
}

void OrderedNames::collect(std::span<const Dictionary *const> parsers, int threads) {
  for (std::uint32_t p = 0; p < parsers.size(); ++p)
    for (std::uint32_t number = 0; number < parsers[p]->size(); ++number)
      names_.push_back({0, parsers[p]->text(number), p, number});
  std::atomic<bool> all_numbers{true};
  const auto count = static_cast<i64>(names_.size());
  parallel_ranges(threads, count, grain, [&](Range r) {
    for (i64 i = r.begin; i < r.end && all_numbers; ++i) {
      Name &name = names_[static_cast<std::size_t>(i)];
      if (const auto key = number_key(name.text))
        name.key = *key;
      else
        all_numbers = false;
    }
  });
  if (all_numbers)
    return;
  // Behind what all begin with, a few bytes tell most of them apart.
  std::size_t same = names_.front().text.size();
  for (const Name &name : names_) {
    const std::string_view first = names_.front().text;
    same = std::min(same, name.text.size());
    while (name.text.substr(0, same) != first.substr(0, same))
      --same;
  }
  parallel_ranges(threads, count, grain, [&](Range r) {
    for (i64 i = r.begin; i < r.end; ++i) {
      Name &name = names_[static_cast<std::size_t>(i)];
      name.key = first_bytes(name.text.substr(same));
    }
  });
}

/// Parts that threads sort, merged in pairs.
void OrderedNames::sort(int threads) {
  const Range all{0, static_cast<i64>(names_.size())};
  const i64 parts = std::clamp<i64>(all.size() / grain, 1, threads);
  const auto at = [&](i64 part) {
    return names_.begin() + (part >= parts ? all.end : part_of(all, part, parts).begin);
  };
  parallel_ranges(threads, parts, 1, [&](Range r) {
    for (i64 part = r.begin; part < r.end; ++part)
      std::sort(at(part), at(part + 1));
  });
  for (i64 width = 1; width < parts; width *= 2) {
    const i64 pairs = (parts + 2 * width - 1) / (2 * width);
    parallel_ranges(threads, pairs, 1, [&](Range r) {
      for (i64 pair = r.begin; pair < r.end; ++pair)
        std::inplace_merge(at(2 * width * pair), at(2 * width * pair + width), at(2 * width * (pair + 1)));
    });
  }
}

std::shared_ptr<const LabelList> OrderedNames::labels(const std::optional<TimePattern> &time) const {
  const auto each = [&](auto &&use) {
    for (std::size_t i = 0; i < names_.size(); ++i)
      if (i == 0 || names_[i - 1].text != names_[i].text) {
        if (time)
          use(time->label(key_in(names_[i].text)));
        else
          use(names_[i].text);
      }
  };
  i64 bytes = 0;
  each([&](const auto &label) { bytes += static_cast<i64>(label.size()) + 1; });
  Buffer<char> text(bytes, "labels");
  char *at = text.data();
  each([&](const auto &label) {
    at = std::copy(label.begin(), label.end(), at);
    *at++ = '\0';
  });
  return std::make_shared<const LabelList>(std::move(text), size_);
}

} // namespace td::io
