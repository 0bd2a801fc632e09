#include <algorithm>
#include <cstdint>
#include <utility>

#include "comm/communicator.hpp"
#include "core/buffer.hpp"
#include "core/rows.hpp"

namespace td {

namespace {

i64 rows_at_once(i64 row_bytes, i64 most) { return std::max<i64>(most / std::max<i64>(row_bytes, 1), 1); }

constexpr i64 page = 4096;

/// The parts of ranges that lie in `some`, counted from where that begins.
Ranges within(const Ranges &ranges, Range some) {
  Ranges parts;
  for (const Range &range : ranges) {
    const Range part{std::max(range.begin, some.begin), std::min(range.end, some.end)};
    if (part.begin < part.end)
      parts.push_back({part.begin - some.begin, part.end - some.begin});
  }
  return parts;
}

std::vector<Ranges> within(std::span<const Ranges> owned, Range some) {
  std::vector<Ranges> parts;
  for (const Ranges &ranges : owned)
    parts.push_back(within(ranges, some));
  return parts;
}

class StagedCommunicator final : public Communicator {
public:
  StagedCommunicator(kernels::Device &device, std::unique_ptr<Communicator> others, i64 most)
      : device_(device), others_(std::move(others)), most_(most) {}

  int rank() const noexcept override { return others_->rank(); }
  int size() const noexcept override { return others_->size(); }
  void barrier() override { others_->barrier(); }
  void broadcast(void *data, i64 bytes) override { others_->broadcast(data, bytes); }
  void abort() noexcept override { others_->abort(); }

  void allreduce_sum(std::span<double> data) override {
    with_numbers(data, [&](std::span<double> there) { others_->allreduce_sum(there); });
  }
  void allreduce_max(std::span<double> data) override {
    with_numbers(data, [&](std::span<double> there) { others_->allreduce_max(there); });
  }

  void reduce_rows(ConstMatrix partial, Matrix out, std::span<const Ranges> owned) override {
    for_staged(partial, [&](Range some, Matrix staged) {
      const std::vector<Ranges> parts = within(owned, some);
      download(partial.slice(some.begin, some.end), staged, {{0, some.size()}});
      others_->reduce_rows(staged, staged, parts);
      upload(staged, out.slice(some.begin, some.end), parts[static_cast<std::size_t>(rank())]);
    });
  }

  void allgather_rows(Matrix a, std::span<const Ranges> owned) override {
    for_staged(a, [&](Range some, Matrix staged) {
      const Matrix rows = a.slice(some.begin, some.end);
      const std::vector<Ranges> parts = within(owned, some);
      download(rows, staged, parts[static_cast<std::size_t>(rank())]);
      others_->allgather_rows(staged, parts);
      for (int worker = 0; worker < size(); ++worker)
        if (worker != rank())
          upload(staged, rows, parts[static_cast<std::size_t>(worker)]);
    });
  }

  void exchange(const kernels::Transfers &sent, const kernels::Transfers &received) override {
    const i64 each = std::max<i64>(most_ / (2 * size()), 1); // of a transfer at a time
    double longest = 0;
    for (const kernels::Transfers *some : {&sent, &received})
      for (const kernels::Transfer &transfer : *some)
        longest = std::max(longest, static_cast<double>(transfer.bytes));
    others_->allreduce_max({&longest, 1}); // all go as many rounds
    for (i64 begin = 0; begin < static_cast<i64>(longest); begin += each) {
      Staged out(sent, {begin, begin + each}), in(received, {begin, begin + each});
      std::byte *const room = locked(out.bytes + in.bytes);
      out.place(room);
      in.place(room + out.bytes);
      for (const auto &[memory, staged] : out.pairs)
        device_.download(staged.memory, memory, staged.bytes);
      others_->exchange(out.transfers(), in.transfers());
      for (const auto &[memory, staged] : in.pairs)
        device_.upload(memory, staged.memory, staged.bytes);
    }
  }

private:
  /// A part of each transfer, counted in bytes from its begin.
  struct Staged {
    Staged(const kernels::Transfers &all, Range part) {
      for (const kernels::Transfer &transfer : all)
        if (const i64 some = std::min(part.end, transfer.bytes) - part.begin; some > 0) {
          pairs.push_back({static_cast<char *>(transfer.memory) + part.begin, {transfer.worker, nullptr, some}});
          bytes += some;
        }
    }
    void place(std::byte *next) {
      for (auto &[memory, staged] : pairs)
        staged.memory = std::exchange(next, next + staged.bytes);
    }
    kernels::Transfers transfers() const {
      kernels::Transfers staged;
      for (const auto &pair : pairs)
        staged.push_back(pair.second);
      return staged;
    }
    std::vector<std::pair<void *, kernels::Transfer>> pairs; // where it is on the device, and on the host
    i64 bytes = 0;
  };

