#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "comm/processes.hpp"
#include "comm/transfers.hpp"
#include "comm/workers.hpp"
#include "core/error.hpp"
#include "core/rows.hpp"

namespace td {

namespace {

using kernels::Combine;
using kernels::Exchange;
using kernels::Transfer;
using kernels::Transfers;

constexpr i64 most_scratch = i64{32} << 20; // bytes of rows of all workers on their way to one
// Bytes that a worker receives in one kernel. The bound is an estimate: at 400 GB/s they take 80 microseconds, of which
// beginning a copy would be the lesser part.
constexpr i64 most_read_directly = i64{32} << 20;

void add_rows(Transfers &to, int worker, const Matrix &a, const Ranges &rows) {
  for_together(a, rows, [&](Range some, i64 bytes) {
    to.push_back({worker, a.slice(some.begin, some.end).data, bytes});
  });
}

/// It serves workers whose devices exchange by themselves: what is combined comes to each worker's scratch, and is
/// added up there in the order of the workers.
class DeviceCommunicator : public Communicator {
public:
  int rank() const noexcept override { return others_->rank(); }
  int size() const noexcept override { return others_->size(); }
  void barrier() override { others_->barrier(); }
  void broadcast(void *data, i64 bytes) override { others_->broadcast(data, bytes); }
  void abort() noexcept override { others_->abort(); }

  void allreduce_sum(std::span<double> data) override { reduce(std::array{Reduced{data, Combine::sum}}); }
  void allreduce_max(std::span<double> data) override { reduce(std::array{Reduced{data, Combine::max}}); }
  void allreduce(std::span<const Reduced> all) override { reduce(all); }
  void gather_and_reduce(Matrix a, std::span<const Ranges> owned, std::span<const Reduced> sums) override {
    Transfers sent, received;
    add_gathered(a, owned, sent, received);
    exchange_and_reduce(sent, received, sums);
  }
  void exchange(const Transfers &sent, const Transfers &received) override {
    count(sent);
    transfer(sent, received);
  }
  void exchange_and_reduce(const Transfers &sent, const Transfers &received, std::span<const Reduced> sums) override {
    count(sent);
    reduce(sums, sent, received);
  }

  void reduce_rows(ConstMatrix partial, Matrix out, std::span<const Ranges> owned) override {
    const i64 row_bytes = partial.cols * size_of(partial.type);
    const i64 each = std::max<i64>(most_scratch / std::max<i64>(size() * row_bytes, 1), 1);
    i64 most = 0;
    for (const Ranges &ranges : owned)
      most = std::max(most, rows_of(ranges));
    for (i64 begin = 0; begin < most; begin += each)
      reduce_some(partial, out, owned, {begin, begin + each});
  }

  void allgather_rows(Matrix a, std::span<const Ranges> owned) override {
    Transfers sent, received;
    add_gathered(a, owned, sent, received);
    exchange(sent, received);
  }

  bool exchanges_beside() const noexcept override { return true; }
  void begin_gather(Matrix a, std::span<const Ranges> owned) override {
    Transfers sent, received;
    add_gathered(a, owned, sent, received);
    begin_exchange(sent, received);
  }
  void begin_exchange(const Transfers &sent, const Transfers &received) override {
    const kernels::Beside beside(device_);
    is_beside_ = true; // where it throws, the communicator is of no more use
    exchange(sent, received);
    is_beside_ = false;
  }
  void end_exchanges() override { device_.join_beside(); }

protected:
  DeviceCommunicator(kernels::Backend &device, std::unique_ptr<Communicator> others)
      : device_(device), others_(std::move(others)) {}

  kernels::Backend &device() noexcept { return device_; }
  /// Whether what is exchanged now goes beside the work of the device.
  bool is_beside() const noexcept { return is_beside_; }
  /// Brings what goes to others and comes from them.
  virtual void transfer(const Transfers &sent, const Transfers &received) = 0;
  /// Hears of all that is sent but for numbers that are summed.
  virtual void count(const Transfers & /*sent*/) noexcept {}
  template <class F> void for_others(F &&f) const {
    for (int worker = 0; worker < size(); ++worker)
      if (worker != rank())
        f(worker);
  }

private:
  char *scratch(i64 bytes) {
    if (scratch_.bytes() < bytes)
      scratch_ = kernels::DeviceBuffer(); // the smaller one goes first
    if (scratch_.bytes() < bytes)
      scratch_ = kernels::DeviceBuffer(device_, bytes, "what other workers have, on its way");
    return static_cast<char *>(scratch_.data());
  }

