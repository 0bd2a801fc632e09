#include "comm/process_workers.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <numeric>
#include <optional>
#include <utility>

namespace td {

ProcessWorkers::Seat::Seat(ProcessWorkers &all_, int place_, int first, std::span<const int> workers)
    : all(all_), place(place_),
      processes(first + place_, workers, {reduce_here, exchange_here, broadcast_here, abort_here, nullptr, this}) {}

ProcessWorkers::ProcessWorkers(std::shared_ptr<Processes> processes, std::vector<int> workers)
    : processes_(std::move(processes)), workers_(std::move(workers)),
      total_(std::accumulate(workers_.begin(), workers_.end(), 0)) {
  const auto here = workers_.begin() + processes_->rank();
  first_ = std::accumulate(workers_.begin(), here, 0);
  for (int place = 0; place < *here; ++place)
    seats_.push_back(std::make_unique<Seat>(*this, place, first_, workers_));
}

std::shared_ptr<ProcessWorkers> ProcessWorkers::make(std::shared_ptr<Processes> processes, int workers) {
  const i64 mine = workers;
  const std::vector<i64> all = processes->all_gather({&mine, 1});
  return std::shared_ptr<ProcessWorkers>(
      new ProcessWorkers(std::move(processes), std::vector<int>(all.begin(), all.end())));
}

// The others wait in the meantime, so that what they have brought is the first worker's to read and to write.
template <class Work> std::int32_t ProcessWorkers::meet(Seat &seat, Brought mine, Work &&work) {
  std::unique_lock lock(mutex_);
  seat.brought = mine;
  const i64 round = round_;
  ++arrived_;
  if (seat.place != 0) {
    changed_.notify_all();
    changed_.wait(lock, [&] { return round_ != round; });
    return code_;
  }
  changed_.wait(lock, [&] { return arrived_ == size(); });
  lock.unlock(); // nobody else touches anything until the round has ended
  const std::int32_t code = work();
  lock.lock();
  arrived_ = 0;
  ++round_;
  code_ = code;
  changed_.notify_all();
  return code;
}

std::int32_t ProcessWorkers::all_reduce(i64 count, Reduction how) {
  double *const data = seats_.front()->brought.data;
  for (std::size_t place = 1; place < seats_.size(); ++place)
    for (i64 k = 0; k < count; ++k) {
      const double other = seats_[place]->brought.data[k];
      data[k] = how == Reduction::sum ? data[k] + other : std::max(data[k], other);
    }
  const ProcessFunctions &f = processes_->functions();
  const std::int32_t code = f.all_reduce(data, count, static_cast<std::int32_t>(how), f.user);
  for (std::size_t place = 1; place < seats_.size(); ++place)
    std::copy_n(data, count, seats_[place]->brought.data);
  return code;
}

bool ProcessWorkers::on_none(bool here, std::int32_t &code) {
  double flag = here ? 1 : 0;
  const ProcessFunctions &f = processes_->functions();
  code = f.all_reduce(&flag, 1, static_cast<std::int32_t>(Reduction::max), f.user);
  if (code != 0) // whether the others go on is not known
    f.abort(static_cast<std::int32_t>(Status::communication), f.user);
  return code == 0 && flag == 0;
}

template <class F> void ProcessWorkers::for_workers_of(int process, F &&f) const {
  const auto own = workers_.begin() + process;
  const int first = std::accumulate(workers_.begin(), own, 0);
  for (int rank = first; rank < first + *own; ++rank)
    f(static_cast<std::size_t>(rank));
}

/// What an all_to_all of all workers sends and receives as one of the processes.
class ProcessWorkers::Letters {
public:
  /// Throws std::bad_alloc.
  explicit Letters(const ProcessWorkers &all) : all_(all) {
    const auto processes = all.workers_.size();
    sent_.resize(processes);
    received_.resize(processes);
    for (const auto &seat : all.seats_) {
      std::vector<i64> &sends = from_.emplace_back(1), &receives = to_.emplace_back(1);
      for (int rank = 0; rank < all.total_; ++rank) {
        sends.push_back(sends.back() + seat->brought.sent_bytes[rank]);
        receives.push_back(receives.back() + seat->brought.received_bytes[rank]);
      }
    }
    for (std::size_t p = 0; p < processes; ++p)
      if (p != here())
        for (const auto &seat : all.seats_)
          all.for_workers_of(static_cast<int>(p), [&](std::size_t rank) {
            sent_[p] += seat->brought.sent_bytes[rank];
            received_[p] += seat->brought.received_bytes[rank];
          });
    out_.resize(static_cast<std::size_t>(std::accumulate(sent_.begin(), sent_.end(), i64{0})));
    in_.resize(static_cast<std::size_t>(std::accumulate(received_.begin(), received_.end(), i64{0})));
  }

