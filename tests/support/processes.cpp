#include "support/processes.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <mutex>
#include <numeric>
#include <thread>

#include "support/devices.hpp"

namespace tdtest {

/// What a process brings to a function that all call.
struct Brought {
  std::string function;
  const void *sent = nullptr;
  const int64_t *sent_bytes = nullptr;
  int64_t count = 0;
};

class Meeting {
public:
  Meeting(int size, const Failure &failure)
      : size_(size), failure_(failure), brought_(static_cast<std::size_t>(size)),
        calls_(static_cast<std::size_t>(size)) {}

  /// take(all) reads what the others have brought, between two barriers. Gives what the function returns.
  template <class Take> int32_t meet(int rank, Brought mine, Take &&take) {
    const int64_t call = calls_[static_cast<std::size_t>(rank)]++;
    const bool fails = rank == failure_.process && call == failure_.call;
    const bool failed = rank == failure_.process && call > failure_.call && failure_.for_good;
    brought_[static_cast<std::size_t>(rank)] = std::move(mine);
    if (!wait(true))
      return 99;
    take(brought_);
    if (!wait(false))
      return 99;
    return fails || failed ? 7 : 0;
  }

  void abort() {
    const std::lock_guard lock(mutex_);
    aborted_ = true;
    changed_.notify_all();
  }

  int size() const { return size_; }
  int64_t calls() const { return calls_.front(); }
  bool aborted() const { return aborted_; }
  const std::string &trouble() const { return trouble_; }
  void add_bytes(int64_t bytes) {
    const std::lock_guard lock(mutex_);
    bytes_ += bytes;
  }
  int64_t bytes() const { return bytes_; }
  void release() {
    const std::lock_guard lock(mutex_);
    ++released_;
  }
  int released() const { return released_; }

private:
  bool wait(bool arriving) {
    std::unique_lock lock(mutex_);
    if (aborted_)
      return false;
    const int64_t round = round_;
    if (++arrived_ == size_) {
      arrived_ = 0;
      ++round_;
      if (arriving)
        compare();
      lock.unlock(); // or each that wakes would wait for it
      changed_.notify_all();
      return true;
    }
    // Most others are about to come: who sleeps meanwhile is woken at more cost than what is done between meetings.
    for (int k = 0; k < 20 && round_ == round && !aborted_; ++k) {
      lock.unlock();
      std::this_thread::yield();
      lock.lock();
    }
    if (!changed_.wait_for(lock, std::chrono::minutes(1), [&] { return round_ != round || aborted_; })) {
      trouble_ = "a process waits in " + brought_.front().function + " for others that do not come";
      aborted_ = true;
      changed_.notify_all();
    }
    return round_ != round;
  }

  void compare() {
    for (const Brought &b : brought_)
      if (b.function != brought_.front().function || b.count != brought_.front().count) {
        trouble_ = "processes met in " + b.function + " and " + brought_.front().function;
        aborted_ = true;
      }
  }

  int size_;
  Failure failure_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Brought> brought_;
  std::vector<int64_t> calls_;
  int arrived_ = 0;
  int64_t round_ = 0;
  bool aborted_ = false;
  std::string trouble_;
  int64_t bytes_ = 0;
  int released_ = 0;
};

namespace {

thread_local int depth = 0;

struct Inside {
  Inside() noexcept { ++depth; }
  Inside(const Inside &) = delete;
  Inside &operator=(const Inside &) = delete;
  ~Inside() { --depth; }
};

struct Member {
  std::shared_ptr<Meeting> meeting;
  int rank = 0;
};

Meeting &meeting_of(void *user) { return *static_cast<Member *>(user)->meeting; }

int32_t all_reduce(double *data, int64_t count, int32_t operation, void *user) {
  const Inside inside;
  std::vector<double> result(static_cast<std::size_t>(count));
  const int32_t code =
      meeting_of(user).meet(static_cast<Member *>(user)->rank, {operation == 0 ? "sum" : "max", data, nullptr, count},
                            [&](const std::vector<Brought> &all) {
                              for (std::size_t k = 0; k < result.size(); ++k) {
                                result[k] = static_cast<const double *>(all.front().sent)[k];
                                for (std::size_t p = 1; p < all.size(); ++p) {
                                  const double x = static_cast<const double *>(all[p].sent)[k];
                                  result[k] = operation == 0 ? result[k] + x : std::max(result[k], x);
                                }
                              }
                            });
  std::copy(result.begin(), result.end(), data);
  return code;
}

int32_t all_to_all_v(const void *sent, const int64_t *sent_bytes, void *received, const int64_t *received_bytes,
                     void *user) {
  const Inside inside;
  const int rank = static_cast<Member *>(user)->rank;
  Meeting &meeting = meeting_of(user);
  const int64_t all_bytes = std::accumulate(sent_bytes, sent_bytes + meeting.size(), int64_t{0});
  meeting.add_bytes(all_bytes - sent_bytes[rank]);
  bool right = true;
  const int32_t code = meeting.meet(rank, {"all_to_all_v", sent, sent_bytes, 0}, [&](const std::vector<Brought> &all) {
    char *to = static_cast<char *>(received);
    for (std::size_t p = 0; p < all.size(); ++p) {
      const int64_t before = std::accumulate(all[p].sent_bytes, all[p].sent_bytes + rank, int64_t{0});
      right = right && all[p].sent_bytes[rank] == received_bytes[p];
      if (right && received_bytes[p] > 0)
        std::memcpy(to, static_cast<const char *>(all[p].sent) + before, static_cast<std::size_t>(received_bytes[p]));
      to += received_bytes[p];
    }
  });
  return right ? code : 98;
}

int32_t broadcast(void *data, int64_t bytes, int32_t root, void *user) {
  const Inside inside;
  const int rank = static_cast<Member *>(user)->rank;
  return meeting_of(user).meet(
      rank, {"broadcast of " + std::to_string(root), data, nullptr, bytes}, [&](const std::vector<Brought> &all) {
        if (rank != root && bytes > 0)
          std::memcpy(data, all[static_cast<std::size_t>(root)].sent, static_cast<std::size_t>(bytes));
      });
}

void abort_all(td_status, void *user) {
  const Inside inside;
  meeting_of(user).abort();
}

void release(void *user) {
  meeting_of(user).release();
  delete static_cast<Member *>(user);
}

} // namespace

bool in_communicator() noexcept { return depth > 0; }

Processes::Processes(int size, const Failure &failure)
    : size_(size), meeting_(std::make_shared<Meeting>(size, failure)) {}
Processes::~Processes() = default;

Communicator Processes::communicator(int rank) {
  auto member = std::make_unique<Member>(Member{meeting_, rank});
  td_communicator *made = nullptr;
  check(td_communicator_create(rank, size_, all_reduce, all_to_all_v, broadcast, abort_all, release, member.get(),
                               &made));
  member.release(); // NOLINT: td releases it
  return Communicator(made);
}

void Processes::run(const std::function<void(int)> &body) {
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(size_));
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < size_; ++rank)
      threads.emplace_back([&, rank] {
        try {
          body(rank);
        } catch (...) {
          errors[static_cast<std::size_t>(rank)] = std::current_exception();
          meeting_->abort(); // the others may wait for it
        }
      });
  }
  for (const auto &error : errors)
    if (error)
      std::rethrow_exception(error);
}

