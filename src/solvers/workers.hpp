// Running the same function on every worker of a context.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "comm/communicator.hpp"
#include "kernels/backend.hpp"

namespace td::solvers {

using Backends = std::vector<std::shared_ptr<kernels::Backend>>;

/// Calls body(backend, communicator) once a backend: worker 0 on the calling thread, the others on threads of their
/// own. When one throws, the others are freed from waiting and the first error is rethrown here after all have ended.
void run_workers(const Backends &backends, const std::function<void(kernels::Backend &, Communicator &)> &body);

int total_threads(const Backends &backends) noexcept;

} // namespace td::solvers
