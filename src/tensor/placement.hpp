// A placement is a stored form as a backend's kernels reach it: some of it is resident in their memory, the rest is
// streamed.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "tensor/stored_form.hpp"
#include "tensor/stream_buffers.hpp"

namespace td::tensor {

/// A form for one backend's kernels, wherever its numbers are. The tensor must outlive it.
class Placement {
public:
  /// The form is in host memory, and so are the kernels that work on it.
  explicit Placement(const StoredForm &stored) : stored_(stored), host_(stored.view(OnHost::all)) {}
  /// The form is lent in the memory of a device, whose kernels work on it where it lies.
  Placement(const StoredForm &stored, const kernels::TensorView &lent) : stored_(stored), host_(lent) {}
  Placement(const StoredForm &stored, std::shared_ptr<const detail::ResidentForm> kept)
      : stored_(stored), host_(stored.view(kept->whole ? OnHost::sizes : OnHost::all)), kept_(std::move(kept)) {}

  i64 entries() const { return kernels::entries_of(host_); }
  /// The entries of the form that this may be a part of, and the one with which a range of them begins here.
  i64 all_entries() const { return kernels::entries_of(stored_.whole().view(OnHost::sizes)); }
  i64 first_entry() const { return stored_.selection() == nullptr ? 0 : stored_.selection()->entries.first(); }
  bool streamed() const noexcept { return kept_ != nullptr && !kept_->complete(); }

  /// This is the backend's mttkrp, over what is resident, what is streamed and, with a Gather, what others hold.
  void mttkrp(kernels::Backend &backend, const kernels::MttkrpArgs &args) const;

  /// The backend's mttkrp_slabs, for some slabs of a dense tensor; rows of other slabs are not written. In order it
  /// works on the same ranges of slabs wherever they are.
  void mttkrp_slabs(kernels::Backend &backend, std::span<const ConstMatrix> factors, Matrix out, Range slabs,
                    bool in_order) const;

  /// The backend's unfolding_normal, over ranges of about `most` entries one after the other, the same ones wherever
  /// the entries are. A dense tensor's last mode takes all of them at once.
  void unfolding_normal(kernels::Backend &backend, int mode, ConstMatrix omega, Matrix y, i64 most) const;

  /// Calls work(view, k) for each of some ranges of entries, in order; those of ranges[k] are in the view then. What is
  /// not there is copied meanwhile.
  using Work = std::function<void(const kernels::TensorView &, std::size_t)>;
  void each(kernels::Backend &backend, const std::vector<Range> &ranges, const Work &work) const;

  /// All of it at once, for `work`. Throws Status::device_memory, with numbers, if that is not there.
  FormView whole(const char *work) const;

  /// The elements of a dense tensor get other dims.
  void set_dense_dims(std::span<const i64> dims);
  /// Makes mttkrp and mttkrp_slabs gather spans from all workers; they may be called as long as `gather` lives.
  void set_gather(const Gather &gather) { gather_ = &gather; }

private:
  using Needs = std::function<bool(int worker, std::size_t range)>;
  void mttkrp_gathered(kernels::Backend &backend, const kernels::MttkrpArgs &args) const;
  void each_gathered(kernels::Backend &backend, const std::vector<Range> &ranges, const Needs &needs,
                     const Work &work) const;
  FormView kept_view(Range entries) const;
  std::vector<Range> ordered_spans() const;

  StoredForm stored_;
  kernels::TensorView host_;                         // of what is whole on a device, perhaps with nothing but sizes
  std::shared_ptr<const detail::ResidentForm> kept_; // null: all of it is where the kernels work
  const Gather *gather_ = nullptr;
};

} // namespace td::tensor
