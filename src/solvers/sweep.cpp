#include "solvers/sweep.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "core/error.hpp"
#include "core/scaled.hpp"
#include "plan/needs.hpp"
#include "solvers/fit.hpp"
#include "solvers/magnitude.hpp"

namespace td::solvers {

using kernels::Combine;
using kernels::NormKind;

namespace {

void zero_other_rows(Matrix a, std::span<const i64> rows) {
  i64 row = 0;
  for (std::size_t next = 0; next <= rows.size(); ++next) {
    const i64 end = next < rows.size() ? rows[next] : a.rows;
    if (row < end)
      std::memset(a.slice(row, end).data, 0, static_cast<std::size_t>((end - row) * a.cols * size_of(a.type)));
    row = end + 1;
  }
}

/// Ranges without some rows, ascending, each of which lies in one of them.
Ranges without(const Ranges &ranges, const Ranges &rows) {
  Ranges left;
  auto next = rows.begin();
  for (Range range : ranges) {
    for (; next != rows.end() && next->begin < range.end; ++next) {
      if (range.begin < next->begin)
        left.push_back({range.begin, next->begin});
      range.begin = next->end;
    }
    if (range.begin < range.end)
      left.push_back(range);
  }
  return left;
}

/// Sums over ranges of rows, as solve_and_sum leaves each; they are added up whenever there are plan::most_parts.
class RangeSums {
public:
  RangeSums(kernels::Backend &backend, double *room, i64 rank, bool inner)
      : backend_(backend), room_(room), rank_(rank), inner_(inner) {}

  /// Where those of the next range go.
  kernels::ColumnSums next() {
    if (parts_ == plan::most_parts) {
      add_up(at(0));
      parts_ = 1;
    }
    return at(parts_++);
  }
  /// Zeros where there was no range.
  void add_up(const kernels::ColumnSums &to) const {
    combine(0, rank_ * rank_, Combine::sum, to.gram);
    combine(rank_ * rank_, rank_, Combine::max, to.largest);
    if (inner_)
      combine(rank_ * (rank_ + 1), rank_, Combine::sum, to.inner);
  }

private:
  i64 each() const { return rank_ * (rank_ + 2); }
  kernels::ColumnSums at(i64 part) const {
    double *const gram = room_ + part * each();
    double *const largest = gram + rank_ * rank_;
    return {gram, largest, inner_ ? largest + rank_ : nullptr};
  }
  void combine(i64 offset, i64 count, Combine how, double *to) const {
    if (parts_ > 0)
      backend_.combine_rows({room_ + offset, ValueType::f64, parts_, count, each()}, how, to);
    else
      backend_.set_zero({to, ValueType::f64, 1, count, count});
  }

