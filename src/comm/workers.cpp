#include "comm/workers.hpp"

#include <cxxabi.h>

#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "core/error.hpp"

namespace td {

namespace {

class FirstError {
public:
  void keep(std::exception_ptr error) noexcept {
    const std::lock_guard lock(mutex_);
    if (!error_)
      error_ = std::move(error);
  }
  explicit operator bool() const noexcept { return error_ != nullptr; }
  void rethrow() const {
    if (error_)
      std::rethrow_exception(error_);
  }

private:
  std::mutex mutex_;
  std::exception_ptr error_;
};

std::vector<std::unique_ptr<Communicator>> communicators_for(const Backends &backends) {
  if (!backends.front()->has_own_memory())
    return make_thread_communicators(static_cast<int>(backends.size()));
  std::vector<kernels::Backend *> devices;
  for (const auto &backend : backends)
    devices.push_back(backend.get());
  return make_device_communicators(devices, devices.front()->exchange());
}

/// Others may still read what a failed worker had lent them: it is freed, but stays memory of its device until all are
/// done. What else went wrong there is no news.
void wait_for_all(const Backends &backends) noexcept {
  for (const auto &backend : backends)
    try {
      backend->wait();
    } catch (const Error &) {
    }
}

// A device's work may wait for the others' until it has all been done: where they fail meanwhile, or this process does,
// it is ended while the communicator is there, as freeing memory would wait for it.
void work_with(Processes &processes, kernels::Backend &device,
               const std::function<void(kernels::Backend &, Communicator &)> &body) {
  const auto others = make_process_communicator(processes, device);
  try {
    body(device, *others);
    device.wait();
  } catch (...) {
    others->abort();
    throw;
  }
}

} // namespace

void run_workers(const Backends &backends, const std::function<void(kernels::Backend &, Communicator &)> &body,
                 Processes *processes) {
  if (processes != nullptr)
    return work_with(*processes, *backends.front(), body);
  if (backends.size() == 1) {
    body(*backends.front(), *make_self_communicator());
    return;
  }
  const auto communicators = communicators_for(backends);
  FirstError first;
  const auto work = [&](std::size_t worker) {
    try {
      body(*backends[worker], *communicators[worker]);
    } catch (const WorkerAborted &) {
      // the error is another worker's
    } catch (const abi::__forced_unwind &) { // a callback ends the calling thread: the others end first
      communicators[worker]->abort();
      throw;
    } catch (...) {
      first.keep(std::current_exception());
      communicators[worker]->abort();
    }
  };
  {
    std::vector<std::jthread> threads; // joined on leaving this block
    try {
      threads.reserve(backends.size());
      for (std::size_t worker = 1; worker < backends.size(); ++worker)
        threads.emplace_back(work, worker);
    } catch (const std::system_error &e) {
      first.keep(std::make_exception_ptr(
          Error(Status::host_memory,
                fmt::format("{} workers: a thread could not be started: {}", backends.size(), e.what()))));
      communicators.front()->abort();
    } catch (...) {
      first.keep(std::current_exception());
      communicators.front()->abort();
    }
    work(0);
  }
  if (first)
    wait_for_all(backends);
  first.rethrow();
}

int total_threads(const Backends &backends) noexcept {
  int threads = 0;
  for (const auto &backend : backends)
    threads += backend->threads();
  return threads;
}

std::string word_of(const kernels::Device &device) {
  const std::string all = device.describe(); // as in "cuda:0, NVIDIA ..."
  return all.substr(0, all.find(','));
}

} // namespace td