  void add_gathered(Matrix a, std::span<const Ranges> owned, Transfers &sent, Transfers &received) const {
    for_others([&](int worker) {
      add_rows(sent, worker, a, owned[static_cast<std::size_t>(rank())]);
      add_rows(received, worker, a, owned[static_cast<std::size_t>(worker)]);
    });
  }

  /// Whatever else is sent and received goes with the numbers, which a worker sends as one array: of few numbers it is
  /// the copies and kernels that take time.
  void reduce(std::span<const Reduced> all, Transfers sent = {}, Transfers received = {}) {
    if (all.empty())
      return transfer(sent, received);
    i64 count = 0; // of one worker
    for (const Reduced &some : all)
      count += std::ssize(some.data);
    auto *const parts = reinterpret_cast<double *>(scratch(size() * count * size_of(ValueType::f64)));
    double *const own = parts + rank() * count;
    std::vector<kernels::Combined> packed, combined;
    i64 at = 0;
    for (const Reduced &some : all) {
      const auto columns = std::ssize(some.data);
      packed.push_back({{some.data.data(), ValueType::f64, 1, columns, columns}, kernels::Combine::sum, own + at});
      combined.push_back({{parts + at, ValueType::f64, size(), columns, count}, some.how, some.data.data()});
      at += columns;
    }
    device_.combine_all(packed);
    const i64 bytes = count * size_of(ValueType::f64);
    for_others([&](int worker) {
      sent.push_back({worker, own, bytes});
      received.push_back({worker, parts + worker * count, bytes});
    });
    transfer(sent, received);
    device_.combine_all(combined);
  }

  /// Adds up a part of each worker's own rows, counted from 0.
  void reduce_some(const ConstMatrix &partial, Matrix out, std::span<const Ranges> owned, Range part) {
    const Matrix from{const_cast<void *>(partial.data), partial.type, partial.rows, partial.cols, partial.ld};
    const Ranges mine = nth_rows(owned[static_cast<std::size_t>(rank())], part);
    const i64 row_bytes = partial.cols * size_of(partial.type);
    const i64 bytes = rows_of(mine) * row_bytes; // of each worker
    char *const parts = scratch(size() * bytes);
    Transfers sent, received;
    for_others([&](int worker) {
      add_rows(sent, worker, from, nth_rows(owned[static_cast<std::size_t>(worker)], part));
      for_placed(from, mine, [&](Range, i64 at, i64 some) {
        received.push_back({worker, parts + worker * bytes + at, some});
      });
    });
    for_placed(from, mine, [&](Range rows, i64 at, i64 some) {
      device_.copy_from(device_, parts + rank() * bytes + at, from.slice(rows.begin, rows.end).data, some);
    });
    exchange(sent, received);
    const i64 columns = rows_of(mine) * partial.cols;
    const ConstMatrix gaps = out.ld == out.cols ? partial : ConstMatrix(out);
    for_placed(gaps, mine, [&](Range rows, i64 at, i64) {
      device_.combine_rows({parts + at, partial.type, size(), rows.size() * partial.cols, columns}, Combine::sum,
                           out.slice(rows.begin, rows.end).data);
    });
  }

  /// Calls f(rows, at, bytes) as for_together, with where they are when all lie one behind the other.
  template <class F> static void for_placed(const ConstMatrix &a, const Ranges &ranges, F &&f) {
    i64 at = 0;
    for_together(a, ranges, [&](Range rows, i64 bytes) {
      f(rows, at, bytes);
      at += bytes;
    });
  }

  kernels::Backend &device_;
  std::unique_ptr<Communicator> others_; // on the host
  kernels::DeviceBuffer scratch_;
  bool is_beside_ = false;
};

/// What workers send, as the others find it behind a barrier: in turns, so that nobody changes what is looked at before
/// the next one. It outlives each of them: one that leaves a barrier because another failed may be read from still.
struct Board {
  explicit Board(std::vector<kernels::Backend *> all) : devices(std::move(all)) {
    for (std::vector<Transfers> &turn : sent)
      turn.resize(devices.size());
  }
  std::vector<kernels::Backend *> devices;
  std::array<std::vector<Transfers>, 2> sent;
};

/// Each worker reads what it receives out of the others' memories: little by one kernel, which waits for theirs; much
/// by copies, first from the worker after it, so that no two copy from one at the same time, as in a ring (Wijeratne et
/// al. 2025, algorithm 3). So does what goes beside other work, which would miss the multiprocessors.
class PeerCommunicator final : public DeviceCommunicator {
public:
  PeerCommunicator(std::shared_ptr<Board> board, kernels::Backend &device, std::unique_ptr<Communicator> others,
                   std::unique_ptr<kernels::DirectLink> direct)
      : DeviceCommunicator(device, std::move(others)), board_(std::move(board)), direct_(std::move(direct)) {}

