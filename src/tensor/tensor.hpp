// A tensor as the library holds it: what the plan chose to store, and facts taken when it was made.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "formats/formats.hpp"
#include "kernels/memory_order.hpp"
#include "plan/groups.hpp"
#include "plan/storage.hpp"
#include "tensor/dense_blocks.hpp"
#include "tensor/distribution.hpp"
#include "tensor/resident.hpp"

namespace td::tensor {

struct Facts {
  i64 nnz = 0;
  i64 duplicates = 0;
  i64 zeros = 0;
  double norm = 0;
  double min = 0;
  double max = 0;
  double sum = 0;
};

/// Facts are the same bits for any number of threads. The norm neither overflows nor underflows on the way; where the
/// result itself is beyond f64 it is infinite, and so is the sum.
Facts facts_of(const ValueBuffer &values, int threads);
/// The facts of what all processes hold, from those of each.
Facts facts_of_all(const Facts &here, Processes &processes);
Facts facts_of(kernels::Building &building);
/// Facts of a caller's array, in the order of memory: in host memory, or where the device's kernels work. Throws
/// Status::argument for an element that is not finite.
Facts facts_of_lent(const kernels::DenseView &x, int threads, kernels::Backend *device);

/// The kernels that a tensor is stored for. All others work on it too.
enum class Target { cpu, gpu };

/// The GPUs that a tensor is stored for, each with a worker; none: the host builds.
using Builders = std::vector<kernels::Backend *>;
struct Begun;   // what they have begun with
struct Sharded; // tensor/sharding.hpp

class Tensor {
public:
  /// Checks and copies what is given, if it fits, as decide_storage has it. With the backend of a GPU it is that which
  /// checks, sorts and makes the copies, as far as its memory allows: the same, bit for bit. With several, each takes
  /// some of what is given in host memory, and makes what its worker is to have.
  static std::shared_ptr<const Tensor> make_sparse(const EntriesView &entries, const plan::TensorSettings &settings,
                                                   int threads, std::string source, Target target = Target::cpu,
                                                   kernels::Backend *builder = nullptr);
  static std::shared_ptr<const Tensor> make_sparse(const formats::Given &given, const plan::TensorSettings &settings,
                                                   int threads, std::string source, Target target,
                                                   const Builders &builders);
  /// A process's part of a tensor of several: what has come here of it, stored as a tensor of the rows that it touches.
  /// Its facts are those of the whole. All processes call it.
  static std::shared_ptr<const Tensor> make_distributed(Arrived part, const plan::TensorSettings &settings, int threads,
                                                        std::string source, Target target,
                                                        kernels::Backend *builder = nullptr);
  static std::shared_ptr<const Tensor> make_distributed(ArrivedBox part, const plan::TensorSettings &settings,
                                                        int threads, std::string source, Target target);
  /// Throws as make_sparse does if it does not fit.
  static std::shared_ptr<const Tensor> make_dense(const DenseArrayView &array, const plan::TensorSettings &settings,
                                                  int threads, std::string source, Target target = Target::cpu);

  /// Borrows an array from the caller, who keeps it as it is until the tensor ends; it is checked, not copied.
  /// `device`: in whose memory() it is; null: in the host's.
  static std::shared_ptr<const Tensor> borrow_dense(const DenseArrayView &array, plan::TensorSettings settings,
                                                    int threads, Target target, kernels::Backend *device);

  int order() const noexcept { return static_cast<int>(dims_.size()); }
  std::span<const i64> dims() const noexcept { return dims_; }

  /// Rows as views know them: of a sparse tensor only those that hold an entry may have a number.
  const formats::Numbering &numbering() const noexcept { return numbering_; }
  std::span<const i64> stored_dims() const noexcept { return numbering_.dims(); }

  ValueType type() const noexcept { return type_; }
  bool sparse() const noexcept { return !dense_; }
  const Facts &facts() const noexcept { return facts_; }
  /// Where processes share a tensor, which part of it this one holds; else null. Facts and dims are those of the whole;
  /// what is stored, and counts of it, are of this part.
  const Distribution *distribution() const noexcept { return distribution_.get(); }
  Processes *processes() const noexcept { return distribution_ ? &distribution_->processes() : nullptr; }
  std::shared_ptr<const Distribution> shared_distribution() const noexcept { return distribution_; }
  /// Entries that are stored here.
  i64 stored_entries() const noexcept { return facts_.nnz - elsewhere_; }
  const std::string &source() const noexcept { return source_; }
  plan::Format format() const noexcept { return storage_.format; }
  /// Why it is stored as it is.
  const plan::Reasons &reasons() const noexcept { return storage_.why; }
  i64 bytes() const;
  double build_seconds() const noexcept { return build_seconds_; }
  Target target() const noexcept { return target_; }
  std::string describe() const;

  // Views of what is stored, in host memory, to which what a GPU has built comes as far as it is needed; with a
  // backend, for its kernels: of the same, or of what a GPU has of it, which was built there, or is copied there when
  // it is first asked for, and kept as long as the tensor, as far as there is room.

  /// What MTTKRP in `mode`, which is alone in its group, works on, in stored_dims.
  kernels::TensorView view(int mode, OnHost needed = OnHost::all) const;
  Placement view(int mode, kernels::Backend &backend) const;

  /// All entries, in stored_dims, in whatever order suits.
  Placement whole_view(kernels::Backend &backend) const;

  /// Says how many bytes of keys, indices and values are resident on a GPU.
  i64 resident_bytes_on(const kernels::Backend &backend) const { return resident_.bytes(backend.memory()); }

