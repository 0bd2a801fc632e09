#include "plan/sweep_tree.hpp"

#include <algorithm>
#include <limits>

#include <fmt/ranges.h>

#include "core/memory.hpp"

namespace td::plan {

/// Updates that go through one product, from the one at a place in their order on.
struct SweepTree::Run {
  int place = 0;
  int next = 0; // place after it
  i64 updates = 0;
  double seconds = 0;
  int product = 0;
  bool sums = false; // over the first mode that it serves
};

/// The cycle of runs with the least seconds an update, as Newton's method on the ratio finds it: as long as some
/// cycle is below the best ratio so far, it is the better one.
std::vector<SweepTree::Run> SweepTree::cheapest_cycle(const std::vector<Run> &all, int places) {
  double ratio = std::numeric_limits<double>::max();
  for (const Run &s : all)
    ratio = std::min(ratio, 2 * s.seconds + 1);
  std::vector<Run> best;
  for (;;) {
    std::vector<double> least(static_cast<std::size_t>(places), 0.0);
    std::vector<const Run *> by(static_cast<std::size_t>(places), nullptr);
    int changed = -1;
    for (int round = 0; round <= places; ++round) {
      changed = -1;
      for (const Run &s : all) {
        const double to = least[static_cast<std::size_t>(s.place)] + s.seconds - ratio * static_cast<double>(s.updates);
        double &now = least[static_cast<std::size_t>(s.next)];
        if (to < now - 1e-9 * ratio) {
          now = to;
          by[static_cast<std::size_t>(s.next)] = &s;
          changed = s.next;
        }
      }
    }
    if (changed < 0)
      return best;
    int on_cycle = changed;
    for (int k = 0; k < places; ++k)
      on_cycle = by[static_cast<std::size_t>(on_cycle)]->place;
    best.clear();
    double seconds = 0, updates = 0;
    int at = on_cycle;
    do {
      const Run &s = *by[static_cast<std::size_t>(at)];
      best.insert(best.begin(), s);
      seconds += s.seconds;
      updates += static_cast<double>(s.updates);
      at = s.place;
    } while (at != on_cycle);
    const double found = seconds / updates;
    if (!(found < ratio)) // rounding, or no number at all
      return best;
    ratio = found;
  }
}

Matrix unread_matrix(i64 rows, i64 rank, ValueType type) { return {nullptr, type, rows, rank, rank}; }

std::vector<ConstMatrix> unread_factors(std::span<const i64> dims, i64 rank, ValueType type) {
  std::vector<ConstMatrix> factors;
  factors.reserve(dims.size());
  for (const i64 d : dims)
    factors.push_back(unread_matrix(d, rank, type));
  return factors;
}

double SweepTree::bytes_of(i64 cells) const {
  return static_cast<double>(cells) * static_cast<double>(request_.rank) * static_cast<double>(size_of(request_.type));
}

PartialProduct::PartialProduct(std::span<const i64> dims, int first, int count) {
  const auto order = static_cast<int>(dims.size());
  wraps = first + count > order;
  cells = 1;
  for (int m = 0; m < order; ++m) {
    const bool kept = (m - first + order) % order < count;
    if (!kept) {
      merged_dims.push_back(dims[static_cast<std::size_t>(m)]);
      mode_at.push_back(m);
      continue;
    }
    if (m == 0 || mode_at.back() >= 0) { // the first of those that are neighbours in memory
      merged_dims.push_back(1);
      mode_at.push_back(-1);
      merged_mode = wraps ? 0 : static_cast<int>(mode_at.size()) - 1;
    }
    merged_dims.back() *= dims[static_cast<std::size_t>(m)];
    modes.push_back(m);
    this->dims.push_back(dims[static_cast<std::size_t>(m)]);
    cells *= dims[static_cast<std::size_t>(m)];
  }
}

PartialProduct PartialProduct::without(int mode) const {
  PartialProduct left;
  for (std::size_t k = 0; k < modes.size(); ++k)
    if (modes[k] != mode) {
      left.modes.push_back(modes[k]);
      left.dims.push_back(dims[k]);
    }
  left.cells = SumOverMode(*this, mode).dims[static_cast<std::size_t>(SumOverMode(*this, mode).result)];
  return left;
}

SumOverMode::SumOverMode(const PartialProduct &p, int mode) : result(p.place(mode) == 0 ? 1 : 0) {
  const i64 dim = p.dims[p.place(mode)];
  dims[static_cast<std::size_t>(1 - result)] = dim;
  dims[static_cast<std::size_t>(result)] = p.cells / std::max<i64>(dim, 1);
}

std::size_t PartialProduct::place(int mode) const {
  return static_cast<std::size_t>(std::find(modes.begin(), modes.end(), mode) - modes.begin());
}

Range PartialProduct::cells_of(int worker, int workers) const {
  if (!wraps)
    return part_of({0, cells}, worker, workers);
  const Range slabs = part_of({0, merged_dims.back()}, worker, workers);
  return {slabs.begin * merged_dims.front(), slabs.end * merged_dims.front()};
}

std::optional<PartialProduct> product_by_itself(std::span<const i64> dims, const GroupsSetting &setting, int mode) {
  const auto order = static_cast<int>(dims.size());
  if (setting.ask == Ask::multi_sweep && order > 2)
    return PartialProduct(dims, mode, order - 1);
  if (const auto named = named_groups(setting, order))
    for (const Group &group : *named)
      if (group.size() > 1 && std::find(group.begin(), group.end(), mode) != group.end())
        return PartialProduct(dims, group.front(), static_cast<int>(group.size()));
  return std::nullopt;
}

SweepTree::SweepTree(const Request &request) : request_(request), dims_(request.dims.begin(), request.dims.end()) {
  request_.dims = dims_;
  switch (dims_.size() > 2 ? request.groups.ask : Ask::none) {
  case Ask::none:
    break;
  case Ask::named:
    add_named();
    break;
  case Ask::multi_sweep:
    add_multi_sweep();
    break;
  case Ask::automatic:
    add_cheapest();
  }
  if (steps_.empty())
    steps_.assign(request.updated.size(), -1);
  left_steps_.resize(steps_.size(), -1);
  request_.backend = nullptr;
  find_reads();
}

int SweepTree::product(int first, int count) {
  if (count == 1)
    return -1;
  const PartialProduct p(dims_, first, count);
  const auto found =
      std::find_if(products_.begin(), products_.end(), [&](const PartialProduct &q) { return q.modes == p.modes; });
  if (found == products_.end())
    products_.push_back(p);
  else
    return static_cast<int>(found - products_.begin());
  return static_cast<int>(products_.size()) - 1;
}

void SweepTree::add_named() {
  for (const int mode : request_.updated) {
    const auto p = product_by_itself(dims_, request_.groups, mode);
    steps_.push_back(p ? product(p->modes.front(), static_cast<int>(p->modes.size())) : -1);
  }
}

/// Seconds of MTTKRP from a product, by mode, and from what is left of it.
class SweepTree::Serving {
public:
  /// Together with what is left of it the product may take `most_bytes`.
  Serving(const SweepTree &tree, const PartialProduct &p, const kernels::Rates &rates, double most_bytes)
      : tree_(tree), whole_(seconds_by_mode(tree, p, rates)) {
    if (p.modes.size() < 3)
      return;
    for (const int dropped : {p.modes.front(), p.modes.back()}) {
      const PartialProduct left = p.without(dropped);
      if (tree.bytes_of(p.cells) + tree.bytes_of(left.cells) <= most_bytes)
        left_.push_back({dropped, tree.seconds_to_sum(p, dropped, rates), seconds_by_mode(tree, left, rates)});
    }
  }

