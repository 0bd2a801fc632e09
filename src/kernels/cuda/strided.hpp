// Dense tensors whose elements lie at strides, with gaps between them: the fast kernels take elements that follow each
// other, so such a tensor passes through a buffer, some slices of it at a time, gathered there.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/memory_order.hpp"

namespace td::kernels::cuda {

/// Bytes of a buffer, where a fiber of the fastest mode is no longer: beside these the starts of kernels do not count,
/// and they are little of a GPU's memory.
inline constexpr i64 subtensor_bytes = i64{128} << 20;

/// Some neighbouring elements of a view, a tensor by themselves: all of the first modes, some of the next, and one
/// index of those after it.
struct Subtensor {
  std::vector<i64> dims;
  std::vector<i64> begin; // where it begins in each mode
  i64 first = 0;          // element, in the order of memory
  i64 place = 0;          // where that lies
};

/// The subtensors of a view whose modes are in the order of memory.
class Subtensors {
public:
  explicit Subtensors(const DenseView &x, i64 bytes = subtensor_bytes) : x_(x), strides_(strides_of(x)) {
    const i64 most = bytes / size_of(x.type);
    while (cut_ + 1 < x.dims.size() && inner_ <= most / x.dims[cut_]) // the last mode is always cut
      inner_ *= x.dims[cut_++];
    slices_ = std::min(std::max<i64>(most / inner_, 1), x.dims[cut_]);
    if (cut_ == 0) // a fiber is not cut
      slices_ = x.dims[0];
  }

  /// Elements of the largest subtensor.
  i64 most() const noexcept { return inner_ * slices_; }
  i64 count() const noexcept {
    i64 outer = 1;
    for (std::size_t m = cut_ + 1; m < x_.dims.size(); ++m)
      outer *= x_.dims[m];
    return outer * ((x_.dims[cut_] + slices_ - 1) / slices_);
  }
  std::vector<i64> largest_dims() const {
    std::vector<i64> dims(x_.dims.size(), 1);
    std::copy_n(x_.dims.begin(), cut_, dims.begin());
    dims[cut_] = slices_;
    return dims;
  }

  /// Calls work(subtensor) for each in the order of memory.
  template <class Work> void each(Work &&work) const {
    Subtensor subtensor{largest_dims(), std::vector<i64>(x_.dims.size(), 0), 0, 0};
    for (;;) {
      subtensor.dims[cut_] = std::min(slices_, x_.dims[cut_] - subtensor.begin[cut_]);
      subtensor.place = 0;
      for (std::size_t m = cut_; m < x_.dims.size(); ++m)
        subtensor.place += subtensor.begin[m] * strides_[m];
      work(std::as_const(subtensor));
      subtensor.first += inner_ * subtensor.dims[cut_];
      std::size_t m = cut_;
      subtensor.begin[m] += subtensor.dims[m];
      while (subtensor.begin[m] == x_.dims[m]) {
        subtensor.begin[m] = 0;
        if (++m == x_.dims.size())
          return;
        ++subtensor.begin[m];
      }
    }
  }

private:
  const DenseView &x_;
  std::array<i64, max_order> strides_;
  std::size_t cut_ = 0; // the mode of which a subtensor has some slices
  i64 inner_ = 1;       // elements of such a slice
  i64 slices_ = 1;
};

/// What MTTKRP of a view becomes for a subtensor of it; there is nothing to do where it has no rows.
class SubtensorStep {
public:
  SubtensorStep(const MttkrpArgs &args, const Subtensor &subtensor) : args_(args) {
    const auto mode = static_cast<std::size_t>(args.mode);
    for (std::size_t m = 0; m < args.factors.size(); ++m) {
      const Range some{subtensor.begin[m], subtensor.begin[m] + subtensor.dims[m]};
      factors_.push_back(m == mode ? args.factors[m] : args.factors[m].slice(some.begin, some.end));
      args_.add = args_.add || (m != mode && some.begin > 0);
    }
    args_.factors = factors_;
    const Range there{subtensor.begin[mode], subtensor.begin[mode] + subtensor.dims[mode]};
    args_.out = args.out.slice(there.begin, there.end);
    const i64 begin = std::max(args.rows.begin, there.begin);
    args_.rows = {begin - there.begin, std::max(begin, std::min(args.rows.end, there.end)) - there.begin};
    args_.entries = {0, 1};
    for (const i64 d : subtensor.dims)
      args_.entries.end *= d;
  }
  SubtensorStep(const SubtensorStep &) = delete;
  SubtensorStep &operator=(const SubtensorStep &) = delete;
  const MttkrpArgs &args() const noexcept { return args_; }

private:
  std::vector<ConstMatrix> factors_;
  MttkrpArgs args_;
};

} // namespace td::kernels::cuda