void Processes::run(const std::string &devices, const std::function<void(int, td_context *)> &body) {
  run([&](int rank) {
    const Communicator communicator = this->communicator(rank);
    const std::string own = devices_of_process(devices, rank);
    const Options options = context_options(own, "1");
    const Context context =
        make<Context>(td_context_create_distributed, place_of(own).c_str(), static_cast<const td_options *>(options),
                      static_cast<td_communicator *>(communicator));
    body(rank, context);
  });
}

int64_t Processes::calls() const { return meeting_->calls(); }
int64_t Processes::bytes_sent() const { return meeting_->bytes(); }
bool Processes::aborted() const { return meeting_->aborted(); }
std::string Processes::trouble() const { return meeting_->trouble(); }
int Processes::released() const { return meeting_->released(); }

namespace {

struct Block {
  std::vector<int64_t> offset, dims;
};

Block bisected(Block block, int which, int count, std::size_t mode) {
  if (count == 1)
    return block;
  const int half = count / 2;
  const int64_t left = block.dims[mode] * half / count;
  const std::size_t next = (mode + 1) % block.dims.size();
  if (which < half) {
    block.dims[mode] = left;
    return bisected(block, which, half, next);
  }
  block.offset[mode] += left;
  block.dims[mode] -= left;
  return bisected(block, which - half, count - half, next);
}

Block block_of(const std::vector<int64_t> &dims, int rank, int size, Blocks how) {
  Block block{std::vector<int64_t>(dims.size(), 0), dims};
  if (how == Blocks::boxes)
    return bisected(block, size - 1 - rank, size, 0);
  const int64_t last = dims.back();
  const int64_t begin = how == Blocks::slabs ? last * rank / size : 0;
  const int64_t end = how == Blocks::slabs ? last * (rank + 1) / size : rank == size - 1 ? last : 0;
  block.offset.back() = begin;
  block.dims.back() = end - begin;
  return block;
}

} // namespace

Tensor make_dense_block(td_context *context, const Entries &cells, int rank, int size, Blocks how, td_type type,
                        const td_options *options) {
  const Block block = block_of(cells.dims, rank, size, how);
  const std::size_t order = cells.dims.size();
  std::vector<int64_t> strides(order);
  int64_t elements = 1;
  for (std::size_t k = 0; k < order; ++k) {
    const std::size_t m = how == Blocks::boxes ? order - 1 - k : k;
    strides[m] = elements;
    elements *= block.dims[m];
  }
  std::vector<double> values(static_cast<std::size_t>(elements));
  for (int64_t k = 0; k < cells.nnz(); ++k) {
    const std::vector<int64_t> at = cells.coordinate(k);
    int64_t place = 0;
    bool inside = true;
    for (std::size_t m = 0; m < order; ++m) {
      const int64_t index = at[m] - block.offset[m];
      inside = inside && index >= 0 && index < block.dims[m];
      place += index * strides[m];
    }
    if (inside)
      values[static_cast<std::size_t>(place)] += cells.values[static_cast<std::size_t>(k)];
  }
  const std::vector<float> narrow(values.begin(), values.end());
  const void *array = type == TD_F32 ? static_cast<const void *>(narrow.data()) : values.data();
  return make<Tensor>(td_tensor_create_dense_block, context, cells.order(), cells.dims.data(), block.offset.data(),
                      block.dims.data(), static_cast<const int64_t *>(strides.data()), type, array, TD_HOST, options);
}

} // namespace tdtest
