#include "io/text_chunks.hpp"

#include <algorithm>

#include "io/text.hpp"

namespace td::io {

void Chunks::split(std::span<const char> body, int threads) {
  constexpr i64 smallest = i64{1} << 18; // below this the threads cost more than they bring
  constexpr i64 chunks_per_thread = 8;   // so that a thread that is held up leaves work to the others
  const auto size = static_cast<i64>(body.size());
  const i64 pieces = std::clamp(size / smallest, i64{1}, chunks_per_thread * std::max(threads, 1));
  const char *p = body.data();
  const char *end = p + size;
  for (i64 i = 0; i < pieces && p != end; ++i) {
    const char *wanted = std::max(p, body.data() + part_of({0, size}, i, pieces).end);
    const char *stop = line_end(wanted, end);
    stop = stop == end ? end : stop + 1;
    chunks_.push_back({{p, stop}, 0, 0, 0, {}, 0});
    p = stop;
  }
}

} // namespace td::io
