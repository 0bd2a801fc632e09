// Running the same function on every worker of a context.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/processes.hpp"
#include "kernels/backend.hpp"

namespace td {

using Backends = std::vector<std::shared_ptr<kernels::Backend>>;

/// Calls body(backend, communicator) once a backend: worker 0 on the calling thread, the others on threads of their
/// own. When one throws, the others are freed from waiting and the first error is rethrown here after all have ended.
/// Where `processes` share the work there is one backend, and the communicator is that of the processes.
void run_workers(const Backends &backends, const std::function<void(kernels::Backend &, Communicator &)> &body,
                 Processes *processes = nullptr);

int total_threads(const Backends &backends) noexcept;

/// How a device string names a device, as in "cuda:0".
std::string word_of(const kernels::Device &device);

} // namespace td
