#include "comm/communicator.hpp"

#include <utility>

namespace td {

namespace {

using kernels::InPhase;
using kernels::Phase;

/// Workers wait for each other before they exchange, so that the two can be told apart.
class MeasuredCommunicator final : public Communicator {
public:
  MeasuredCommunicator(Communicator &others, kernels::Backend &device, std::vector<kernels::Device *> devices)
      : others_(others), device_(device), devices_(std::move(devices)) {}

  int rank() const noexcept override { return others_.rank(); }
  int size() const noexcept override { return others_.size(); }
  void barrier() override {
    const InPhase idle(device_, Phase::idle);
    others_.barrier();
  }
  void broadcast(void *data, i64 bytes) override {
    const InPhase idle(device_, Phase::idle);
    others_.broadcast(data, bytes);
  }
  void abort() noexcept override { others_.abort(); }

  void allreduce_sum(std::span<double> data) override {
    measured([&] { others_.allreduce_sum(data); });
  }
  void allreduce_max(std::span<double> data) override {
    measured([&] { others_.allreduce_max(data); });
  }
  void allreduce(std::span<const Reduced> all) override {
    measured([&] { others_.allreduce(all); });
  }
  void reduce_rows(ConstMatrix partial, Matrix out, std::span<const Ranges> owned) override {
    measured([&] { others_.reduce_rows(partial, out, owned); });
  }
  void allgather_rows(Matrix a, std::span<const Ranges> owned) override {
    measured([&] { others_.allgather_rows(a, owned); });
  }
  void gather_and_reduce(Matrix a, std::span<const Ranges> owned, std::span<const Reduced> sums) override {
    measured([&] { others_.gather_and_reduce(a, owned, sums); });
  }
  bool exchanges_beside() const noexcept override { return others_.exchanges_beside(); }
  // What goes on beside the work counts as far as that waits for it in the end.
  void begin_gather(Matrix a, std::span<const Ranges> owned) override {
    if (!exchanges_beside())
      return allgather_rows(a, owned);
    others_.begin_gather(a, owned);
  }
  void begin_exchange(const kernels::Transfers &sent, const kernels::Transfers &received) override {
    if (!exchanges_beside())
      return exchange(sent, received);
    others_.begin_exchange(sent, received);
  }
  void end_exchanges() override {
    const InPhase exchange(device_, Phase::exchange);
    others_.end_exchanges();
  }
  void exchange(const kernels::Transfers &sent, const kernels::Transfers &received) override {
    measured([&] { others_.exchange(sent, received); });
  }
  void exchange_and_reduce(const kernels::Transfers &sent, const kernels::Transfers &received,
                           std::span<const Reduced> sums) override {
    measured([&] { others_.exchange_and_reduce(sent, received, sums); });
  }

private:
  template <class Work> void measured(Work &&work) {
    {
      const InPhase idle(device_, Phase::idle);
      wait_for_others();
    }
    const InPhase exchange(device_, Phase::exchange);
    work();
  }

  // Devices of this process wait for each other by themselves; all have to have asked before a signal is raised anew.
  void wait_for_others() {
    if (devices_.empty()) {
      device_.wait();
      return others_.barrier();
    }
    device_.raise(kernels::Signal::written);
    others_.barrier();
    for (kernels::Device *const other : devices_)
      if (other != &device_)
        device_.wait_for(*other, kernels::Signal::written);
    others_.barrier();
  }

  Communicator &others_;
  kernels::Backend &device_;
  std::vector<kernels::Device *> devices_;
};

} // namespace

std::unique_ptr<Communicator> make_measured_communicator(Communicator &others, kernels::Backend &device,
                                                         std::vector<kernels::Device *> devices) {
  return std::make_unique<MeasuredCommunicator>(others, device, std::move(devices));
}

} // namespace td
