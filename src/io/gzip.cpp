#include "io/gzip.hpp"

#include <algorithm>
#include <array>

#include "core/sentence.hpp"

#define ZLIB_CONST
#include <zlib.h>

namespace td::io {

namespace {

constexpr int gzip_window = 15 + 16; // zlib: largest window, gzip wrapping
constexpr i64 first_capacity = i64{1} << 16;
constexpr i64 largest_ratio = 1032;     // deflate cannot expand by more (zlib's technical notes)
constexpr i64 most_room = i64{1} << 30; // zlib counts in 32 bits
constexpr const char *inflated_text = "the inflated text of a gzip file";

class InflateStream {
public:
  InflateStream() {
    if (::inflateInit2(&z, gzip_window) != Z_OK)
      throw_error(Status::host_memory, "out of host memory: zlib's window for reading gzip");
  }
  InflateStream(const InflateStream &) = delete;
  InflateStream &operator=(const InflateStream &) = delete;
  ~InflateStream() { ::inflateEnd(&z); }
  z_stream z = {};
};

class DeflateStream {
public:
  DeflateStream() {
    constexpr int memory_level = 8; // zlib's default
    if (::deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, gzip_window, memory_level, Z_DEFAULT_STRATEGY) != Z_OK)
      throw_error(Status::host_memory, "out of host memory: zlib's window for writing gzip");
  }
  DeflateStream(const DeflateStream &) = delete;
  DeflateStream &operator=(const DeflateStream &) = delete;
  ~DeflateStream() { ::deflateEnd(&z); }
  z_stream z = {};
};

/// The size that the last member states (modulo 2^32), as far as the compressed size makes it possible.
i64 likely_size(const Source &source) {
  constexpr std::size_t trailer = 4;
  if (source.size() < static_cast<i64>(trailer))
    return first_capacity;
  char last[trailer];
  source.read(source.size() - static_cast<i64>(trailer), last);
  u64 stated = 0;
  for (std::size_t i = 0; i < trailer; ++i)
    stated |= u64{static_cast<unsigned char>(last[i])} << (8 * i);
  const i64 possible = source.size() > (i64{1} << 40) ? source.size() : source.size() * largest_ratio;
  return std::max(first_capacity, std::min(static_cast<i64>(stated), possible) + 1);
}

/// The compressed bytes in turn, and how many are left.
class Feed {
public:
  explicit Feed(const Source &source) : source_(source) {}

  i64 left() const noexcept { return static_cast<i64>(ready_.size()) + source_.size() - read_; }
  /// The next bytes; none at the end.
  std::span<const char> ready() {
    constexpr i64 block = i64{1} << 20;
    if (ready_.empty() && read_ < source_.size()) {
      const Range r{read_, std::min(source_.size(), read_ + block)};
      ready_ = source_.bytes(r, room_);
      read_ = r.end;
    }
    return ready_;
  }
  void take(std::size_t bytes) { ready_ = ready_.subspan(bytes); }
  /// Whether what is left begins with gzip's magic, which may lie across two blocks.
  bool at_gzip() const {
    char magic[2];
    if (left() < 2)
      return false;
    source_.read(source_.size() - left(), magic);
    return is_gzip(magic);
  }
  bool only_zeros() const {
    Feed rest(source_);
    rest.read_ = source_.size() - left();
    while (!rest.ready().empty()) {
      if (!std::all_of(rest.ready_.begin(), rest.ready_.end(), [](char c) { return c == 0; }))
        return false;
      rest.take(rest.ready_.size());
    }
    return true;
  }

private:
  const Source &source_;
  Buffer<char> room_;
  std::span<const char> ready_;
  i64 read_ = 0; // bytes of the source that are in ready_ or behind it
};

/// Room for inflated text, besides `old`.
Buffer<char> room_for(const Source &source, i64 size, i64 old, const MemoryBudget &budget) {
  MemoryNeed need;
  need.add("what it inflates to", static_cast<double>(size));
  budget.beside(old).require(fmt::format("{}: reading a gzip file of {} bytes", source.name(), source.size()), need);
  return {size, inflated_text};
}

Buffer<char> grown(const Source &source, const Buffer<char> &old, i64 used, const MemoryBudget &budget) {
  Buffer<char> larger = room_for(source, old.size() * 2, old.size(), budget);
  std::memcpy(larger.data(), old.data(), static_cast<std::size_t>(used));
  return larger;
}

} // namespace

