#include "solvers/mttkrp.hpp"

#include "solvers/replica.hpp"
#include "solvers/share.hpp"
#include "solvers/workers.hpp"

namespace td::solvers {

void mttkrp(const Backends &backends, const plan::Tensor &x, int mode, std::span<const ConstMatrix> factors,
            Matrix out) {
  const int workers = static_cast<int>(backends.size());
  run_workers(backends, [&](kernels::Backend &backend, Communicator &others) {
    const Share share(x, others.rank(), workers, false);
    Replica replica(backend, x.dims(), out.cols, x.type());
    for (int m = 0; m < x.order(); ++m) {
      if (m != mode)
        replica.upload(m, factors[static_cast<std::size_t>(m)]);
    }
    const DeviceMatrix result(backend, out.rows, out.cols, out.type, "the result of MTTKRP");
    share.mttkrp(backend, others, mode, replica.views(), result.view());
    const Range own = share.own(mode);
    if (own.size() > 0)
      backend.download(out.slice(own.begin, own.end).data, result.view().slice(own.begin, own.end).data,
                       own.size() * out.cols * size_of(out.type));
  });
}

} // namespace td::solvers