  /// Adds the updates that a run of them serves. One that serves for ever is summed over no mode: it would be again in
  /// each sweep.
  void add(Run &s, bool for_ever) const {
    const auto seconds = [&](const std::vector<double> &by_mode, i64 begin) {
      double sum = 0;
      for (i64 k = begin; k < s.updates; ++k)
        sum += by_mode[static_cast<std::size_t>(tree_.mode_of(s.place + k))];
      return sum;
    };
    double least = seconds(whole_, 0);
    const int first = tree_.mode_of(s.place);
    for (const Left &left : left_) {
      const double summed = whole_[static_cast<std::size_t>(first)] + left.summing + seconds(left.by_mode, 1);
      if (left.dropped == first && s.updates > 1 && !for_ever && summed < least) {
        least = summed;
        s.sums = true;
      }
    }
    s.seconds += least;
  }

private:
  struct Left {
    int dropped;
    double summing;
    std::vector<double> by_mode;
  };

  static std::vector<double> seconds_by_mode(const SweepTree &tree, const PartialProduct &p,
                                             const kernels::Rates &rates) {
    std::vector<double> seconds(tree.dims_.size());
    const std::vector<ConstMatrix> factors = unread_factors(p.dims, tree.request_.rank, tree.request_.type);
    for (std::size_t place = 0; place < p.modes.size(); ++place)
      seconds[static_cast<std::size_t>(p.modes[place])] =
          tree.seconds_of({p.dims, unread_matrix(p.cells, tree.request_.rank, tree.request_.type)}, factors,
                          static_cast<int>(place), rates);
    return seconds;
  }