  void abort() noexcept override {
    if (direct_ != nullptr)
      direct_->abort();
    DeviceCommunicator::abort();
  }

private:
  void transfer(const Transfers &sent, const Transfers &received) override {
    std::vector<Transfers> &all = board_->sent[turn_++ % 2];
    all[static_cast<std::size_t>(rank())] = sent;
    sent_ = &all;
    device().raise(kernels::Signal::written);
    barrier();
    if (direct_ != nullptr && !is_beside() && is_little())
      return read_directly(received);
    for (int step = 1; step < size(); ++step) {
      const int worker = (rank() + step) % size();
      device().wait_for(device_of(worker), kernels::Signal::written);
      for_received(worker, received, [&](const Transfer &to, const void *from) {
        device().copy_from(device_of(worker), to.memory, from, to.bytes);
      });
    }
    device().raise(kernels::Signal::read);
    barrier();
    for_others([&](int worker) { device().wait_for(device_of(worker), kernels::Signal::read); });
  }

  /// All workers find the same.
  bool is_little() const {
    std::vector<std::size_t> reads(sent_->size(), 0);
    std::vector<i64> bytes(sent_->size(), 0);
    for (const Transfers &all : *sent_)
      for (const Transfer &one : all) {
        ++reads[static_cast<std::size_t>(one.worker)];
        bytes[static_cast<std::size_t>(one.worker)] += one.bytes;
      }
    return *std::max_element(reads.begin(), reads.end()) <= kernels::DirectLink::most_reads &&
           *std::max_element(bytes.begin(), bytes.end()) <= most_read_directly;
  }

  void read_directly(const Transfers &received) {
    std::vector<kernels::DirectRead> reads;
    for_others([&](int worker) {
      for_received(worker, received, [&](const Transfer &to, const void *from) {
        reads.push_back({worker, from, to.memory, to.bytes});
      });
    });
    direct_->exchange(reads);
  }

  /// Calls f(to, from) for what comes from a worker, with where it is there.
  template <class F> void for_received(int worker, const Transfers &received, F &&f) const {
    Offered offered((*sent_)[static_cast<std::size_t>(worker)], rank());
    for (const Transfer &to : received)
      if (to.worker == worker)
        f(to, offered.take(to).memory);
  }

  kernels::Backend &device_of(int worker) { return *board_->devices[static_cast<std::size_t>(worker)]; }

  std::shared_ptr<Board> board_;
  std::unique_ptr<kernels::DirectLink> direct_; // null: there is none
  std::size_t turn_ = 0;
  const std::vector<Transfers> *sent_ = nullptr; // by worker, of the exchange under way
};

/// It goes by a library of the devices'. Workers meet on the host first: then none waits on its device for one that has
/// failed.
class LinkedCommunicator final : public DeviceCommunicator {
public:
  LinkedCommunicator(std::unique_ptr<kernels::Link> link, kernels::Backend &device,
                     std::unique_ptr<Communicator> others)
      : DeviceCommunicator(device, std::move(others)), link_(std::move(link)) {}

private:
  void transfer(const Transfers &sent, const Transfers &received) override {
    barrier();
    link_->exchange(sent, received);
  }

  std::unique_ptr<kernels::Link> link_;
};

class ProcessPeers final : public kernels::Peers {
public:
  explicit ProcessPeers(Processes &processes) : processes_(processes) {}
  int rank() const noexcept override { return processes_.rank(); }
  int size() const noexcept override { return processes_.size(); }
  void broadcast(void *data, i64 bytes) override { processes_.broadcast(data, bytes); }
  int largest(int number) override {
    double all = number;
    processes_.all_reduce({&all, 1}, Reduction::max);
    return static_cast<int>(all);
  }
  bool on_the_way() override { return processes_.on_the_way(); }

private:
  Processes &processes_;
};

/// So do processes, which do not meet for it: whoever waits for its device hears of one that has failed.
class LinkedProcesses final : public DeviceCommunicator {
public:
  LinkedProcesses(Processes &processes, kernels::Backend &device)
      : DeviceCommunicator(device, make_process_communicator(processes)), processes_(processes), peers_(processes) {}

