// MTTKRP of a dense tensor whose modes are in another order in memory, or with gaps between its elements. Another order
// is a matter of names alone: the kernels are given the modes as they lie. What has gaps is gathered a subtensor at a
// time, so that it is read once, written and read again: about three times as many bytes as without gaps.
#include "kernels/cuda/mttkrp.hpp"
#include "kernels/cuda/strided.cuh"

namespace td::kernels::cuda {

void mttkrp_strided(Gpu &device, const DenseView &x, const MttkrpArgs &args) {
  const InMemoryOrder ordered(x, args);
  const DenseView &view = ordered.view();
  if (view.strides.empty())
    return mttkrp_dense(device, view, ordered.args());
  const Subtensors subtensors(view);
  const Scratch<char> gathered(device, subtensors.most() * size_of(x.type), "elements of a tensor with gaps");
  subtensors.each([&](const Subtensor &subtensor) {
    const SubtensorStep step(ordered.args(), subtensor);
    if (step.args().rows.size() <= 0)
      return;
    gather(device, view, subtensor, gathered.data());
    mttkrp_dense(device, {subtensor.dims, x.type, gathered.data(), {}, x.largest}, step.args());
  });
}

} // namespace td::kernels::cuda
