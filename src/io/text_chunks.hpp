// A text body in chunks that threads work on: counted first, so that each then knows its place. A chunk's bytes are in
// memory while it is worked on, and are read again the second time: it must hold no more then than was counted.
#pragma once

#include <algorithm>
#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "core/parallel.hpp"
#include "io/file.hpp"

namespace td::io {

/// What a chunk of text holds: entries or numbers, whatever the reader counts.
struct Count {
  i64 lines = 0;
  i64 records = 0;
};

struct Chunk {
  Range place; // of its bytes in the source; ends behind a newline or with the body
  i64 first_line = 0;
  i64 first_record = 0;
  i64 records = 0;
  std::string problem; // of the first bad line
  i64 problem_line = 0;
  i64 parsed = 0; // records; must become `records`

  /// Where the next record goes; nothing if there are more than were counted.
  std::optional<i64> next_record() noexcept {
    return parsed++ < records ? std::optional(first_record + parsed - 1) : std::nullopt;
  }
};

/// Part k of n of a body, cut between lines.
Range lines_of(const Source &source, Range body, int k, int n);

class Chunks {
public:
  /// count(text) gives the Count of a chunk's text; it is called by several threads.
  template <class Counter>
  Chunks(const Source &source, Range body, i64 first_line, int threads, Counter &&count) : source_(source) {
    split(body, threads);
    std::vector<Count> counts(chunks_.size());
    each(threads, [&](std::size_t i, std::span<const char> text) { counts[i] = count(text); });
    for (std::size_t i = 0; i < chunks_.size(); ++i) {
      chunks_[i].first_line = first_line + lines_;
      chunks_[i].first_record = records_;
      chunks_[i].records = counts[i].records;
      lines_ += counts[i].lines;
      records_ += counts[i].records;
    }
  }

  i64 lines() const noexcept { return lines_; }
  /// There are more lines before the first than were known of.
  void move_lines(i64 more) noexcept {
    for (Chunk &chunk : chunks_)
      chunk.first_line += more;
  }
  i64 records() const noexcept { return records_; }
  std::size_t size() const noexcept { return chunks_.size(); }

  /// parse(text, chunk, i) for each chunk, by several threads; it notes a problem in the chunk and returns. The problem
  /// of the earliest line is thrown, so that the error does not depend on the threads.
  template <class Parser> void parse(int threads, Parser &&parse) {
    each(threads, [&](std::size_t i, std::span<const char> text) { parse(text, chunks_[i], i); });
    require_parsed();
  }

  /// The line of a record, read again for an error's text.
  i64 line_of(i64 record) const;

private:
  void split(Range body, int threads);
  void require_parsed() const;

  template <class Body> void each(int threads, Body &&body) {
    std::atomic<std::size_t> next{0};
    const auto most = static_cast<int>(std::min<std::size_t>(chunks_.size(), static_cast<std::size_t>(threads)));
    parallel(most, [&](int, int) {
      Buffer<char> room;
      for (std::size_t i = next++; i < chunks_.size(); i = next++)
        body(i, source_.bytes(chunks_[i].place, room));
    });
  }

  const Source &source_;
  std::vector<Chunk> chunks_;
  i64 lines_ = 0;
  i64 records_ = 0;
};

} // namespace td::io
