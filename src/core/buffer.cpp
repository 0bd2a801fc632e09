#include "core/buffer.hpp"

#include <sys/mman.h>

namespace td::detail {

void advise_huge_pages(void *memory, i64 bytes) noexcept {
  // Scattered reads and writes over many small pages miss the TLB, and each page costs a fault when it is first
  // touched: building a tensor of 10 million entries took 86 ns an entry without and 58 with huge pages. Below a few
  // of them there is little to gain. It is advice: nothing depends on the answer.
  constexpr i64 huge_page = i64{1} << 21;
  constexpr i64 page = 4096;
  if (bytes < 4 * huge_page)
    return;
  const auto begin = (reinterpret_cast<std::uintptr_t>(memory) + page - 1) / page * page;
  const auto end = (reinterpret_cast<std::uintptr_t>(memory) + static_cast<std::uintptr_t>(bytes)) / page * page;
  ::madvise(reinterpret_cast<void *>(begin), end - begin, MADV_HUGEPAGE);
}

} // namespace td::detail