  /// Modes that share partial products, and what MTTKRP of a group's merged modes works on.
  const plan::Groups &groups() const noexcept { return *groups_; }
  kernels::TensorView merged_view(int group, OnHost needed = OnHost::all) const;
  Placement merged_view(int group, kernels::Backend &backend) const;
  /// The cells of a group, an entry of value 1 each.
  Placement cells_view(int group, kernels::Backend &backend) const;

  // Workers' parts (tensor/part.hpp) are made of forms: a sorted copy by the number of its group; what there is one of
  // whatever the number.

  const StoredForm &form(int number) const;
  /// The one of whole_view.
  int whole_form() const;
  /// How the copy of a mode was partitioned where its parts were made in the memories of so many workers; else null.
  const Sharded *sharded(int mode, int workers) const;
  /// Parts that the numbers of `key` tell apart, of forms and of groups' cells; `all`: of this worker. Of a form that
  /// workers gather, what this one has `held`.
  Placement place(const FormKey &key, const StoredForm &some, const FormBytes &all, kernels::Backend &backend,
                  const Range *held = nullptr) const {
    return resident_.on(backend, key, some, all, held);
  }

  /// Whether view(mode) is divided between workers by output rows (else by stored entries).
  bool partitioned_by_rows() const noexcept { return plan::stands_by_rows(format()); }

  /// What it was made with: how view(mode) is divided then, and what it and cells_view are worked on with.
  const plan::TensorSettings &settings() const noexcept { return settings_; }
  plan::Precision precision() const noexcept { return settings_.precision(type_); }

  /// Coordinates in dims and canonical order (sparse only); decoded when they are not what is stored, if there is room.
  /// `holder` keeps them.
  kernels::CooView coordinates(std::optional<formats::Coo> &holder, int threads) const;
  /// The same in the numbers of rows.
  kernels::CooView stored_coordinates(std::optional<formats::Coo> &holder, int threads) const;

  /// The elements of a dense tensor, else null. What is borrowed may be in a device's memory: elements().
  const formats::Dense *dense() const noexcept { return dense_ ? &*dense_ : nullptr; }
  bool borrowed() const noexcept { return dense_ && dense_->lent != nullptr; }
  /// The memory() that a borrowed array is in; null: the host's.
  const void *borrowed_in() const noexcept { return borrowed() ? forms_.front().lent_in() : nullptr; }
  /// The elements of a dense tensor in host memory: where they lie, or a copy, which the holder keeps.
  DenseArrayView elements(std::optional<formats::Dense> &holder) const;
  /// The mode of a dense tensor that is slowest in memory.
  int slab_mode() const { return kernels::slowest_mode(dense_->view()); }
  /// Throws Status::unsupported for a backend that cannot reach what is borrowed in a device's memory.
  void require_reach(const kernels::Backend &backend) const;

  /// Stored entries in each slice of a mode.
  void slice_counts(int mode, i64 *counts) const;

private:
  Tensor(std::span<const i64> dims, ValueType type, const plan::TensorSettings &settings, std::string source,
         Target target)
      : dims_(dims.begin(), dims.end()), numbering_(dims), type_(type), source_(std::move(source)), settings_(settings),
        target_(target) {}
  /// `checked`: the entries are known to be within dims and finite.
  static std::shared_ptr<Tensor> build_sparse(const formats::Given &given, bool checked,
                                              const plan::TensorSettings &settings, int threads, std::string source,
                                              Target target, const Builders &builders);
  static std::shared_ptr<Tensor> begin_dense(std::span<const i64> dims, ValueType type,
                                             const plan::TensorSettings &settings, int threads, std::string source,
                                             Target target);
  /// What is stored becomes this process's part.
  void share(std::shared_ptr<const Distribution> distribution);
  void store(const EntriesView &entries, const plan::StorageRequest &request);
  /// Copies by each mode, or BLCO, in the builders' memories.
  void store_built(const Begun &begun, const Builders &builders, const formats::Given &given,
                   const plan::StorageRequest &request);
  /// The form that was built last stays where it was built, as far as it may.
  void adopt(const Begun &begun, const Builders &builders, const formats::Given &given, bool last);
  /// The view of a dense tensor, with the largest magnitude that its facts know.
  kernels::DenseView dense_view() const;
  /// What is on the host as forms.
  void list_forms();
  void sort(formats::Packed &packed, const plan::StorageRequest &request);
  int form_of(int mode) const;
  Placement placed(int number, kernels::Backend &backend) const;
  void stored_counts(int mode, i64 *counts) const;

  std::vector<i64> dims_;
  formats::Numbering numbering_;
  ValueType type_ = ValueType::f64;
  Facts facts_;
  i64 elsewhere_ = 0; // entries that other processes hold
  std::shared_ptr<const Distribution> distribution_;
  std::string source_;
  plan::TensorSettings settings_;
  Target target_ = Target::cpu;
  plan::Storage storage_;
  double build_seconds_ = 0; // checking what was given and storing it
  std::optional<formats::Coo> coo_;
  std::optional<formats::Blco> blco_;
  std::vector<formats::Sorted> sorted_; // one a group of modes
  std::optional<formats::Dense> dense_;
  std::shared_ptr<const kernels::DeviceArrays> lent_;   // a borrowed array in a device's memory
  std::vector<StoredForm> forms_;                       // of what there is of these, and of what was built on a GPU
  std::vector<std::shared_ptr<const Sharded>> sharded_; // [forms] of which several GPUs have made parts; else none
  std::unique_ptr<const plan::Groups> groups_;
  mutable Resident resident_;
};

} // namespace td::tensor
