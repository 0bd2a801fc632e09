#include "io/dictionary.hpp"

#include <algorithm>
#include <limits>

#include "core/error.hpp"

namespace td::io {

namespace {

/// The bytes of a text of at most 8, as a number.
u64 load(const char *p, std::size_t size) noexcept {
  u64 v = 0;
  if (size >= 4) { // two halves that overlap
    std::uint32_t low, high;
    std::memcpy(&low, p, sizeof low);
    std::memcpy(&high, p + size - sizeof high, sizeof high);
    v = low | u64{high} << 32;
  } else if (size > 0) {
    const auto byte = [&](std::size_t i) { return u64{static_cast<unsigned char>(p[i])}; };
    v = byte(0) | byte(size / 2) << 8 | byte(size - 1) << 16;
  }
  return v;
}

/// Every bit of h depends on every bit before: two multiplications by odd numbers whose bits are as random.
u64 mixed(u64 h) noexcept {
  h *= 0x9e3779b97f4a7c15;
  h ^= h >> 32;
  h *= 0xd6e8feb86659fd93;
  return h ^ h >> 29;
}

u64 hash_of(std::string_view text) noexcept {
  const char *p = text.data();
  std::size_t left = text.size();
  u64 h = left;
  for (; left > 8; left -= 8, p += 8) {
    u64 v;
    std::memcpy(&v, p, sizeof v);
    h = mixed(h ^ v);
  }
  return mixed(h ^ load(p, left));
}

/// It gives what == gives, without a call for the short texts that names are.
bool same(std::string_view a, std::string_view b) noexcept {
  if (a.size() != b.size())
    return false;
  if (a.size() <= 8)
    return load(a.data(), a.size()) == load(b.data(), b.size());
  constexpr std::size_t step = 8;
  for (std::size_t i = 0; i + step < a.size(); i += step)
    if (load(a.data() + i, step) != load(b.data() + i, step))
      return false;
  const std::size_t last = a.size() - step; // overlaps what was compared
  return load(a.data() + last, step) == load(b.data() + last, step);
}

constexpr std::size_t first_slots = 1 << 8;
constexpr std::size_t most_texts = std::numeric_limits<std::uint32_t>::max() - 1;

std::uint32_t tag_of(u64 hash) noexcept { return static_cast<std::uint32_t>(hash >> 32); }

} // namespace

void Dictionary::find_or_add(std::span<const std::string_view> texts, std::uint32_t *numbers) {
  reserve(texts.size());
  u64 hashes[batch];
  for (std::size_t i = 0; i < texts.size(); ++i)
    hashes[i] = hash_of(texts[i]);
  prefetch({hashes, texts.size()});
  for (std::size_t i = 0; i < texts.size(); ++i)
    numbers[i] = find_or_add(texts[i], hashes[i]);
}

/// Slots, then what they name, then what that points to.
void Dictionary::prefetch(std::span<const u64> hashes) const {
  const u64 mask = static_cast<u64>(slots_.size()) - 1;
  const auto named = [&](u64 hash) -> const std::string_view * {
    const Slot &slot = slots_[static_cast<i64>(hash & mask)];
    return slot.number != 0 && slot.tag == tag_of(hash) ? &texts_[slot.number - 1] : nullptr;
  };
  for (const u64 hash : hashes)
    __builtin_prefetch(&slots_[static_cast<i64>(hash & mask)]);
  for (const u64 hash : hashes)
    if (const auto *text = named(hash))
      __builtin_prefetch(text);
  for (const u64 hash : hashes)
    if (const auto *text = named(hash))
      __builtin_prefetch(text->data());
}

std::uint32_t Dictionary::find_or_add(std::string_view text, u64 hash) {
  const u64 mask = static_cast<u64>(slots_.size()) - 1;
  for (u64 at = hash & mask;; at = (at + 1) & mask) {
    Slot &slot = slots_[static_cast<i64>(at)];
    if (slot.number == 0) {
      texts_.push_back(keep(text));
      slot = {tag_of(hash), static_cast<std::uint32_t>(texts_.size())};
      return slot.number - 1;
    }
    if (slot.tag == tag_of(hash) && same(texts_[slot.number - 1], text))
      return slot.number - 1;
  }
}

/// Keeps half of the slots free when so many texts more have come.
void Dictionary::reserve(std::size_t more) {
  if (texts_.size() + more > most_texts)
    throw_error(Status::unsupported, "a column of a table with more than {} different names", most_texts - more);
  std::size_t size = std::max(first_slots, static_cast<std::size_t>(slots_.size()));
  while (2 * (texts_.size() + more) > size)
    size *= 2;
  if (size == static_cast<std::size_t>(slots_.size()))
    return;
  slots_ = Buffer<Slot>::zeros(static_cast<i64>(size), "the names of a table");
  const u64 mask = static_cast<u64>(size) - 1;
  for (std::size_t number = 0; number < texts_.size(); ++number) {
    const u64 hash = hash_of(texts_[number]);
    u64 at = hash & mask;
    while (slots_[static_cast<i64>(at)].number != 0)
      at = (at + 1) & mask;
    slots_[static_cast<i64>(at)] = {tag_of(hash), static_cast<std::uint32_t>(number + 1)};
  }
}

std::string_view Dictionary::keep(std::string_view text) {
  constexpr i64 smallest = i64{1} << 16, largest = i64{1} << 22; // as large as all before, so that few are in use
  if (blocks_.empty() || text.size() > static_cast<std::size_t>(blocks_.back().size()) - used_) {
    blocks_.emplace_back(std::max(std::clamp(block_bytes_, smallest, largest), static_cast<i64>(text.size())),
                         "the names of a table");
    block_bytes_ += blocks_.back().bytes();
    used_ = 0;
  }
  char *place = blocks_.back().data() + used_;
  std::copy(text.begin(), text.end(), place);
  used_ += text.size();
  return {place, text.size()};
}

i64 Dictionary::bytes() const noexcept {
  return block_bytes_ + slots_.bytes() + static_cast<i64>(texts_.capacity() * sizeof(texts_[0]));
}

} // namespace td::io
