#include "comm/process_workers.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <numeric>
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

// Between two processes goes what the first worker here has for each worker there, then what the second one has, ...
std::int32_t ProcessWorkers::all_to_all() {
  const auto processes = workers_.size(), here = static_cast<std::size_t>(processes_->rank());
  std::vector<i64> sent, received; // [processes] bytes
  std::vector<std::byte> out, in;
  std::vector<std::vector<i64>> from, to; // [workers here][total] where it begins in that worker's memory
  bool failed = false;
  try {
    sent.resize(processes);
    received.resize(processes);
    for (const auto &seat : seats_) {
      const Brought &b = seat->brought;
      std::vector<i64> &sends = from.emplace_back(1), &receives = to.emplace_back(1);
      for (int rank = 0; rank < total_; ++rank) {
        sends.push_back(sends.back() + b.sent_bytes[rank]);
        receives.push_back(receives.back() + b.received_bytes[rank]);
      }
    }
    for (std::size_t p = 0; p < processes; ++p)
      if (p != here)
        for (const auto &seat : seats_)
          for_workers_of(static_cast<int>(p), [&](std::size_t rank) {
            sent[p] += seat->brought.sent_bytes[rank];
            received[p] += seat->brought.received_bytes[rank];
          });
    out.resize(static_cast<std::size_t>(std::accumulate(sent.begin(), sent.end(), i64{0})));
    in.resize(static_cast<std::size_t>(std::accumulate(received.begin(), received.end(), i64{0})));
  } catch (const std::bad_alloc &) {
    failed = true;
  }
  std::int32_t code = 0;
  if (!on_none(failed, code))
    return code != 0 ? code : ProcessFunctions::no_memory;
  const auto copy = [](void *target, const void *source, i64 bytes) {
    if (bytes > 0)
      std::memcpy(target, source, static_cast<std::size_t>(bytes));
  };
  const auto sent_from = [&](std::size_t place, std::size_t rank) {
    return static_cast<const std::byte *>(seats_[place]->brought.sent) + from[place][rank];
  };
  const auto received_at = [&](std::size_t place, std::size_t rank) {
    return static_cast<std::byte *>(seats_[place]->brought.received) + to[place][rank];
  };
  i64 at = 0;
  for (std::size_t p = 0; p < processes; ++p)
    for (std::size_t place = 0; place < seats_.size(); ++place)
      for_workers_of(static_cast<int>(p), [&](std::size_t rank) {
        const i64 bytes = seats_[place]->brought.sent_bytes[rank];
        if (p == here) { // goes from one worker to another
          const std::size_t other = rank - static_cast<std::size_t>(first_);
          copy(received_at(other, static_cast<std::size_t>(first_) + place), sent_from(place, rank), bytes);
        } else {
          copy(out.data() + std::exchange(at, at + bytes), sent_from(place, rank), bytes);
        }
      });
  const ProcessFunctions &f = processes_->functions();
  code = f.all_to_all(out.data(), sent.data(), in.data(), received.data(), f.user);
  at = 0;
  for (std::size_t p = 0; p < processes && code == 0; ++p)
    if (p != here)
      for_workers_of(static_cast<int>(p), [&](std::size_t rank) {
        for (std::size_t place = 0; place < seats_.size(); ++place) {
          const i64 bytes = seats_[place]->brought.received_bytes[rank];
          copy(received_at(place, rank), in.data() + std::exchange(at, at + bytes), bytes);
        }
      });
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
