#include "io/text_writer.hpp"

#include <algorithm>
#include <vector>

#include "core/parallel.hpp"
#include "io/gzip.hpp"

namespace td::io {

bool is_gzip_name(std::string_view path) noexcept { return path.ends_with(".gz"); }

TextWriter::TextWriter(const std::string &path) : file_(path), gzip_(is_gzip_name(path)) {}

void TextWriter::put(std::string_view text) { pending_ += text; }

void TextWriter::flush() {
  if (!pending_.empty())
    file_.write(gzip_ ? gzip_member(pending_) : pending_);
  pending_.clear();
}

void TextWriter::put_lines(i64 count, const std::function<void(Range, std::string &)> &make) {
  constexpr i64 block = i64{1} << 15; // lines: about 1 MB of text, enough for gzip to do its best
  const int threads = available_threads();
  for (i64 k = 0; k < count;) {
    const Range round{k, std::min(count, k + block * threads)};
    const auto parts = static_cast<int>((round.size() + block - 1) / block);
    std::vector<std::string> made(static_cast<std::size_t>(parts));
    parallel(parts, [&](int thread, int granted) {
      // A round of a single part joins what is pending, so that small files are one gzip member.
      std::string text = parts == 1 ? std::move(pending_) : std::string();
      make(part_of(round, thread, granted), text);
      made[static_cast<std::size_t>(thread)] = gzip_ ? gzip_member(text) : std::move(text);
    });
    if (parts == 1)
      pending_.clear();
    flush();
    for (const std::string &text : made)
      file_.write(text);
    k = round.end;
  }
}

void TextWriter::finish() {
  flush();
  file_.finish();
}

void TextWriter::commit() {
  flush();
  file_.commit();
}

} // namespace td::io
