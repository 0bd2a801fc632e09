// A tensor of which each process holds some entries, and of each factor the rows that these touch.
#pragma once

#include <memory>

#include "comm/processes.hpp"
#include "core/buffer.hpp"
#include "core/memory.hpp"
#include "core/views.hpp"

namespace td::tensor {

/// A distribution says which rows of the factors this process holds, who owns them, and how they come and go.
///
/// The rows of a mode that the entries here touch have numbers: first those that this process owns, ascending, then
/// those that process 0 owns, process 1, and so on. So what is owned is one range, and what goes to or comes from an
/// owner lies together. Each row that any process touches has one owner, among those that touch it. A process without
/// entries touches row 0 of each mode.
class Distribution {
public:
  std::span<const i64> dims() const noexcept { return dims_; }
  /// Rows that have a number, in each mode.
  std::span<const i64> held() const noexcept { return held_; }
  /// The row of each number.
  std::span<const i64> rows(int mode) const { return of(mode).rows; }
  /// The numbers of what this process owns.
  const Ranges &own(int mode) const { return of(mode).own; }
  Processes &processes() const noexcept { return *processes_; }
  i64 bytes() const noexcept;

  /// Rows that this process sends to owners in RowExchange::reduce, and gets from them in gather.
  i64 lent(int mode) const { return of(mode).lent_rows(); }
  /// Rows that it gets in reduce, and sends in gather.
  i64 shared(int mode) const { return std::ssize(of(mode).shared); }
  /// Processes that it sends to in reduce or in gather, whichever are more.
  i64 partners(int mode) const;
  /// How many rows each process owns of those here, and has of this one's.
  std::span<const i64> lent_to(int mode) const { return of(mode).lent; }
  std::span<const i64> shared_with(int mode) const { return of(mode).shared_with; }
  /// Numbers of own rows that go to others, one process after the other.
  std::span<const i64> shared_rows(int mode) const { return of(mode).shared; }

  // Matrices are in host memory, without gaps.

  /// The rows of this process's block (tensor/row_blocks) := those of their owners, each of which gives its own; of
  /// rows that nobody holds, zeros.
  void settle(int mode, ConstMatrix own, Matrix block) const;
  /// The rows that this process owns := those of blocks.
  void fetch(int mode, ConstMatrix block, Matrix own) const;

private:
  friend class DistributionBuilder;
  struct Mode {
    std::vector<i64> rows;        // [numbers]
    Ranges own;                   // one range, or none
    std::vector<i64> lent;        // [processes] rows here that each owns
    std::vector<i64> shared;      // numbers of own rows that go to others, one process after the other
    std::vector<i64> shared_with; // [processes] how many go to each
    i64 lent_rows() const noexcept { return std::ssize(rows) - own_rows(); }
    i64 own_rows() const noexcept { return own.empty() ? 0 : own.front().size(); }
  };
  /// The own rows that are in each process's block, as counts, and those in this one's that each process owns.
  struct Settling {
    std::vector<i64> sent, received; // [processes]
    std::vector<i64> rows;           // in this block, of one process after the other
  };
  Settling settling(int mode) const;
  const Mode &of(int mode) const { return modes_[static_cast<std::size_t>(mode)]; }

  std::shared_ptr<Processes> processes_;
  std::vector<i64> dims_, held_;
  std::vector<Mode> modes_;
};

/// Makes a distribution, mode after mode; all processes do so together.
class DistributionBuilder {
public:
  DistributionBuilder(std::shared_ptr<Processes> processes, std::span<const i64> dims);
  /// Takes the rows of the next mode that this process touches, at least one, ascending, and gives their numbers.
  std::vector<i64> add(const std::vector<i64> &touched);
  std::shared_ptr<const Distribution> finish() { return std::make_shared<const Distribution>(std::move(made_)); }

private:
  void notify_owners(Distribution::Mode &mode);

  Distribution made_;
};

/// Entries that a process has, counted from 0, with indices as narrow as all dims let them be.
class LocalEntries {
public:
  LocalEntries(std::vector<i64> dims, IndexType indices, ValueType values, i64 count);

  IndexType index_type() const noexcept { return index_type_; }
  template <class Index> std::span<Index> indices(int mode) noexcept {
    return {reinterpret_cast<Index *>(indices_[static_cast<std::size_t>(mode)].data()),
            static_cast<std::size_t>(values_.size())};
  }
  ValueBuffer &values() noexcept { return values_; }
  void set_dims(std::span<const i64> dims) { dims_.assign(dims.begin(), dims.end()); }
  /// The view is valid while this object lives and is not moved.
  EntriesView view();

private:
  std::vector<i64> dims_;
  IndexType index_type_;
  std::vector<Buffer<std::byte>> indices_;
  ValueBuffer values_;
  std::vector<const void *> columns_; // the same arrays, as EntriesView wants them
};

/// The entries of this process, in the numbers of rows.
struct Arrived {
  std::shared_ptr<const Distribution> distribution;
  LocalEntries entries; // dims are those of the numbers
};

/// Brings entries to processes, to[k] that of entry k: they arrive in the order of the processes, and in the order
/// given by each. All of them call it.
LocalEntries bring(Processes &processes, const EntriesView &given, const Buffer<std::int32_t> &to,
                   const MemoryBudget &budget, int threads);

/// Brings checked entries to the processes that are to hold them. Each process calls it with its own, of one tensor.
/// Entries at the same coordinates arrive in the order of the processes, and in the order given by each.
Arrived distribute(std::shared_ptr<Processes> processes, const EntriesView &given, const MemoryBudget &budget,
                   int threads);

} // namespace td::tensor