  const SweepTree &tree_;
  std::vector<double> whole_;
  std::vector<Left> left_;
};

// Each product drops the mode that was updated last and so serves all others.
void SweepTree::add_multi_sweep() {
  const auto order = static_cast<int>(dims_.size());
  const auto updates = static_cast<i64>(request_.updated.size());
  do {
    const auto step = static_cast<i64>(steps_.size());
    const int dropped = updates > 1 ? mode_of(step + updates - 1) : (mode_of(0) + order - 1) % order;
    const int number = product((dropped + 1) % order, order - 1);
    Run s;
    s.place = static_cast<int>(step % updates);
    s.updates = serves(products_[static_cast<std::size_t>(number)], step);
    const PartialProduct &p = products_[static_cast<std::size_t>(number)];
    Serving(*this, p, request_.backend->nominal_rates(), std::numeric_limits<double>::max())
        .add(s, s.updates == updates);
    take(s, number);
  } while (std::ssize(steps_) % updates != 0);
}

void SweepTree::take(const Run &s, int number) {
  steps_.insert(steps_.end(), static_cast<std::size_t>(s.updates), number);
  left_steps_.push_back(-1); // the first mode is updated before anything is summed over it
  if (s.sums)
    left_.push_back(products_[static_cast<std::size_t>(number)].without(mode_of(s.place)));
  left_steps_.resize(steps_.size(), s.sums ? static_cast<int>(left_.size()) - 1 : -1);
}

/// Updates from `step` on that go through a product before a mode is updated that it does not keep; all of a sweep's
/// where there is none.
i64 SweepTree::serves(const PartialProduct &p, i64 step) const {
  i64 served = 0;
  while (served < std::ssize(request_.updated) && p.keeps(mode_of(step + served)))
    ++served;
  return served;
}

void SweepTree::add_cheapest() {
  const auto order = static_cast<int>(dims_.size());
  const auto updates = static_cast<int>(request_.updated.size());
  const kernels::Rates rates = request_.backend->nominal_rates();
  std::vector<Run> runs;
  for (int count = 1; count < order; ++count)
    for (int first = 0; first < order; ++first) {
      const PartialProduct p(dims_, first, count);
      if (count > 1 && bytes_of(p.cells) > request_.most_bytes)
        continue;
      const double root = seconds_of(p, rates);
      std::optional<Serving> serving;
      if (count > 1)
        serving.emplace(*this, p, rates, request_.most_bytes);
      for (int place = 0; place < updates; ++place) {
        Run s{place, 0, count == 1 ? i64{p.keeps(mode_of(place))} : serves(p, place), 0, 0};
        if (s.updates == 0)
          continue;
        const bool for_ever = count > 1 && s.updates == updates; // only fixed modes are dropped
        s.next = static_cast<int>((place + s.updates) % updates);
        s.seconds = for_ever ? 0 : root;
        if (serving)
          serving->add(s, for_ever);
        s.product = first * order + count; // numbered once it is known to be wanted
        runs.push_back(s);
      }
    }
  std::vector<Run> cycle = cheapest_cycle(runs, updates);
  if (cycle.empty()) // of sizes that nothing has: no time is a number
    return;
  // A product that begins with the first of all updates comes first, if there is one.
  const auto begin = std::find_if(cycle.begin(), cycle.end(), [](const Run &s) { return s.place == 0; });
  if (begin != cycle.end())
    std::rotate(cycle.begin(), begin, cycle.end());
  for (const Run &s : cycle)
    take(s, product(s.product / order, s.product % order));
  std::rotate(steps_.begin(), steps_.end() - cycle.front().place, steps_.end());
  std::rotate(left_steps_.begin(), left_steps_.end() - cycle.front().place, left_steps_.end());
}

double SweepTree::seconds_of(const PartialProduct &p, const kernels::Rates &rates) const {
  double elements = 1;
  for (const i64 d : dims_)
    elements *= static_cast<double>(d);
  const double simple = elements + 2 * static_cast<double>(p.cells) * static_cast<double>(request_.rank);
  const kernels::DenseView view{p.merged_dims, request_.type, nullptr};
  if (p.wraps) {
    const double seconds = request_.backend->predict_mttkrp_slabs(view, request_.rank, rates).seconds;
    return seconds > 0 ? seconds : simple;
  }
  const std::vector<ConstMatrix> factors = unread_factors(p.merged_dims, request_.rank, request_.type);
  const kernels::MttkrpArgs args{p.merged_mode,
                                 factors,
                                 unread_matrix(p.cells, request_.rank, request_.type),
                                 {0, p.cells},
                                 {0, kernels::entries_of(view)}};
  const double seconds = request_.backend->predict_mttkrp(view, args, rates).seconds;
  return seconds > 0 ? seconds : simple;
}

double SweepTree::seconds_of(const kernels::CellsView &cells, std::span<const ConstMatrix> factors, int place,
                             const kernels::Rates &rates) const {
  const i64 rows = cells.dims[static_cast<std::size_t>(place)];
  const kernels::MttkrpArgs args{
      place, factors, unread_matrix(rows, request_.rank, request_.type), {0, rows}, {0, cells.count()}};
  const double seconds = request_.backend->predict_mttkrp_cells(cells, args, rates).seconds;
  return seconds > 0 ? seconds : static_cast<double>(cells.count()) * static_cast<double>(request_.rank);
}

double SweepTree::seconds_to_sum(const PartialProduct &p, int mode, const kernels::Rates &rates) const {
  const SumOverMode sum(p, mode);
  return seconds_of({sum.dims, unread_matrix(p.cells, request_.rank, request_.type)},
                    unread_factors(sum.dims, request_.rank, request_.type), sum.result, rates);
}

// The reads are those of solvers/products.cpp, once what it begins with has passed.
void SweepTree::find_reads() {
  reads_.assign(steps_.size(), false);
  const PartialProduct *current = nullptr;
  for (i64 step = 0; step < 2 * period(); ++step) {
    const PartialProduct *const wanted = at(step);
    reads_[static_cast<std::size_t>(step % period())] = wanted == nullptr || wanted != current;
    current = wanted == nullptr ? current : wanted;
    if (current != nullptr && !current->keeps(mode_of(step)))
      current = nullptr;
  }
}

const PartialProduct *SweepTree::at(i64 step) const {
  const int number = steps_[static_cast<std::size_t>(step % period())];
  return number < 0 ? nullptr : &products_[static_cast<std::size_t>(number)];
}

const PartialProduct *SweepTree::left_at(i64 step) const {
  const int number = left_steps_[static_cast<std::size_t>(step % period())];
  return number < 0 ? nullptr : &left_[static_cast<std::size_t>(number)];
}

i64 SweepTree::most_cells() const {
  i64 most = 0;
  for (i64 step = 0; step < period(); ++step)
    if (const PartialProduct *const p = at(step); p != nullptr)
      most = std::max(most, saturated(static_cast<double>(p->cells) +
                                      (left_at(step) != nullptr ? static_cast<double>(left_at(step)->cells) : 0)));
  return most;
}

double SweepTree::passes() const {
  const auto reads = static_cast<double>(std::count(reads_.begin(), reads_.end(), true));
  return reads * static_cast<double>(request_.updated.size()) / static_cast<double>(period());
}

std::string SweepTree::text() const {
  std::string text;
  for (i64 step = 0; step < period(); ++step) {
    const PartialProduct *const p = at(step);
    if (step > 0 && p != nullptr && !reads(step))
      continue;
    text += fmt::format("{}{}", text.empty() ? "" : "|",
                        p == nullptr ? std::to_string(mode_of(step)) : fmt::to_string(fmt::join(p->modes, ",")));
  }
  return text;
}

} // namespace td::plan