  /// Whether there is a link, else why not.
  bool connect(std::string &why) {
    link_ = device().link_peers(peers_, why);
    return link_ != nullptr;
  }
  void abort() noexcept override { link_->abort(); }

private:
  void transfer(const Transfers &sent, const Transfers &received) override { link_->exchange(sent, received); }
  void count(const Transfers &sent) noexcept override {
    for (const Transfer &to : sent)
      processes_.count_sent(to.bytes);
  }

  Processes &processes_;
  ProcessPeers peers_;
  std::unique_ptr<kernels::Link> link_;
};

using Communicators = std::vector<std::unique_ptr<Communicator>>;

std::vector<kernels::Device *> devices_of(const std::vector<kernels::Backend *> &backends) {
  return {backends.begin(), backends.end()};
}

Communicators make_peer(const std::vector<kernels::Backend *> &devices, std::string &why) {
  if (const kernels::Unreached pair = kernels::reach_all(devices_of(devices)); pair.any()) {
    why =
        fmt::format("{} does not reach the memory of {}, by NVLink or PCI Express; expected that each GPU reaches the "
                    "others'",
                    word_of(*pair.from), word_of(*pair.memory));
    return {};
  }
  Communicators all = make_thread_communicators(static_cast<int>(devices.size()));
  const auto board = std::make_shared<Board>(devices);
  auto direct = devices.front()->link_directly(devices_of(devices));
  direct.resize(all.size());
  for (std::size_t k = 0; k < all.size(); ++k)
    all[k] = std::make_unique<PeerCommunicator>(board, *devices[k], std::move(all[k]), std::move(direct[k]));
  return all;
}

Communicators make_linked(const std::vector<kernels::Backend *> &devices, std::string &why) {
  const std::vector<kernels::Device *> linked = devices_of(devices);
  kernels::reach_all(linked); // as far as they do, a library may go by it
  auto links = devices.front()->link(linked, why);
  if (links.empty())
    return {};
  Communicators all = make_thread_communicators(static_cast<int>(devices.size()));
  for (std::size_t k = 0; k < all.size(); ++k)
    all[k] = std::make_unique<LinkedCommunicator>(std::move(links[k]), *devices[k], std::move(all[k]));
  return all;
}

Communicators make_staged(const std::vector<kernels::Backend *> &devices) {
  Communicators all = make_thread_communicators(static_cast<int>(devices.size()));
  for (std::size_t k = 0; k < all.size(); ++k)
    all[k] = make_staged_communicator(*devices[k], std::move(all[k]));
  return all;
}

} // namespace

Communicators make_device_communicators(const std::vector<kernels::Backend *> &devices, Exchange wanted) {
  std::string why;
  for (const Exchange way : {Exchange::peer, Exchange::nccl}) {
    if (wanted != way && wanted != Exchange::automatic)
      continue;
    Communicators all = way == Exchange::peer ? make_peer(devices, why) : make_linked(devices, why);
    if (!all.empty())
      return all;
    if (wanted == way)
      throw_error(Status::backend_unavailable, "option 'exchange' = \"{}\": {}", name_of(wanted), why);
  }
  return make_staged(devices);
}

std::unique_ptr<Communicator> make_process_communicator(Processes &processes, kernels::Backend &device) {
  const Exchange wanted = device.exchange();
  if (!device.has_own_memory() && wanted != Exchange::host)
    return make_process_communicator(processes);
  if (wanted != Exchange::host) {
    auto linked = std::make_unique<LinkedProcesses>(processes, device);
    std::string why;
    if (linked->connect(why))
      return linked;
    if (wanted == Exchange::nccl)
      throw_error(Status::backend_unavailable, "option 'exchange' = \"nccl\": {}", why);
  }
  return make_staged_communicator(device, make_process_communicator(processes));
}

i64 exchange_bytes(Exchange exchange, i64 workers, i64 numbers, i64 rows, i64 row_bytes) {
  if (exchange == Exchange::host || workers == 1)
    return 0;
  const i64 each = std::max<i64>(most_scratch / std::max<i64>(workers * row_bytes, 1), 1);
  return workers * std::max(8 * numbers, std::min(rows, each) * row_bytes);
}

} // namespace td