  kernels::Backend &backend_;
  double *room_;
  i64 rank_;
  bool inner_; // products are wanted
  i64 parts_ = 0;
};

} // namespace

Sweep::Sweep(const Problem &problem, const CpalsSettings &settings, kernels::Backend &backend, Communicator &others)
    : problem_(problem), settings_(settings), backend_(backend), others_(others),
      worker_(problem.x, problem.sharding, backend, others), rank_(problem.start.rank()),
      products_(problem.x, worker_, backend, rank_), factors_(start_factors()),
      scratch_(backend, *std::max_element(problem.x.stored_dims().begin(), problem.x.stored_dims().end()), rank_,
               problem.x.type(), "the result of MTTKRP"),
      normal_(backend, rank_ * rank_, "the normal equations"), factored_(backend, rank_ * rank_, "their factor"),
      vectors_(backend, 4 * rank_, "scales of columns"),
      tally_(backend, settings.updated_modes.size(), static_cast<std::size_t>(problem.x.order()), rank_),
      weights_(problem.start.weights().begin(), problem.start.weights().end()) {
  products_.reserve(problem.tree.most_cells());
  if (settings.solve == plan::Solve::qr)
    qr_.emplace(problem.x, problem.start, worker_, backend, others, products_);
  for (const int mode : settings.updated_modes) // a run that goes on has updated them before
    if (qr_ && !problem.scales.empty())
      qr_->changed(mode);
  cut_gathers();
  if (const i64 ranges = ranges_at_most(); ranges > 0)
    parts_ = DeviceNumbers(backend, std::min(ranges, plan::most_parts) * rank_ * (rank_ + 2),
                           "sums over several ranges of rows");
  for (int m = 0; m < problem.x.order(); ++m)
    grams_.emplace_back(backend, rank_ * rank_, "Gram matrices");
  backend_.upload(weights_of(settings.updated_modes.size() - 1), weights_.data(),
                  rank_ * static_cast<i64>(sizeof(double)));
  for (int m = 0; m < problem.x.order(); ++m)
    compute_start_gram(m);
  start_scales();
}

i64 Sweep::ranges_at_most() const {
  std::size_t most = 0;
  for (int m = 0; m < problem_.x.order(); ++m)
    if (const std::size_t ranges = part(m).size(); ranges > 1)
      most = std::max(most, ranges);
  for (const Chunks &chunks : chunks_) {
    std::size_t ranges = 0;
    for (const auto &chunk : chunks.rows)
      ranges += chunk[static_cast<std::size_t>(others_.rank())].size();
    most = std::max(most, chunks.products.empty() ? 0 : ranges);
  }
  return static_cast<i64>(most);
}

// Where the rows of MTTKRP can be had some at a time, long modes are updated chunk by chunk, and their sums over rows
// come with the solves, whatever option overlap says, which so decides no bit; it says whether chunks leave meanwhile.
//
// Elsewhere sums of own rows in one order have to be the same bits with and without chunks. Gram matrices and largest
// magnitudes of a whole range are, whether they come with the solve or after it; inner products, which the last solve
// of an iteration gives where a worker has one range, are not. Where one worker owns all rows there is nothing beside
// which they could go.
void Sweep::cut_gathers() {
  const std::vector<int> &modes = settings_.updated_modes;
  const i64 row_bytes = rank_ * size_of(problem_.x.type());
  marks_ = 3 * modes.size() + 2;
  for (std::size_t k = 0; k < modes.size(); ++k) {
    const int mode = modes[k];
    Chunks &chunks = chunks_.emplace_back();
    if (products_.cuts_rows(mode))
      chunks.rows = worker_.gather_chunks(
          mode, plan::Overlap::automatic, row_bytes,
          plan::gather_ratio(problem_.x.stored_entries(), factors_[mode].rows, problem_.x.order(), others_.size()));
    if (chunks.rows.empty()) {
      chunks.rows = worker_.gather_chunks(mode, problem_.settings.overlap, row_bytes, 1); // beside solves
      if (!chunks.rows.empty() && is_cut_whole(mode, k))
        chunks.rows.clear();
      continue;
    }
    chunks.products = worker_.cut_load(mode, chunks.rows);
    chunks.marks = std::exchange(marks_, marks_ + 2 * chunks.products.size());
    const std::vector<Ranges> split = worker_.split_rows(mode); // complete when all workers have summed theirs
    if (std::all_of(split.begin(), split.end(), [](const Ranges &rows) { return rows.empty(); }))
      continue;
    for (std::vector<Ranges> &chunk : chunks.rows)
      for (std::size_t worker = 0; worker < chunk.size(); ++worker)
        chunk[worker] = without(chunk[worker], split[worker]);
    chunks.rows.push_back(split);
  }
}

bool Sweep::is_cut_whole(int mode, std::size_t k) const {
  const i64 rows = factors_[mode].rows;
  const bool deterministic = problem_.settings.deterministic;
  const std::vector<Ranges> &owned = problem_.sharding.rows(mode).owned;
  return std::any_of(owned.begin(), owned.end(), [&](const Ranges &own) {
    return own.size() == 1 && (deterministic ? own.front().size() == rows : is_last(k));
  });
}

// A chunk's rows leave while the next one's are solved for.
void Sweep::solve_in_chunks(int mode, std::size_t k) {
  const Matrix factor = factors_[mode];
  const Matrix product = scratch_.view(factor.rows);
  for (const std::vector<Ranges> &chunk : chunks_[k].rows) {
    for (const Range &rows : chunk[static_cast<std::size_t>(others_.rank())])
      backend_.solve_normal(equations(k), product.slice(rows.begin, rows.end), solve_scales().read(),
                            factor.slice(rows.begin, rows.end));
    others_.begin_gather(factor, chunk);
  }
}

void Sweep::mttkrp_part(std::size_t k, std::size_t part) {
  const int mode = settings_.updated_modes[k];
  backend_.enter_stage(kernels::Stage::mttkrp);
  backend_.mark(moment(iteration_, chunks_[k].marks + 2 * part));
  products_.mttkrp_part(mode, factors_.views(), scratch_.view(factors_[mode].rows), chunks_[k].products[part]);
  backend_.mark(moment(iteration_, chunks_[k].marks + 2 * part + 1));
  backend_.enter_stage(kernels::Stage::rest);
}

// A chunk's rows leave while MTTKRP of the next one goes on, which takes longer than sending them.
void Sweep::update_in_chunks(int mode, std::size_t k) {
  const Chunks &chunks = chunks_[k];
  const Matrix factor = factors_[mode];
  const Matrix product = scratch_.view(factor.rows);
  const bool leave = problem_.settings.overlap != plan::Overlap::off;
  has_inner_ = is_last(k);
  RangeSums sums(backend_, parts_.data(), rank_, has_inner_);
  const JoinAtEnd join{backend_};
  for (std::size_t c = 0; c < chunks.rows.size(); ++c) {
    if (c < chunks.products.size())
      mttkrp_part(k, c);
    else
      worker_.reduce_split(mode, product);
    if (c == 0)
      backend_.join_beside(); // what prepare asked for
    for (const Range &rows : chunks.rows[c][static_cast<std::size_t>(others_.rank())])
      backend_.solve_and_sum(equations(k), product.slice(rows.begin, rows.end), solve_scales().read(),
                             factor.slice(rows.begin, rows.end), sums.next());
    if (leave)
      others_.begin_gather(factor, chunks.rows[c]);
  }
  sums.add_up({grams_[static_cast<std::size_t>(mode)].data(), largest(), tally_.there().inner});
  sum_over_workers(mode, k, leave);
  others_.end_exchanges();
}

// Rows that have not left yet go with the sums: of few rows it is the number of exchanges that takes time.
void Sweep::sum_over_workers(int mode, std::size_t k, bool have_left) {
  DeviceNumbers &gram = grams_[static_cast<std::size_t>(mode)];
  std::vector<Reduced> sums{{gram.span(), Combine::sum}, {{largest(), columns()}, Combine::max}};
  if (has_inner_)
    sums.push_back({{tally_.there().inner, columns()}, Combine::sum});
  if (problem_.settings.deterministic)
    sums.clear(); // they are over all rows
  if (!have_left)
    worker_.gather(mode, factors_[mode], sums);
  else if (!sums.empty())
    others_.allreduce(sums);
  backend_.finish_columns(rank_, solve_scales().solved, largest(), weights_of(k), scales_of(mode), gram.data());
}

// A process has a block of the start, of which each gets the rows that it holds.
Replica Sweep::start_factors() const {
  if (problem_.x.distribution() == nullptr)
    return {backend_, problem_.start, problem_.x.numbering()};
  Replica held(backend_, problem_.x.stored_dims(), rank_, problem_.start.type());
  for (int m = 0; m < problem_.x.order(); ++m)
    worker_.fetch(m, problem_.start.factor(m), held[m]);
  return held;
}

// A start's columns are those of the model, unless an iteration has left them for another to go on from. Then Gram
// matrices become those of the model's columns as finish_columns makes them.
void Sweep::start_scales() {
  std::vector<double> scales(problem_.scales.begin(), problem_.scales.end());
  scales.resize(static_cast<std::size_t>(problem_.x.order()) * columns(), 1.0);
  backend_.upload(scales_of(0), scales.data(), std::ssize(scales) * static_cast<i64>(sizeof(double)));
  if (problem_.scales.empty())
    return;
  for (std::size_t m = 0; m < grams_.size(); ++m) {
    const double *t = scales.data() + m * columns();
    std::vector<double> gram = grams_[m].download();
    for (std::size_t r = 0; r < columns(); ++r)
      for (std::size_t s = 0; s < columns(); ++s)
        gram[r * columns() + s] = gram[r * columns() + s] / t[std::min(r, s)] / t[std::max(r, s)];
    grams_[m].upload(gram);
  }
}

// The product of Gram matrices of many long columns could overflow, and updates vanish. A power of four for all columns
// of a mode makes updates of the first iteration longer or shorter by powers of two, and their division by lengths
// takes these out: no bit changes where nothing leaves the range. Roundings of processes may differ, so those of the
// first count.
void Sweep::normalize_start_grams() {
  start_exponents_.assign(grams_.size(), 0);
  const std::vector<int> &modes = settings_.updated_modes;
  for (std::size_t k = 1; k < modes.size(); ++k) {
    const std::vector<double> gram = grams_[static_cast<std::size_t>(modes[k])].download();
    double largest = 0;
    for (std::size_t r = 0; r < columns(); ++r)
      largest = std::max(largest, gram[r * columns() + r]);
    if (largest > 0 && std::isfinite(largest))
      start_exponents_[static_cast<std::size_t>(modes[k])] = std::ilogb(largest) >> 1;
  }
  others_.broadcast(start_exponents_.data(), std::ssize(start_exponents_) * static_cast<i64>(sizeof(i64)));
  i64 together = 0;
  for (const i64 exponent : start_exponents_)
    together += 2 * std::abs(exponent);
  if (together <= usual_exponent(problem_.x.type())) // as of most runs, whose matrices stay where they are
    return start_exponents_.assign(grams_.size(), 0);
  for (std::size_t m = 0; m < grams_.size(); ++m) {
    if (start_exponents_[m] == 0)
      continue;
    std::vector<double> gram = grams_[m].download();
    for (double &g : gram)
      g = std::ldexp(g, static_cast<int>(-2 * start_exponents_[m]));
    grams_[m].upload(gram);
  }
}

// The ridge is divided as the product of Gram matrices is, of which those of modes that are still to be updated are the
// start's.
double Sweep::ridge_of(i64 iteration, std::size_t k) const {
  i64 exponent = 0;
  for (std::size_t next = k + 1; iteration == 0 && next < settings_.updated_modes.size(); ++next)
    exponent += start_exponents_[static_cast<std::size_t>(settings_.updated_modes[next])];
  return Scaled(settings_.ridge, -2 * exponent).value();
}

// A start's rows without entries count until their factor is first updated: then they are zero. Where processes share
// the tensor each takes the rows of its block.
void Sweep::compute_start_gram(int mode) {
  DeviceNumbers &gram = grams_[static_cast<std::size_t>(mode)];
  if (problem_.x.distribution() != nullptr) {
    gram.upload(std::vector<double>(static_cast<std::size_t>(gram.count()), 0.0));
    add_block(mode);
    others_.allreduce_sum(gram.span());
    return;
  }
  compute_gram(mode);
  if (!problem_.x.numbering().is_index(mode))
    add_rows_but(mode, problem_.x.numbering().rows(mode));
}

void Sweep::add_gram(int mode, ConstMatrix rows) {
  backend_.gram(rows, normal_.data());
  DeviceNumbers &gram = grams_[static_cast<std::size_t>(mode)];
  std::vector<double> sum = gram.download();
  const std::vector<double> more = normal_.download();
  std::transform(sum.begin(), sum.end(), more.begin(), sum.begin(), std::plus<>());
  gram.upload(sum);
}

void Sweep::add_block(int mode) {
  const ConstMatrix start = problem_.start.factor(mode);
  const i64 at_once = std::min(plan::start_rows_at_once, start.rows);
  DeviceMatrix some; // where the backend does not work in the host's memory
  if (backend_.has_own_memory() && at_once > 0)
    some = DeviceMatrix(backend_, at_once, rank_, start.type, "rows of a start");
  for (i64 begin = 0; begin < start.rows; begin += at_once) {
    const ConstMatrix rows = start.slice(begin, std::min(begin + at_once, start.rows));
    if (backend_.has_own_memory())
      upload_rows(backend_, rows, {}, some.view(rows.rows));
    add_gram(mode, backend_.has_own_memory() ? ConstMatrix(some.view(rows.rows)) : rows);
  }
}

void Sweep::add_rows_but(int mode, std::span<const i64> but) {
  const ConstMatrix start = problem_.start.factor(mode);
  const i64 at_once = std::min(plan::start_rows_at_once, start.rows - std::ssize(but));
  if (at_once == 0)
    return;
  const DeviceMatrix some(backend_, at_once, rank_, start.type, "rows of a start without entries");
  std::vector<i64> rows;
  rows.reserve(static_cast<std::size_t>(at_once));
  auto next = but.begin();
  for (i64 row = 0; row < start.rows || !rows.empty(); ++row) {
    const bool left_out = next != but.end() && *next == row;
    next += left_out ? 1 : 0;
    if (row < start.rows && !left_out)
      rows.push_back(row);
    if (std::ssize(rows) < at_once && row < start.rows)
      continue;
    const Matrix staged = some.view(std::ssize(rows));
    upload_rows(backend_, start, rows, staged);
    add_gram(mode, staged);
    rows.clear();
  }
}

void Sweep::update(i64 iteration) {
  iteration_ = iteration;
  const std::vector<int> &modes = settings_.updated_modes;
  if (iteration == 0 && !qr_)
    normalize_start_grams();
  const bool begun = std::exchange(has_begun_, false);
  if (!begun)
    backend_.mark(moment(iteration, 0));
  for (std::size_t k = 0; k < modes.size(); ++k) {
    const int mode = modes[k];
    if (qr_) {
      backend_.enter_stage(kernels::Stage::mttkrp);
      backend_.mark(moment(iteration, begin_of_mttkrp(k)));
      solve_by_qr(mode, k);
      backend_.enter_stage(kernels::Stage::rest);
      backend_.mark(moment(iteration, 2 * k + 1));
    } else {
      if (k > 0 || !begun)
        prepare(iteration, k);
      if (!is_product_cut(k) && (k > 0 || !begun))
        mttkrp(iteration, k);
      if (is_product_cut(k))
        update_in_chunks(mode, k);
      else if (iteration > 0)
        solve_and_sum(mode, k);
      else
        solve(mode, k);
    }
    if (qr_ || iteration == 0)
      divide(mode, k);
    products_.changed(mode);
    if (qr_)
      qr_->changed(mode);
    backend_.mark(moment(iteration, 2 * k + 2));
  }
}

void Sweep::mttkrp(i64 iteration, std::size_t k) {
  const std::vector<int> &modes = settings_.updated_modes;
  const int mode = modes[k];
  backend_.enter_stage(kernels::Stage::mttkrp);
  backend_.mark(moment(iteration, begin_of_mttkrp(k)));
  const i64 step = iteration * std::ssize(modes) + static_cast<i64>(k);
  products_.mttkrp(mode, factors_.views(), scratch_.view(factors_[mode].rows), problem_.tree.at(step),
                   problem_.tree.left_at(step));
  backend_.enter_stage(kernels::Stage::rest);
  backend_.mark(moment(iteration, 2 * k + 1));
}

// A GPU would run empty while the host looks at an iteration's numbers: it has the next one's first MTTKRP to do
// meanwhile. Should that iteration never come, because the fit hardly changed, this much time is lost, so it is done
// only where it is short: workers, whose times differ, go by those of one, as it broadcast an iteration before. Where
// processes exchange by way of the host, sums of that MTTKRP would be waited for at once.
void Sweep::begin_next() {
  if (!begins_next_ || qr_ || !backend_.has_own_memory() || problem_.settings.breakdown ||
      (problem_.x.distribution() != nullptr && !others_.exchanges_beside()) ||
      iteration_ + 1 >= problem_.settings.max_iters || !chunks_.front().products.empty())
    return;
  backend_.mark(moment(iteration_ + 1, 0));
  prepare(iteration_ + 1, 0);
  mttkrp(iteration_ + 1, 0);
  has_begun_ = true;
}

// What A_n := M V^+ needs of the other modes, V being the elementwise product of their Gram matrices. Where V is
// singular in f64, what M says nothing of stays as it was. A new start has no such part: its scale means nothing before
// the first update.
//
// It is little work of many steps, and goes on beside MTTKRP, which has no part in it, until the solve.
void Sweep::prepare(i64 iteration, std::size_t k) {
  const int mode = settings_.updated_modes[k];
  std::vector<const double *> grams, scales;
  for (int m = 0; m < problem_.x.order(); ++m) {
    if (m == mode)
      continue;
    grams.push_back(grams_[static_cast<std::size_t>(m)].data());
    scales.push_back(scales_of(m));
  }
  // Eigenvalues below this are rounding of the values that the factors were computed from.
  const double cutoff = static_cast<double>(rank_) * epsilon_of(products_.precision());
  const kernels::Beside beside(backend_);
  backend_.prepare_solve({grams, scales, scales_of(mode), weights_before(iteration, k), rank_}, ridge_of(iteration, k),
                         cutoff, {normal_.data(), factored_.data(), tally_.there().records + k, solve_scales()});
}

// The first iteration: its factors are divided once they are there, and no weights tell how long they will be.
void Sweep::solve(int mode, std::size_t k) {
  backend_.join_beside();
  const Matrix product = scratch_.view(factors_[mode].rows);
  for (const Range &own : worker_.own(mode))
    backend_.solve_normal(equations(k), product.slice(own.begin, own.end), {},
                          factors_[mode].slice(own.begin, own.end));
}

// Later ones: rows stay as they are solved but for powers of two, which bring columns near the length that they had, so
// that nothing overflows that the model's own would not. Normalization is left to scales of columns, which the matrices
// of the next solves take in: rows are passed over once, and can be sent as they are.
void Sweep::solve_and_sum(int mode, std::size_t k) {
  const bool deterministic = problem_.settings.deterministic;
  const Matrix factor = factors_[mode];
  const Matrix product = scratch_.view(factor.rows);
  const Ranges &own = worker_.own(mode);
  const kernels::SolveScales scales = solve_scales().read();
  double *gram = grams_[static_cast<std::size_t>(mode)].data();
  // Sums that must not depend on the number of workers are taken over all rows, and inner products in one order.
  const bool at_once = own.size() == 1 && (!deterministic || own.front().size() == factor.rows);
  has_inner_ = is_last(k) && at_once && !deterministic;
  const bool of_all = at_once && (deterministic || others_.size() == 1); // nobody else has sums to add
  const bool in_chunks = !chunks_[k].rows.empty();
  backend_.join_beside();
  const JoinAtEnd join{backend_};
  if (in_chunks) {
    solve_in_chunks(mode, k);
  } else if (at_once) {
    const Range rows = own.front();
    backend_.solve_and_sum(equations(k), product.slice(rows.begin, rows.end), scales,
                           factor.slice(rows.begin, rows.end),
                           {gram, largest(), has_inner_ ? tally_.there().inner : nullptr,
                            of_all ? weights_of(k) : nullptr, of_all ? scales_of(mode) : nullptr});
  } else {
    for (const Range &rows : own)
      backend_.solve_normal(equations(k), product.slice(rows.begin, rows.end), scales,
                            factor.slice(rows.begin, rows.end));
  }
  if (deterministic && in_chunks)
    others_.end_exchanges(); // sums are over all rows
  else if (deterministic || of_all)
    worker_.gather(mode, factor);
  if (of_all)
    return;
  if (in_chunks || !at_once)
    sum_own_rows(mode, k);
  sum_over_workers(mode, k, in_chunks || deterministic);
  if (in_chunks && !deterministic)
    others_.end_exchanges();
}

// All workers have the same sums to add, however their rows lie.
void Sweep::sum_own_rows(int mode, std::size_t k) {
  const Matrix factor = factors_[mode];
  const Matrix product = scratch_.view(factor.rows);
  over_own(mode, grams_[static_cast<std::size_t>(mode)].span(), Combine::sum,
           [&](Range rows, double *gram) { backend_.gram(factor.slice(rows.begin, rows.end), gram); });
  over_own(mode, {largest(), columns()}, Combine::max, [&](Range rows, double *norms) {
    backend_.column_norms(factor.slice(rows.begin, rows.end), NormKind::max, norms);
  });
  has_inner_ = is_last(k) && !problem_.settings.deterministic;
  if (has_inner_)
    over_own(mode, {tally_.there().inner, columns()}, Combine::sum, [&](Range rows, double *dots) {
      backend_.column_dots(product.slice(rows.begin, rows.end), factor.slice(rows.begin, rows.end), dots);
    });
}

// The weights as the update before left them; null in the first iteration, in which factors have no scale of the
// model's yet: what a start has along dropped eigenvalues would stay for ever, in components that cancel.
const double *Sweep::weights_before(i64 iteration, std::size_t k) const {
  if (iteration == 0)
    return nullptr;
  return weights_of(k > 0 ? k - 1 : settings_.updated_modes.size() - 1);
}

void Sweep::solve_by_qr(int mode, std::size_t k) {
  const kernels::SolveRecord record = qr_->update(mode, factors_, scratch_.view(factors_[mode].rows), settings_.ridge);
  backend_.upload(tally_.there().records + k, &record, sizeof record);
}

// Columns are divided by their lengths in the first iteration, afterwards by their largest magnitudes but not below 1,
// as in cp_als of Tensor Toolbox. The Gram matrix comes with the division: of tall factors each pass counts.
void Sweep::divide(int mode, std::size_t k) {
  const bool deterministic = problem_.settings.deterministic;
  const Matrix factor = factors_[mode];
  if (deterministic)
    worker_.gather(mode, factor);
  const NormKind kind = iteration_ == 0 ? NormKind::two : NormKind::max;
  double *weights = weights_of(k);
  over_part(mode, {weights, columns()}, kind == NormKind::two ? Combine::sum : Combine::max,
            [&](Range rows, double *norms) { backend_.column_norms(factor.slice(rows.begin, rows.end), kind, norms); });
  backend_.weights_from_norms(kind, rank_, weights);
  over_part(mode, grams_[static_cast<std::size_t>(mode)].span(), Combine::sum, [&](Range rows, double *gram) {
    backend_.divide_and_gram(factor.slice(rows.begin, rows.end), weights, gram);
  });
  if (!deterministic)
    worker_.gather(mode, factor);
}

void Sweep::compute_gram(int mode) {
  over_part(mode, grams_[static_cast<std::size_t>(mode)].span(), Combine::sum,
            [&](Range rows, double *gram) { backend_.gram(factors_[mode].slice(rows.begin, rows.end), gram); });
}

Iteration::Outcome Sweep::measure() {
  ask_for_fit();
  tally_.begin_download();
  begin_next();
  tally_.end_download();
  const auto since = Clock::now();
  require_finite();
  const double *last = tally_.here().weights + (settings_.updated_modes.size() - 1) * columns();
  weights_.assign(last, last + columns());
  const double norm = problem_.x.facts().norm;
  stored_weights_ = weights_;
  for (std::size_t m = 0; m < grams_.size(); ++m)
    for (std::size_t r = 0; r < columns(); ++r)
      stored_weights_[r] /= tally_.here().scales[m * columns() + r];
  const ModelNorm model = model_norm(weights_, tally_.here().model);
  ResidualSquared squared = expanded_residual(norm, model, inner_with_tensor(), products_.precision());
  if (!std::isfinite(squared.value))
    overflow(settings_.updated_modes.back(), "the model's norm is not finite");
  Outcome outcome;
  outcome.exact = want_exact(squared);
  if (outcome.exact)
    squared = exact_residual_squared(model);
  outcome.residual_squared = std::max(0.0, squared.value);
  outcome.fit_error = norm == 0 ? 0 : std::min(1.0, squared.root_error() / norm);

  for (std::size_t k = 0; k < settings_.updated_modes.size(); ++k) {
    outcome.effective_rank.push_back(tally_.here().records[k].effective_rank);
    outcome.condition.push_back(tally_.here().records[k].condition);
  }
  add_times(std::chrono::duration<double>(Clock::now() - since).count());
  return outcome;
}

// What the fit needs, for the mode that was updated last.
void Sweep::ask_for_fit() {
  const int mode = settings_.updated_modes.back();
  const Matrix product = scratch_.view(factors_[mode].rows);
  if (problem_.settings.deterministic)
    worker_.gather(mode, product);
  if (!has_inner_)
    over_part(mode, {tally_.there().inner, columns()}, Combine::sum, [&](Range rows, double *dots) {
      backend_.column_dots(product.slice(rows.begin, rows.end), factors_[mode].slice(rows.begin, rows.end), dots);
    });
  std::vector<const double *> all;
  for (const DeviceNumbers &gram : grams_)
    all.push_back(gram.data());
  backend_.hadamard(all, rank_, 0, tally_.there().model);
  backend_.mark(moment(iteration_, 2 * settings_.updated_modes.size() + 1));
}

// The first of the iteration's solves and columns that went wrong is reported.
void Sweep::require_finite() const {
  const std::vector<int> &modes = settings_.updated_modes;
  const Tally::Numbers found = tally_.here();
  for (std::size_t k = 0; k < modes.size(); ++k) {
    if (const auto failure = kernels::failure_text(found.records[k], rank_); !failure.empty())
      overflow(modes[k], failure);
    const double *weights = found.weights + k * columns();
    if (!std::all_of(weights, weights + columns(), [](double w) { return std::isfinite(w); }))
      overflow(modes[k], "a column's norm is not finite");
  }
}

// <X, M> = sum over r of weights[r] <MTTKRP[:, r], A[:, r]>, all of the factors as they are stored.
double Sweep::inner_with_tensor() const {
  double inner = 0;
  for (std::size_t r = 0; r < stored_weights_.size(); ++r)
    inner += stored_weights_[r] * tally_.here().inner[r];
  return inner;
}

// All workers take part or none, in this and in beginning another iteration early, of which each process's own clock
// would tell something else.
bool Sweep::want_exact(const ResidualSquared &expanded) {
  constexpr double most_lost = 1e-3; // seconds, of MTTKRP that may have been for nothing; the host takes about 5e-5
  const auto wanted = problem_.settings.exact_residual;
  const auto first = static_cast<std::size_t>(settings_.updated_modes.front());
  char decided[2] = {wanted == ExactResidual::always ||
                         (wanted == ExactResidual::automatic && !is_trustworthy(expanded)),
                     !times_.mttkrp_of_mode.empty() && times_.mttkrp_of_mode[first] <= most_lost};
  others_.broadcast(decided, sizeof decided);
  begins_next_ = decided[1] != 0;
  return decided[0] != 0;
}

ResidualSquared Sweep::exact_residual_squared(const ModelNorm &model) {
  backend_.upload(largest(), stored_weights_.data(), rank_ * static_cast<i64>(sizeof(double)));
  const Comparison c =
      problem_.cells.compare(backend_, others_, worker_.part(), worker_.deterministic(), largest(), factors_.views());
  const ResidualSquared squared = problem_.cells.residual_squared(c, model);
  if (!std::isfinite(squared.value))
    overflow(settings_.updated_modes.back(), "the residual is not finite");
  return squared;
}

void Sweep::download(Ktensor &to) const {
  for (int m = 0; m < to.order(); ++m) {
    if (problem_.x.distribution() != nullptr) {
      if (is_updated(m)) // else it is as the start has it
        worker_.settle(m, factors_[m], to.factor(m));
      continue;
    }
    const std::span<const i64> rows = problem_.x.numbering().rows(m);
    if (!rows.empty() && is_updated(m))
      zero_other_rows(to.factor(m), rows);
    factors_.download(m, to.factor(m), rows);
  }
  std::copy(weights_.begin(), weights_.end(), to.weights().begin());
}

std::vector<double> Sweep::scales() const {
  const double *here = tally_.here().scales;
  return {here, here + grams_.size() * columns()};
}

bool Sweep::is_updated(int mode) const {
  const auto &modes = settings_.updated_modes;
  return std::find(modes.begin(), modes.end(), mode) != modes.end();
}

Ranges Sweep::part(int mode) const {
  if (problem_.settings.deterministic)
    return {{0, factors_[mode].rows}};
  return worker_.own(mode);
}

// A worker mostly has one range of rows; numbers of several are combined where they are.
template <class Body> void Sweep::over_own(int mode, std::span<double> total, Combine combine, Body &&body) {
  const Ranges ranges = part(mode);
  const auto count = static_cast<i64>(total.size());
  const auto meet = [&](i64 parts, double *out) {
    backend_.combine_rows({parts_.data(), ValueType::f64, parts, count, count}, combine, out);
  };
  if (ranges.empty())
    backend_.set_zero({total.data(), ValueType::f64, 1, count, count});
  else if (ranges.size() == 1)
    body(ranges.front(), total.data());
  else {
    i64 parts = 0;
    for (const Range &rows : ranges) {
      if (parts == plan::most_parts)
        meet(std::exchange(parts, 1), parts_.data());
      body(rows, parts_.data() + count * parts++);
    }
    meet(parts, total.data());
  }
}

template <class Body> void Sweep::over_part(int mode, std::span<double> total, Combine combine, Body &&body) {
  over_own(mode, total, combine, body);
  if (problem_.settings.deterministic)
    return;
  if (combine == Combine::sum)
    others_.allreduce_sum(total);
  else
    others_.allreduce_max(total);
}

void Sweep::overflow(int mode, std::string_view what) const {
  throw_error(Status::numerical, "iteration {}, mode {}: the factors overflowed: {}", iteration_ + 1, mode, what);
}

// Times come from the marks of an iteration, and from what the host has taken since the last of them.
void Sweep::add_times(double on_host) {
  const std::vector<int> &modes = settings_.updated_modes;
  times_.mttkrp_of_mode.assign(static_cast<std::size_t>(problem_.x.order()), 0.0);
  for (std::size_t k = 0; k < modes.size(); ++k) {
    const auto between = [&](std::size_t first, std::size_t second) {
      return backend_.seconds_between(moment(iteration_, first), moment(iteration_, second));
    };
    double mttkrp = is_product_cut(k) ? 0 : between(begin_of_mttkrp(k), 2 * k + 1);
    for (std::size_t part = 0; is_product_cut(k) && part < chunks_[k].products.size(); ++part)
      mttkrp += between(chunks_[k].marks + 2 * part, chunks_[k].marks + 2 * part + 1);
    times_.mttkrp_of_mode[static_cast<std::size_t>(modes[k])] = mttkrp;
    times_.mttkrp += mttkrp;
    times_.solve += between(2 * k, 2 * k + 2) - mttkrp;
  }
  const std::size_t end = 2 * modes.size();
  times_.fit += backend_.seconds_between(moment(iteration_, end), moment(iteration_, end + 1)) + on_host;
}

} // namespace td::solvers
