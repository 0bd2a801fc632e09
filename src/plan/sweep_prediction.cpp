#include "plan/sweep_prediction.hpp"

#include <algorithm>

#include <fmt/ranges.h>

#include "kernels/memory_order.hpp"
#include "plan/partition.hpp"

namespace td::plan {

namespace {

/// Asks a backend about one worker's part of a sweep.
class Asker {
public:
  Asker(const Layout &layout, const SweepWork &work) : layout_(layout), work_(work) {
    if (layout.format == Format::dense && work.backend.has_own_memory() &&
        takes_slabs(layout.slabs(), work.workers, work.sharding, work.deterministic))
      slabs_ = part_of({0, layout.slabs()}, 0, work.workers).size();
  }

  SweepPrediction ask() {
    SweepPrediction sweep;
    const std::vector<kernels::Prediction> by_tree = through_tree();
    std::vector<bool> computed(layout_.partition.size(), false);
    for (std::size_t m = 0; m < layout_.dims.size(); ++m) {
      const std::size_t g = layout_.group_of(static_cast<int>(m));
      kernels::Prediction mode;
      if (!by_tree.empty() && !by_tree[m].kernel.empty()) {
        mode = by_tree[m];
      } else if (layout_.sparse && layout_.partition[g].shared) {
        through_partial(mode, static_cast<int>(m), g, computed[g]);
      } else {
        const bool gathers = work_.precision.f32_rows && work_.backend.gathers_f32(view(g));
        take(mode, alone(static_cast<int>(m), g, gathers), "");
        sweep.gathers |= gathers;
      }
      computed[g] = true;
      const kernels::Prediction update =
          work_.backend.predict_update(own_rows(m), work_.rank, layout_.type, work_.rates);
      sweep.seconds_mttkrp += mode.seconds;
      sweep.seconds_update += update.seconds;
      sweep.bytes = std::max({sweep.bytes, mode.bytes, update.bytes});
      sweep.modes.push_back(std::move(mode));
    }
    if (sweep.gathers && work_.rates.read > 0) // each factor is copied once: read twice, written once
      for (const i64 rows : layout_.stored_dims)
        sweep.seconds_update += 20 * static_cast<double>(rows) * static_cast<double>(work_.rank) / work_.rates.read;
    sweep.dense = std::move(dense_);
    return sweep;
  }

private:
  ConstMatrix matrix(i64 rows) const { return unread_matrix(rows, work_.rank, layout_.type); }
  std::vector<ConstMatrix> factors_of(std::span<const i64> dims) const {
    return unread_factors(dims, work_.rank, layout_.type);
  }

  i64 own_rows(std::size_t mode) const {
    const i64 rows = layout_.stored_dims[mode];
    if (!layout_.shared.lent.empty())
      return std::max<i64>(1, rows - layout_.shared.lent[mode]);
    return (rows - 1) / work_.workers + 1;
  }

  bool all_rows() const {
    return work_.backend.has_own_memory() && computes_all_rows(layout_.format, work_.deterministic);
  }

  kernels::MttkrpArgs args_for(int mode, std::span<const ConstMatrix> factors, i64 rows, i64 entries,
                               bool shares_rows) const {
    ConstMatrix out = matrix(rows);
    if (work_.precision.f64_sums)
      out.type = ValueType::f64;
    kernels::MttkrpArgs args;
    args.mode = mode;
    args.factors = factors;
    args.out = {nullptr, out.type, out.rows, out.cols, out.ld};
    args.rows = shares_rows && !all_rows() ? part_of({0, rows}, 0, work_.workers) : Range{0, rows};
    args.entries = shares_rows ? Range{0, entries} : part_of({0, entries}, 0, work_.workers);
    args.conflicts = work_.deterministic ? kernels::Conflicts::owner : work_.conflicts;
    args.dense = work_.dense;
    return args;
  }

  kernels::Prediction predict(const kernels::TensorView &x, int mode, std::span<const ConstMatrix> factors, i64 rows,
                              i64 entries, bool shares_rows) const {
    return work_.backend.predict_mttkrp(x, args_for(mode, factors, rows, entries, shares_rows), work_.rates);
  }

