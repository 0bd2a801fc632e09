#include "io/text_chunks.hpp"

#include <algorithm>

#include "io/text.hpp"

namespace td::io {

namespace {

/// Gives where the first newline at or after rest.begin ends, or the end.
i64 behind_newline(const Source &source, Range rest) {
  constexpr i64 block = i64{1} << 12; // lines are short
  Buffer<char> room;
  while (rest.size() > 0) {
    const auto bytes = source.bytes({rest.begin, std::min(rest.end, rest.begin + block)}, room);
    const char *end = bytes.data() + bytes.size();
    const char *newline = line_end(bytes.data(), end);
    if (newline != end)
      return rest.begin + (newline - bytes.data()) + 1;
    rest.begin += static_cast<i64>(bytes.size());
  }
  return rest.end;
}

} // namespace

Range lines_of(const Source &source, Range body, int k, int n) {
  const auto cut = [&](int at) {
    return at == 0 ? body.begin : at == n ? body.end : behind_newline(source, {part_of(body, at, n).begin, body.end});
  };
  return {cut(k), cut(k + 1)};
}

void Chunks::split(Range body, int threads) {
  constexpr i64 smallest = i64{1} << 18; // bytes; below this the threads cost more than they bring
  constexpr i64 largest = i64{1} << 20;  // stays in a core's cache between being read and being parsed
  constexpr i64 chunks_per_thread = 8;   // so that a thread that is held up leaves work to the others
  const i64 most = std::max(body.size() / largest, chunks_per_thread * std::max(threads, 1));
  const i64 count = std::clamp(body.size() / smallest, i64{1}, most);
  i64 at = body.begin;
  for (i64 i = 0; i < count && at != body.end; ++i) {
    const i64 wanted = std::max(at, part_of(body, i, count).end);
    const i64 stop = behind_newline(source_, {wanted, body.end});
    Chunk chunk;
    chunk.place = {at, stop};
    chunks_.push_back(std::move(chunk));
    at = stop;
  }
}

void Chunks::require_parsed() const {
  for (const Chunk &chunk : chunks_) {
    if (!chunk.problem.empty()) {
      source_.require_unchanged(); // else that is the reason
      throw_error(Status::io, "{}: line {}: {}", source_.name(), chunk.problem_line, chunk.problem);
    }
    if (chunk.parsed != chunk.records)
      source_.refuse_change();
  }
}

i64 Chunks::line_of(i64 record) const {
  std::size_t i = 0;
  while (chunks_[i].first_record + chunks_[i].records <= record)
    ++i;
  Buffer<char> room;
  Lines lines(source_.bytes(chunks_[i].place, room));
  Line line;
  for (i64 k = chunks_[i].first_record; k <= record; ++k)
    lines.next(line);
  return chunks_[i].first_line + line.number - 1;
}

} // namespace td::io
