// A text body in pieces that threads work on: counted first, so that each piece then knows its place.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "core/parallel.hpp"
#include "io/file.hpp"

namespace td::io {

/// What a piece of text holds: entries or numbers, whatever the reader counts.
struct Count {
  i64 lines = 0;
  i64 records = 0;
};

struct Chunk {
  std::span<const char> text; // ends behind a newline or with the body
  i64 first_line = 0;
  i64 first_record = 0;
  i64 records = 0;
  std::string problem; // of the first bad line
  i64 problem_line = 0;
};

class Chunks {
public:
  /// count(span) gives the Count of a piece; it is called by several threads.
  template <class Counter> Chunks(std::span<const char> body, i64 first_line, int threads, Counter &&count) {
    split(body, threads);
    std::vector<Count> counts(chunks_.size());
    each(threads, [&](std::size_t i) { counts[i] = count(chunks_[i].text); });
    for (std::size_t i = 0; i < chunks_.size(); ++i) {
      chunks_[i].first_line = first_line;
      chunks_[i].first_record = records_;
      chunks_[i].records = counts[i].records;
      first_line += counts[i].lines;
      records_ += counts[i].records;
    }
  }

  i64 records() const noexcept { return records_; }
  std::size_t size() const noexcept { return chunks_.size(); }
  const Chunk &operator[](std::size_t i) const noexcept { return chunks_[i]; }

  /// parse(chunk, i) for each piece, by several threads; it notes a problem in the chunk and returns. The problem of
  /// the earliest line is thrown, so that the error does not depend on the threads.
  template <class Parser> void parse(const std::string &name, int threads, Parser &&parse) {
    each(threads, [&](std::size_t i) { parse(chunks_[i], i); });
    for (const Chunk &chunk : chunks_)
      if (!chunk.problem.empty())
        throw_error(Status::io, "{}: line {}: {}", name, chunk.problem_line, chunk.problem);
  }

private:
  void split(std::span<const char> body, int threads);

  template <class Body> void each(int threads, Body &&body) {
    std::atomic<std::size_t> next{0};
    const auto most = static_cast<int>(std::min<std::size_t>(chunks_.size(), static_cast<std::size_t>(threads)));
    parallel(most, [&](int, int) {
      for (std::size_t i = next++; i < chunks_.size(); i = next++)
        body(i);
    });
  }

  std::vector<Chunk> chunks_;
  i64 records_ = 0;
};

} // namespace td::io