  /// Gathers what goes to other processes; what stays here goes from one worker to another at once.
  void write() {
    i64 at = 0;
    for (std::size_t p = 0; p < all_.workers_.size(); ++p)
      for (std::size_t place = 0; place < all_.seats_.size(); ++place)
        all_.for_workers_of(static_cast<int>(p), [&](std::size_t rank) {
          const i64 bytes = all_.seats_[place]->brought.sent_bytes[rank];
          const std::byte *const from = sent_from(place, rank);
          if (p == here())
            copy(received_at(rank - first(), first() + place), from, bytes);
          else
            copy(out_.data() + std::exchange(at, at + bytes), from, bytes);
        });
  }
  std::int32_t exchange(const ProcessFunctions &f) {
    return f.all_to_all(out_.data(), sent_.data(), in_.data(), received_.data(), f.user);
  }
  /// Gives each worker what has come for it.
  void read() const {
    i64 at = 0;
    for (std::size_t p = 0; p < all_.workers_.size(); ++p)
      if (p != here())
        all_.for_workers_of(static_cast<int>(p), [&](std::size_t rank) {
          for (std::size_t place = 0; place < all_.seats_.size(); ++place) {
            const i64 bytes = all_.seats_[place]->brought.received_bytes[rank];
            copy(received_at(place, rank), in_.data() + std::exchange(at, at + bytes), bytes);
          }
        });
  }

private:
  static void copy(void *target, const void *source, i64 bytes) {
    if (bytes > 0)
      std::memcpy(target, source, static_cast<std::size_t>(bytes));
  }
  std::size_t here() const noexcept { return static_cast<std::size_t>(all_.processes_->rank()); }
  std::size_t first() const noexcept { return static_cast<std::size_t>(all_.first_); }
  const std::byte *sent_from(std::size_t place, std::size_t rank) const {
    return static_cast<const std::byte *>(all_.seats_[place]->brought.sent) + from_[place][rank];
  }
  std::byte *received_at(std::size_t place, std::size_t rank) const {
    return static_cast<std::byte *>(all_.seats_[place]->brought.received) + to_[place][rank];
  }

  const ProcessWorkers &all_;
  std::vector<i64> sent_, received_; // [processes] bytes
  std::vector<std::byte> out_, in_;
  std::vector<std::vector<i64>> from_, to_; // [workers here][total] where it begins in that worker's memory
};

// Between two processes goes what the first worker here has for each worker there, then what the second one has, ...
std::int32_t ProcessWorkers::all_to_all() {
  std::optional<Letters> letters;
  try {
    letters.emplace(*this);
  } catch (const std::bad_alloc &) {
    letters.reset();
  }
  std::int32_t code = 0;
  if (!on_none(!letters, code))
    return code != 0 ? code : ProcessFunctions::no_memory;
  letters->write();
  code = letters->exchange(processes_->functions());
  if (code == 0)
    letters->read();
  return code;
}

std::int32_t ProcessWorkers::broadcast(i64 bytes, int root) {
  const int process = seats_.front()->processes.process_of(root);
  const bool here = process == processes_->rank();
  const std::size_t place = here ? static_cast<std::size_t>(root - first_) : 0;
  void *const data = seats_[place]->brought.bytes;
  const ProcessFunctions &f = processes_->functions();
  const std::int32_t code = f.broadcast(data, bytes, process, f.user);
  for (std::size_t k = 0; k < seats_.size() && bytes > 0; ++k)
    if (k != place)
      std::memcpy(seats_[k]->brought.bytes, data, static_cast<std::size_t>(bytes));
  return code;
}

std::int32_t ProcessWorkers::reduce_here(double *data, i64 count, std::int32_t operation, void *user) {
  auto &seat = *static_cast<Seat *>(user);
  Brought mine;
  mine.data = data;
  return seat.all.meet(seat, mine, [&] { return seat.all.all_reduce(count, static_cast<Reduction>(operation)); });
}

std::int32_t ProcessWorkers::exchange_here(const void *sent, const i64 *sent_bytes, void *received,
                                           const i64 *received_bytes, void *user) {
  auto &seat = *static_cast<Seat *>(user);
  Brought mine;
  mine.sent = sent;
  mine.received = received;
  mine.sent_bytes = sent_bytes;
  mine.received_bytes = received_bytes;
  return seat.all.meet(seat, mine, [&] { return seat.all.all_to_all(); });
}

std::int32_t ProcessWorkers::broadcast_here(void *data, i64 bytes, std::int32_t root, void *user) {
  auto &seat = *static_cast<Seat *>(user);
  Brought mine;
  mine.bytes = data;
  return seat.all.meet(seat, mine, [&] { return seat.all.broadcast(bytes, root); });
}

// All workers of the process have had the number at which one aborts: the first of them says so.
void ProcessWorkers::abort_here(std::int32_t status, void *user) {
  auto &seat = *static_cast<Seat *>(user);
  const ProcessFunctions &f = seat.all.processes_->functions();
  if (seat.place == 0)
    f.abort(status, f.user);
}

} // namespace td