  kernels::TensorView view(std::size_t group) const {
    if (layout_.format == Format::sorted)
      return formats::view_of(layout_.copies[group], layout_.nnz, layout_.type);
    if (layout_.format == Format::blco) {
      kernels::BlcoView x;
      x.dims = layout_.stored_dims;
      x.nnz = layout_.nnz;
      x.type = layout_.type;
      x.blocks = layout_.blocks;
      return x;
    }
    if (layout_.format == Format::coo)
      return kernels::CooView{layout_.stored_dims, layout_.nnz, layout_.type, nullptr, nullptr};
    return dense_view();
  }

  kernels::DenseView dense_view() const { return {layout_.stored_dims, layout_.type, nullptr, layout_.strides, 1}; }

  kernels::Prediction alone(int mode, std::size_t group, bool gathers) const {
    if (slabs_ > 0) {
      const kernels::DenseView x = dense_view();
      return of_slabs(x, static_cast<std::size_t>(kernels::slowest_mode(x)), slabs_, mode);
    }
    std::vector<ConstMatrix> factors;
    for (const i64 dim : layout_.stored_dims) {
      factors.push_back(matrix(dim));
      if (gathers) {
        factors.back().type = ValueType::f32;
        factors.back().ld = kernels::gathered_columns(std::min(work_.rank, i64{1} << 62));
      }
    }
    const int at = layout_.format == Format::sorted ? layout_.copies[group].mode : mode;
    return predict(view(group), at, factors, layout_.stored_dims[static_cast<std::size_t>(mode)], layout_.nnz,
                   stands_by_rows(layout_.format) || work_.deterministic || work_.sharding == ShardingRule::rows);
  }

  /// What is said of the worker's slabs, which are a tensor by themselves: their slices of this mode.
  kernels::Prediction of_slabs(kernels::DenseView x, std::size_t slab_mode, i64 slices, int mode) const {
    std::vector<i64> dims(x.dims.begin(), x.dims.end());
    dims[slab_mode] = slices;
    x.dims = dims;
    return predict(x, mode, factors_of(dims), dims[static_cast<std::size_t>(mode)], kernels::entries_of(x), false);
  }

  void through_partial(kernels::Prediction &mode, int m, std::size_t g, bool computed) {
    const GroupLayout &group = layout_.partition[g];
    if (!computed) { // the first mode of the group pays
      std::vector<i64> dims;
      std::vector<ConstMatrix> outside;
      int merged_mode = 0;
      for (int k = 0; k < static_cast<int>(layout_.dims.size()); ++k) {
        const bool inside = std::count(group.modes.begin(), group.modes.end(), k) > 0;
        if (inside && k != group.modes.front())
          continue;
        if (inside)
          merged_mode = static_cast<int>(dims.size());
        dims.push_back(inside ? group.cells : layout_.stored_dims[static_cast<std::size_t>(k)]);
        outside.push_back(matrix(dims.back()));
      }
      take(mode, predict(view(g), merged_mode, outside, group.cells, layout_.nnz, true),
           fmt::format("partial product of modes {}: ", fmt::join(group.modes, ",")));
      mode.kernel += "; then ";
    }
    std::vector<i64> dims;
    std::vector<ConstMatrix> inside;
    for (const int k : group.modes) {
      dims.push_back(layout_.stored_dims[static_cast<std::size_t>(k)]);
      inside.push_back(matrix(dims.back()));
    }
    const auto place = static_cast<int>(std::find(group.modes.begin(), group.modes.end(), m) - group.modes.begin());
    const i64 rows = dims[static_cast<std::size_t>(place)];
    dims.push_back(group.cells);
    inside.push_back(matrix(group.cells));
    const kernels::CooView cells{dims, group.cells, layout_.type, nullptr, nullptr};
    take(mode, predict(cells, place, inside, rows, group.cells, work_.deterministic),
         fmt::format("over {} cells: ", group.cells));
  }

