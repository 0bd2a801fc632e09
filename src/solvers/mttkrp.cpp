#include "solvers/mttkrp.hpp"

#include <cstring>

#include "solvers/products.hpp"
#include "solvers/workers.hpp"

namespace td::solvers {

void mttkrp(const Backends &backends, const plan::Tensor &x, int mode, std::span<const ConstMatrix> factors,
            Matrix out) {
  const int workers = static_cast<int>(backends.size());
  const formats::Numbering &numbering = x.numbering();
  if (!numbering.is_index(mode)) // the rows without a number
    std::memset(out.data, 0, static_cast<std::size_t>(out.rows * out.cols * size_of(out.type)));
  const plan::Sharding sharding(x, workers, false);
  run_workers(backends, [&](kernels::Backend &backend, Communicator &others) {
    const Share share(x, sharding, backend, others);
    Replica replica(backend, x.stored_dims(), out.cols, x.type());
    for (int m = 0; m < x.order(); ++m) {
      if (m != mode)
        replica.upload(m, factors[static_cast<std::size_t>(m)], numbering.rows(m));
    }
    const i64 rows = x.stored_dims()[static_cast<std::size_t>(mode)];
    const DeviceMatrix result(backend, rows, out.cols, out.type, "the result of MTTKRP");
    // What is wanted once gains nothing from a partial product of a dense tensor; where the option names the groups it
    // is taken through one all the same, so that this path can be reached by itself.
    const plan::Groups &groups = x.groups();
    const bool merged = groups.modes(groups.group_of(mode)).size() > 1;
    if (merged && (x.sparse() || groups.named()))
      Products(x, share, backend, out.cols).mttkrp(mode, replica.views(), result.view());
    else
      MixedMttkrp(x, share, backend).mttkrp(mode, replica.views(), result.view());
    for (const Range &own : share.own(mode)) {
      const Matrix mine = result.view().slice(own.begin, own.end);
      if (numbering.is_index(mode))
        download_rows(backend, mine, out.slice(own.begin, own.end), {});
      else
        download_rows(backend, mine, out, numbering.rows(mode).subspan(static_cast<std::size_t>(own.begin)));
    }
  });
}

} // namespace td::solvers
