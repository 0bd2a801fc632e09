// Several devices that build a tensor together: each takes some of the caller's entries, they exchange them, and each
// makes the copies of the rows that its worker is to have. What they make is bit for bit what one of them makes.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "comm/workers.hpp"
#include "kernels/building.hpp"
#include "tensor/joint_counts.hpp"
#include "tensor/sharding.hpp"

namespace td::tensor {

class JointBuilding final : public kernels::Building {
public:
  /// The caller's arrays are in host memory. Gives null where one of the devices cannot build its entries. Copies are
  /// partitioned by the rule. keys: as in Backend::begin_building.
  static std::unique_ptr<JointBuilding> begin(const std::vector<kernels::Backend *> &devices,
                                              const EntriesView &entries, plan::ShardingRule rule,
                                              const kernels::KeyMoves *keys);

  i64 size() const noexcept override;
  i64 first_outside() override;
  i64 first_not_finite() override;
  void mark_rows(int mode, u64 *words) override;
  void encode(const kernels::KeyMoves &keys, std::span<const kernels::RowNumbers> numbers) override;
  /// Afterwards each device has a range of the entries in their order, equal keys all on one.
  void sort() override;
  i64 first_repeat() override;
  i64 merge() override;
  std::vector<u128> keys(std::span<const i64> entries) override;
  void recode(int key_bytes, std::span<const kernels::BitMove> moves) override;
  std::vector<i64> runs(u128 mask) override;
  void sum_values(double scale, i64 block, Range entries, kernels::ValueSums *sums) override;
  void count_fields(int shift, int bits, std::span<i64> counts) override;
  /// Its arrays are in the memories of all.
  kernels::Copy make_copy(const kernels::CopyPlan &plan) override;
  std::shared_ptr<const kernels::DeviceArrays> take_entries() override;

  /// What devices have of the last copy that was made: worker by worker a part, in the memory of its device. Without
  /// parts where none was made.
  struct Held {
    std::vector<std::shared_ptr<const kernels::DeviceArrays>> parts; // [workers] null: nothing
    std::shared_ptr<const Sharded> sharded;                          // what of the copy they are
  };
  Held take_held() { return std::exchange(held_, {}); }
  /// The entries that a device is given at first.
  static EntriesView given_to(std::size_t device, std::size_t devices, const EntriesView &entries,
                              std::vector<const void *> &columns);

private:
  using Devices = std::vector<std::unique_ptr<kernels::DeviceBuilding>>;

  JointBuilding(Backends backends, std::span<const i64> dims, plan::ShardingRule rule)
      : backends_(std::move(backends)), dims_(dims.begin(), dims.end()), rule_(rule), devices_(backends_.size()) {}

  template <class F> void on_all(F &&f);
  template <class F> i64 first_of_all(F &&f);
  std::size_t device_of(i64 entry) const noexcept;
  i64 before(std::size_t device) const noexcept; // entries of the devices before it
  kernels::ValueSums sum_across(double scale, Range entries);
  std::vector<CountedRow> count_rows(const kernels::CopyPlan &plan, const Ranges &rows);
  plan::Partition partition_of(const kernels::CopyPlan &plan);

  Backends backends_; // not owned
  std::vector<i64> dims_;
  plan::ShardingRule rule_;
  Devices devices_;
  int key_bits_ = 64; // that encode() sets
  Held held_;
};

} // namespace td::tensor
