#include "peak_memory.hpp"

#include <fstream>
#include <string>
#include <string_view>

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace cli {

namespace {

/// A line of /proc/self/status such as "VmRSS:   1234 kB", in bytes.
std::optional<std::int64_t> status_bytes(std::string_view name) {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    std::int64_t kilobytes = 0;
    if (word == name)
      return status >> kilobytes ? std::optional(1024 * kilobytes) : std::nullopt;
  }
  return std::nullopt;
}

/// Gives back what was freed but is kept for later: work would find it there and not show.
void release_free_memory() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

} // namespace

PeakMemory::PeakMemory() {
  release_free_memory();
  std::ofstream file("/proc/self/clear_refs");
  file << "5" << std::flush; // the peak, VmHWM, begins again from what is resident now (proc(5))
  if (file)
    before_ = status_bytes("VmRSS:");
}

std::optional<std::int64_t> PeakMemory::growth() const {
  const auto peak = status_bytes("VmHWM:");
  if (!before_ || !peak)
    return std::nullopt;
  return *peak - *before_;
}

} // namespace cli
