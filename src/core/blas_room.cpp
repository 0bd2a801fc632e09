#include "core/blas_room.hpp"

#include <atomic>

#include <sys/mman.h>

#include "core/error.hpp"
#include "core/parallel.hpp"
#include "core/types.hpp"

namespace td {

namespace {

constexpr i64 buffer_bytes = i64{128} << 20; // of OpenBLAS 0.3 on 64-bit systems
constexpr i64 some_pages = i64{1} << 20;     // what comes with it, generously

std::atomic<int> in_use{0}; // buffers that calls of td may need now
std::atomic<int> mapped{0}; // as many as were in use at once have been mapped, and stay

/// Whether so many more could be mapped. Each is asked for by itself, as OpenBLAS does: there need not be one range for
/// all. Each mapping holds the address of the one before.
bool has_room(int buffers) noexcept {
  constexpr auto bytes = static_cast<std::size_t>(buffer_bytes + some_pages);
  void *last = nullptr;
  int taken = 0;
  for (; taken < buffers; ++taken) {
    void *place = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (place == MAP_FAILED)
      break;
    *static_cast<void **>(place) = last;
    last = place;
  }
  while (last != nullptr) {
    void *before = *static_cast<void **>(last);
    munmap(last, bytes);
    last = before;
  }
  return taken == buffers;
}

} // namespace

BlasRoom::BlasRoom(bool threaded) : buffers_(threaded ? available_threads() : 1) {
  const int needed = in_use.fetch_add(buffers_) + buffers_;
  int known = mapped.load();
  if (needed > known && !has_room(needed - known)) {
    in_use.fetch_sub(buffers_);
    throw_error(Status::host_memory,
                "out of host memory: BLAS needs {} bytes of address space for its buffers; a limit on address space "
                "(ulimit -v, RLIMIT_AS) leaves less",
                (needed - known) * buffer_bytes);
  }
  while (known < needed && !mapped.compare_exchange_weak(known, needed)) {
  }
}

BlasRoom::~BlasRoom() { in_use.fetch_sub(buffers_); }

} // namespace td