bool is_gzip(std::span<const char> bytes) noexcept {
  return bytes.size() >= 2 && static_cast<unsigned char>(bytes[0]) == 0x1f &&
         static_cast<unsigned char>(bytes[1]) == 0x8b;
}

struct Inflater::State {
  explicit State(const Source &s) : source(s), feed(source) {}

  Source source;
  InflateStream stream;
  Feed feed;
  i64 total = 0; // bytes inflated
  bool ended = false;
};

Inflater::Inflater(const Source &source) : state_(std::make_unique<State>(source)) {}
Inflater::~Inflater() = default;

void Inflater::end_member() {
  State &s = *state_;
  if (s.feed.at_gzip()) {
    ::inflateReset(&s.stream.z);
    return;
  }
  if (!s.feed.only_zeros()) // with which some archivers pad
    throw_error(Status::io, "{}: {} after the end of the gzip data, which {} not gzip", s.source.name(),
                count_text(s.feed.left(), "byte", "bytes"), s.feed.left() == 1 ? "is" : "are");
  s.ended = true;
}

i64 Inflater::read(std::span<char> out) {
  State &s = *state_;
  z_stream &z = s.stream.z;
  i64 used = 0;
  const auto size = static_cast<i64>(out.size());
  while (!s.ended && used < size) {
    const std::span<const char> in = s.feed.ready();
    const i64 room = std::min(most_room, size - used);
    z.next_in = reinterpret_cast<const Bytef *>(in.data());
    z.avail_in = static_cast<uInt>(in.size());
    z.next_out = reinterpret_cast<Bytef *>(out.data() + used);
    z.avail_out = static_cast<uInt>(room);
    const int code = ::inflate(&z, Z_NO_FLUSH);
    s.feed.take(in.size() - z.avail_in);
    used += room - z.avail_out;
    s.total += room - z.avail_out;
    if (code == Z_STREAM_END) {
      end_member();
    } else if (code == Z_MEM_ERROR) {
      throw_error(Status::host_memory, "out of host memory: zlib's window for reading gzip");
    } else if (code == Z_BUF_ERROR) {
      s.source.require_unchanged();
      throw_error(Status::io, "{}: the gzip data end early, after {}", s.source.name(),
                  count_text(s.total, "inflated byte", "inflated bytes"));
    } else if (code != Z_OK) {
      s.source.require_unchanged();
      throw_error(Status::io, "{}: corrupt gzip data after {}: {}", s.source.name(),
                  count_text(s.total, "inflated byte", "inflated bytes"), z.msg != nullptr ? z.msg : "no reason given");
    }
  }
  return used;
}

PlainBytes::PlainBytes(const Source &source) : source_(source) {
  if (is_gzip(source.beginning(2)))
    inflater_ = std::make_unique<Inflater>(source);
}

i64 PlainBytes::read(std::span<char> out) {
  if (inflater_)
    return inflater_->read(out);
  const i64 size = std::min(static_cast<i64>(out.size()), source_.size() - at_);
  source_.read(at_, out.first(static_cast<std::size_t>(size)));
  at_ += size;
  return size;
}

Inflated inflate_all(const Source &source, const MemoryBudget &budget) {
  Inflater inflater(source);
  Buffer<char> out = room_for(source, likely_size(source), 0, budget);
  i64 used = 0;
  for (;;) {
    used += inflater.read(out.span().subspan(static_cast<std::size_t>(used)));
    if (used < out.size())
      return {std::move(out), used};
    out = grown(source, out, used, budget);
  }
}

std::string gzip_member(std::string_view text) {
  DeflateStream stream;
  z_stream &z = stream.z;
  std::string out(::deflateBound(&z, static_cast<uLong>(text.size())), '\0');
  z.next_in = reinterpret_cast<const Bytef *>(text.data());
  z.avail_in = static_cast<uInt>(text.size());
  z.next_out = reinterpret_cast<Bytef *>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  if (::deflate(&z, Z_FINISH) != Z_STREAM_END)
    throw_error(Status::internal, "zlib did not finish a block of {} bytes", text.size());
  out.erase(out.size() - z.avail_out);
  return out;
}

} // namespace td::io
