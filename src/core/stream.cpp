#include "core/stream.hpp"

#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace td {

#if defined(__SSE2__)
void stream_line(void *to, const void *from) noexcept {
  auto *out = static_cast<__m128i *>(to);
  const auto *in = static_cast<const __m128i *>(from);
  for (int k = 0; k < line_bytes / 16; ++k)
    _mm_stream_si128(out + k, _mm_load_si128(in + k));
}
void finish_streams() noexcept { _mm_sfence(); }
#else
void stream_line(void *to, const void *from) noexcept { std::memcpy(to, from, line_bytes); }
void finish_streams() noexcept {}
#endif

} // namespace td
