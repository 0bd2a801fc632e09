#include "kernels/cuda/nccl.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include "core/error.hpp"
#include "kernels/cuda/nccl_library.hpp"

namespace td::kernels::cuda {

class NcclClique::Worker final : public Link {
public:
  Worker(std::shared_ptr<NcclClique> clique, std::size_t rank) : clique_(std::move(clique)), rank_(rank) {}
  void exchange(const Transfers &sent, const Transfers &received) override { clique_->exchange(rank_, sent, received); }

private:
  std::shared_ptr<NcclClique> clique_;
  std::size_t rank_;
};

std::shared_ptr<NcclClique> NcclClique::make(const std::vector<Gpu *> &gpus, std::string &why) {
  for (std::size_t k = 0; k < gpus.size(); ++k)
    for (std::size_t other = 0; other < k; ++other)
      if (gpus[k]->ordinal() == gpus[other]->ordinal()) {
        why = fmt::format("NCCL takes no GPU twice, and cuda:{} is named twice", gpus[k]->ordinal());
        return nullptr;
      }
  const NcclLibrary *const library = find_nccl(why);
  if (library == nullptr)
    return nullptr;
  std::shared_ptr<NcclClique> clique(new NcclClique(*library, gpus));
  clique->connect();
  if (clique->failure_.empty())
    return clique;
  why = clique->failure_;
  return nullptr;
}

NcclClique::NcclClique(const NcclLibrary &library, const std::vector<Gpu *> &gpus) : library_(library) {
  for (Gpu *const gpu : gpus) {
    ends_.push_back(std::make_unique<End>());
    ends_.back()->gpu = gpu;
    ends_.back()->memory = &gpu->memory();
  }
}

// Where the GPU was reset, or the process forked, there is nothing left that could be destroyed.
NcclClique::~NcclClique() {
  for (const auto &end : ends_)
    if (end->comm != nullptr)
      if (const CurrentDevice current = end->memory->enter(std::nothrow); current)
        library_.comm_destroy(end->comm);
}

// Every two exchange something at once, on this thread: NCCL connects them when they first do, and a worker that failed
// then would leave others waiting on the host.
void NcclClique::connect() {
  std::vector<void *> comms(ends_.size(), nullptr);
  std::vector<int> ordinals;
  for (const auto &end : ends_)
    ordinals.push_back(end->memory->ordinal());
  const CurrentDevice first = ends_.front()->memory->enter();
  int result = library_.comm_init_all(comms.data(), static_cast<int>(comms.size()), ordinals.data());
  if (result != 0) {
    failure_ = fmt::format("NCCL connects no GPUs: {}", library_.error_string(result));
    return;
  }
  for (std::size_t rank = 0; rank < ends_.size(); ++rank)
    ends_[rank]->comm = comms[rank];
  const auto count = static_cast<i64>(ends_.size());
  std::vector<std::unique_ptr<Scratch<char>>> bytes;
  for (const auto &end : ends_) {
    const CurrentDevice current = end->memory->enter();
    bytes.push_back(std::make_unique<Scratch<char>>(*end->gpu, 2 * count, "a first exchange"));
  }
  result = library_.group_start();
  for (std::size_t rank = 0; rank < ends_.size() && result == 0; ++rank) {
    Transfers sent;
    Transfers received;
    for (i64 other = 0; other < count; ++other)
      if (other != static_cast<i64>(rank)) {
        sent.push_back({static_cast<int>(other), bytes[rank]->data() + other, 1});
        received.push_back({static_cast<int>(other), bytes[rank]->data() + count + other, 1});
      }
    const CurrentDevice current = ends_[rank]->memory->enter();
    result = ask(*ends_[rank], sent, received);
  }
  const int end = library_.group_end();
  if (result == 0)
    result = end;
  if (result != 0)
    return fail(fmt::format("NCCL connects no GPUs: {}", library_.error_string(result)));
  for (std::size_t rank = 0; rank < ends_.size(); ++rank) {
    const CurrentDevice current = ends_[rank]->memory->enter();
    ends_[rank]->gpu->wait();
    bytes[rank].reset();
  }
}

bool NcclClique::is_of(const std::vector<Gpu *> &gpus) const {
  const std::lock_guard lock(failure_mutex_);
  return failure_.empty() && std::equal(gpus.begin(), gpus.end(), ends_.begin(), ends_.end(),
                                        [](const Gpu *gpu, const auto &end) { return gpu == end->gpu; });
}

std::vector<std::unique_ptr<Link>> NcclClique::links() {
  std::vector<std::unique_ptr<Link>> all;
  for (std::size_t rank = 0; rank < ends_.size(); ++rank)
    all.push_back(std::make_unique<Worker>(shared_from_this(), rank));
  return all;
}

int NcclClique::ask(End &end, const Transfers &sent, const Transfers &received) const {
  return td::kernels::cuda::ask(library_, end.comm, end.gpu->exchange_stream(), sent, received);
}

void NcclClique::exchange(std::size_t rank, const Transfers &sent, const Transfers &received) {
  End &own = *ends_[rank];
  const CurrentDevice current = own.memory->enter();
  int result = 0;
  {
    const std::lock_guard lock(own.mutex);
    if (own.comm == nullptr) {
      const std::lock_guard failure_lock(failure_mutex_);
      throw_error(Status::device, "{}", failure_);
    }
    result = library_.group_start();
    if (result == 0) {
      result = ask(own, sent, received);
      const int end = library_.group_end();
      result = result == 0 ? end : result;
    }
  }
  if (result == 0)
    return;
  const std::string why =
      fmt::format("cuda:{}: an exchange by NCCL: {}", own.memory->ordinal(), library_.error_string(result));
  fail(why);
  throw_error(Status::device, "{}", why);
}

// Ends what others wait for on their GPUs.
void NcclClique::fail(const std::string &why) {
  {
    const std::lock_guard lock(failure_mutex_);
    if (failure_.empty())
      failure_ = why;
  }
  for (const auto &end : ends_) {
    const std::lock_guard lock(end->mutex);
    if (end->comm == nullptr)
      continue;
    if (const CurrentDevice current = end->memory->enter(std::nothrow); current)
      library_.comm_abort(end->comm);
    end->comm = nullptr;
  }
}

class NcclEnd::Worker final : public Link {
public:
  Worker(std::shared_ptr<NcclEnd> end, Peers &peers) : end_(std::move(end)) {
    end_->peers_ = &peers;
    end_->gpu_.watch(end_.get());
  }
  Worker(const Worker &) = delete;
  Worker &operator=(const Worker &) = delete;
  ~Worker() override {
    end_->gpu_.watch(nullptr);
    end_->peers_ = nullptr;
  }
  void exchange(const Transfers &sent, const Transfers &received) override { end_->exchange(sent, received); }
  void abort() noexcept override { end_->abort(); }

private:
  std::shared_ptr<NcclEnd> end_;
};

NcclEnd::NcclEnd(const NcclLibrary &library, Gpu &gpu) : library_(library), gpu_(gpu), memory_(gpu.memory()) {}

// What is at rest is ended in order. NCCL's own threads are still at work beside an abort, and a program that had ended
// many connections so died in one, by a free in the driver that malloc refused.
NcclEnd::~NcclEnd() {
  if (const CurrentDevice current = memory_.enter(std::nothrow);
      current && comm_ != nullptr && state() == 0 && cudaStreamQuery(gpu_.exchange_stream()) == cudaSuccess) {
    library_.comm_destroy(comm_);
    comm_ = nullptr;
  }
  abort();
}

std::unique_ptr<Link> NcclEnd::link(Peers &peers) { return std::make_unique<Worker>(shared_from_this(), peers); }

std::shared_ptr<NcclEnd> NcclEnd::make(Gpu &gpu, Peers &peers, std::string &why) {
  const NcclLibrary *library = find_nccl(why);
  if (library != nullptr && (library->get_unique_id == nullptr || library->comm_init_rank_config == nullptr ||
                             library->comm_get_async_error == nullptr)) {
    why = fmt::format("{} is too old to connect processes: expected NCCL 2.14 or newer", nccl_soname);
    library = nullptr;
  }
  if (peers.largest(library == nullptr ? 1 : 0) != 0) {
    if (why.empty())
      why = "NCCL does not load on another process";
    return nullptr;
  }
  std::shared_ptr<NcclEnd> end(new NcclEnd(*library, gpu));
  why = end->connect(peers);
  return why.empty() ? end : nullptr;
}

/// Gives why not, else nothing. Every two exchange something at once: NCCL connects them when they first do, and each
/// would wait then for the other, within NCCL. Later exchanges are asked for by each process for itself.
std::string NcclEnd::connect(Peers &peers) {
  const CurrentDevice current = memory_.enter();
  struct {
    NcclId id = {};
    int result = 0;
  } first;
  if (peers.rank() == 0)
    first.result = library_.get_unique_id(&first.id);
  peers.broadcast(&first, sizeof first);
  NcclConfig config;
  int result = first.result;
  if (result == 0)
    result = library_.comm_init_rank_config(&comm_, peers.size(), first.id, peers.rank(), &config);
  std::string why = settle(peers, result);
  if (why.empty()) {
    const Scratch<char> bytes(gpu_, 2 * i64{peers.size()}, "a first exchange");
    Transfers sent, received;
    for (int other = 0; other < peers.size(); ++other)
      if (other != peers.rank()) {
        sent.push_back({other, bytes.data() + other, 1});
        received.push_back({other, bytes.data() + peers.size() + other, 1});
      }
    why = settle(peers, enqueue(sent, received));
  }
  return why.empty() ? why : "NCCL connects no GPUs: " + why;
}

/// What NCCL says of the calls so far.
int NcclEnd::state() const {
  int state = 0;
  const int result = library_.comm_get_async_error(comm_, &state);
  return result == 0 ? state : result;
}

/// Waits until NCCL has taken what all processes asked for, and their GPUs have done it. Gives what went wrong, on all,
/// and ends the connection then.
std::string NcclEnd::settle(Peers &peers, int result) {
  constexpr std::chrono::microseconds soon(200);
  constexpr std::chrono::microseconds longest(10000);
  std::chrono::microseconds pause(100); // and longer each time: whoever lends the communicator is called in between
  const auto patience = std::chrono::steady_clock::now() + soon;
  const auto is_open = [&] { return is_fine(result) && comm_ != nullptr; };
  const auto look = [&] {
    result = state();
    if (result != 0)
      return;
    const cudaError_t done = cudaStreamQuery(gpu_.stream());
    if (done == cudaErrorNotReady)
      result = nccl_in_progress;
    else
      check(done, "connecting GPUs");
  };
  for (;;) {
    if (is_open())
      look();
    for (; is_open() && result == nccl_in_progress && std::chrono::steady_clock::now() < patience; look())
      std::this_thread::yield();
    const int largest = peers.largest(result == 0 ? 0 : result == nccl_in_progress ? 1 : 2);
    if (largest == 0)
      return {};
    if (largest == 2) {
      abort();
      return is_fine(result) ? "it failed on another process" : library_.error_string(result);
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, longest);
  }
}

void NcclEnd::fail() {
  if (is_fine(failure_))
    peers_->largest(0); // throws what all throw
  throw_error(Status::device, "cuda:{}: an exchange by NCCL: {}", gpu_.ordinal(), library_.error_string(failure_));
}

// Once it is ended the GPU waits for no other.
bool NcclEnd::goes_on(bool is_long) {
  if (comm_ == nullptr)
    return true;
  if (const int now = state(); !is_fine(now))
    failure_ = now;
  else if (!is_long || peers_ == nullptr || peers_->on_the_way())
    return true;
  abort();
  return false;
}

int NcclEnd::enqueue(const Transfers &sent, const Transfers &received) {
  int result = library_.group_start();
  if (result != 0)
    return result;
  result = ask(library_, comm_, gpu_.exchange_stream(), sent, received);
  const int end = library_.group_end();
  return is_fine(result) ? end : result;
}

// Nobody waits here for others or for the GPU: all processes ask for the same exchanges in the same order, and a GPU
// does its part when it comes to it. NCCL takes calls on a thread of its own, and they have a place in the stream's
// order when they are taken.
void NcclEnd::exchange(const Transfers &sent, const Transfers &received) {
  if (sent.empty() && received.empty())
    return;
  const CurrentDevice current = memory_.enter();
  if (!works())
    throw_error(Status::device, "cuda:{}: an exchange by NCCL after one that failed", gpu_.ordinal());
  failure_ = enqueue(sent, received);
  if (is_fine(failure_))
    gpu_.wait_until([&] {
      failure_ = state();
      return failure_ == nccl_in_progress ? cudaErrorNotReady : cudaSuccess;
    });
  if (failure_ == 0)
    return;
  abort();
  fail();
}

// It frees whatever still waits. Where the GPU was reset, or the process forked, there is nothing left to end.
void NcclEnd::abort() noexcept {
  if (comm_ == nullptr)
    return;
  if (const CurrentDevice current = memory_.enter(std::nothrow); current)
    library_.comm_abort(comm_);
  comm_ = nullptr;
}

} // namespace td::kernels::cuda
