#include "kernels/reference/backend.hpp"

#include "kernels/reference/reference.hpp"

namespace td::kernels::reference {

std::shared_ptr<Backend> make_backend() { return std::make_shared<ReferenceBackend>(); }

} // namespace td::kernels::reference