  /// A dense tensor's modes take this on average over the tree's sweeps; modes that are not updated take nothing.
  std::vector<kernels::Prediction> through_tree() {
    if (layout_.format != Format::dense)
      return {};
    const SweepTree &tree = *work_.tree;
    std::vector<kernels::Prediction> modes(layout_.dims.size());
    const double sweeps = static_cast<double>(tree.period()) / static_cast<double>(tree.updated().size());
    for (i64 step = 0; step < tree.period(); ++step) {
      const int m = tree.updated()[static_cast<std::size_t>(step) % tree.updated().size()];
      kernels::Prediction update;
      if (const PartialProduct *const p = tree.at(step); p == nullptr) {
        take(update, alone(m, 0, false), "");
      } else {
        if (tree.reads(step))
          take(update, root(*p), fmt::format("partial product of modes {}: ", fmt::join(p->modes, ",")));
        const PartialProduct *const left = tree.left_at(step);
        // The one before was computed from the product itself.
        if (left != nullptr && tree.left_at(step + tree.period() - 1) == nullptr) {
          const int before = tree.updated()[static_cast<std::size_t>(step + tree.period() - 1) % tree.updated().size()];
          take(update, sum_over(*p, before), fmt::format("summed over mode {}: ", before));
        }
        const PartialProduct &from = left != nullptr ? *left : *p;
        take(update, over_cells(from, m),
             fmt::format("{}over {} cells: ", update.kernel.empty() ? "" : "; then ", from.cells));
      }
      kernels::Prediction &mode = modes[static_cast<std::size_t>(m)];
      mode.seconds += update.seconds / sweeps;
      mode.bytes = std::max(mode.bytes, update.bytes);
      if (mode.kernel.find(update.kernel) == std::string::npos)
        mode.kernel += (mode.kernel.empty() ? "" : "; or ") + update.kernel;
      if (mode.conflicts.empty())
        mode.conflicts = update.conflicts;
    }
    return modes;
  }

  kernels::Prediction root(const PartialProduct &p) const {
    std::vector<i64> dims = p.merged_dims;
    const i64 slices =
        slabs_ * (dims.back() / layout_.dims.back()); // of the last merged mode, where the worker has some
    if (p.wraps) {
      if (slabs_ > 0)
        dims.back() = slices;
      kernels::Prediction mine =
          work_.backend.predict_mttkrp_slabs({dims, layout_.type, nullptr}, work_.rank, work_.rates);
      mine.seconds /= slabs_ > 0 ? 1 : work_.workers;
      return mine;
    }
    const kernels::DenseView x{dims, layout_.type, nullptr, {}, 1};
    if (slabs_ > 0)
      return of_slabs(x, dims.size() - 1, slices, p.merged_mode);
    return predict(x, p.merged_mode, factors_of(dims), p.cells, layout_.nnz, true);
  }

  kernels::Prediction over_cells(const PartialProduct &p, int mode) const {
    const std::vector<ConstMatrix> factors = factors_of(p.dims);
    const kernels::MttkrpArgs args =
        args_for(static_cast<int>(p.place(mode)), factors, layout_.stored_dims[static_cast<std::size_t>(mode)], p.cells,
                 work_.deterministic);
    return work_.backend.predict_mttkrp_cells({p.dims, matrix(p.cells)}, args, work_.rates);
  }

  kernels::Prediction sum_over(const PartialProduct &p, int mode) const {
    const SumOverMode sum(p, mode);
    const std::vector<ConstMatrix> factors = factors_of(sum.dims);
    const i64 rows = sum.dims[static_cast<std::size_t>(sum.result)];
    kernels::MttkrpArgs args = args_for(sum.result, factors, rows, p.cells, work_.deterministic);
    args.rows = {0, rows};
    return work_.backend.predict_mttkrp_cells({sum.dims, matrix(p.cells)}, args, work_.rates);
  }

  void take(kernels::Prediction &mode, kernels::Prediction predicted, const std::string &prefix) {
    if (predicted.dense != kernels::DenseKernel::automatic &&
        std::find(dense_.begin(), dense_.end(), predicted.dense) == dense_.end())
      dense_.push_back(predicted.dense);
    mode.kernel += prefix + predicted.kernel;
    mode.conflicts += (mode.conflicts.empty() || predicted.conflicts.empty() ? "" : "; then ") + predicted.conflicts;
    mode.seconds += predicted.seconds;
    mode.bytes = std::max(mode.bytes, predicted.bytes);
  }

  const Layout &layout_;
  const SweepWork &work_;
  i64 slabs_ = 0; // of a dense tensor, which the worker has for itself; none where it works on all of it
  std::vector<kernels::DenseKernel> dense_;
};

} // namespace

SweepPrediction predict_sweep(const Layout &layout, const SweepWork &work) { return Asker(layout, work).ask(); }

} // namespace td::plan