  /// Memory that stays, which the device copies to and from by itself where it can be locked: whole pages, as a copy
  /// may not be half locked.
  std::byte *locked(i64 bytes) {
    const i64 whole = (bytes + page - 1) / page * page;
    if (locked_bytes_ < whole) {
      pin_.reset();
      arrays_ = Buffer<std::byte>();
      locked_bytes_ = 0;
      arrays_ = Buffer<std::byte>(whole + page, "bytes on their way between workers");
      locked_bytes_ = whole;
      pin_ = device_.pin(first_page(), whole);
    }
    return first_page();
  }
  std::byte *first_page() {
    const auto at = reinterpret_cast<std::uintptr_t>(arrays_.data());
    return arrays_.data() + (page - at % page) % page;
  }

  template <class Work> void with_numbers(std::span<double> data, Work &&work) {
    std::vector<double> staged(data.size());
    const auto bytes = static_cast<i64>(data.size_bytes());
    device_.download(staged.data(), data.data(), bytes);
    work(std::span(staged));
    device_.upload(data.data(), staged.data(), bytes);
  }

  /// Calls body(rows, staged) for ranges of rows with room for them on the host.
  template <class Body> void for_staged(const ConstMatrix &a, Body &&body) {
    const i64 row_bytes = a.cols * size_of(a.type);
    Buffer<std::byte> staged(staged_bytes(a.rows, row_bytes, most_), "rows on their way between workers");
    const i64 step = rows_at_once(row_bytes, most_);
    for (i64 begin = 0; begin < a.rows; begin += step) {
      const Range some{begin, std::min(begin + step, a.rows)};
      body(some, Matrix{staged.data(), a.type, some.size(), a.cols, a.cols});
    }
  }

  void download(const ConstMatrix &from, const Matrix &to, const Ranges &rows) {
    for_together(from, rows, [&](Range some, i64 bytes) {
      device_.download(to.slice(some.begin, some.end).data, from.slice(some.begin, some.end).data, bytes);
    });
  }
  void upload(const ConstMatrix &from, const Matrix &to, const Ranges &rows) {
    for_together(to, rows, [&](Range some, i64 bytes) {
      device_.upload(to.slice(some.begin, some.end).data, from.slice(some.begin, some.end).data, bytes);
    });
  }

  kernels::Device &device_;
  std::unique_ptr<Communicator> others_;
  i64 most_;
  Buffer<std::byte> arrays_;
  i64 locked_bytes_ = 0;            // of these
  std::shared_ptr<const void> pin_; // of these, which outlive it
};

} // namespace

i64 staged_bytes(i64 rows, i64 row_bytes, i64 most) {
  return std::min(rows, rows_at_once(row_bytes, most)) * row_bytes;
}

std::unique_ptr<Communicator> make_staged_communicator(kernels::Device &device, std::unique_ptr<Communicator> others,
                                                       i64 most) {
  return std::make_unique<StagedCommunicator>(device, std::move(others), most);
}

} // namespace td
