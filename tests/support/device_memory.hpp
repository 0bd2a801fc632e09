// A caller's arrays on a GPU: in CUDA's runtime, or in that of the GPUs in software.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace tdtest {

/// Copies bytes to memory of a GPU; null where libtd_cuda is not loaded or cannot be asked for it. A context with the
/// GPU comes first.
std::shared_ptr<void> on_device(int ordinal, const void *from, std::size_t bytes);

/// The bytes of memory from on_device, on the host again.
std::vector<std::byte> from_device(int ordinal, const void *memory, std::size_t bytes);

} // namespace tdtest
