#include "solvers/driver.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <span>

#include "comm/workers.hpp"
#include "core/clock.hpp"
#include "core/error.hpp"
#include "core/parallel.hpp"
#include "core/scaled.hpp"
#include "solvers/fit.hpp"
#include "solvers/magnitude.hpp"
#include "solvers/start.hpp"
#include "tensor/planned.hpp"
#include "tensor/row_blocks.hpp"

namespace td::solvers {

namespace {

/// It gives as many values as there are modes: the last iteration's, and of an earlier one where modes are fixed.
std::span<const double> last_solves(const Report &r, const std::vector<double> &series) {
  return std::span(series).last(std::min(series.size(), static_cast<std::size_t>(r.order)));
}

/// What the report says of a run that ended by `tol`. A change below `tol` is taken to mean that little is left to
/// gain, which holds where each iteration gains at most half of what the one before did.
std::string creeping(const Growth &growth, double tol, bool from_nvecs) {
  if (growth.left <= tol)
    return {};
  const std::string rate = growth.ratio < 1 ? fmt::format("{:.0f} % of the time before", 100 * growth.ratio)
                                            : std::string("no less than the time before");
  return fmt::format("the fit still grew by {:.1e} an iteration, each time by {}: {} {:.1e} may be left to gain; try a "
                     "smaller option 'tol', {}",
                     growth.change, rate, growth.ratio < 1 ? "about" : "up to", growth.left,
                     from_nvecs ? "or option 'init' = random with some values of option 'seed'"
                                : "another option 'seed' or option 'init' = nvecs");
}

/// The factors := those of the model.
void divide_columns(Ktensor &model, const std::vector<double> &scales, int threads) {
  const auto rank = static_cast<std::size_t>(model.rank());
  for (std::size_t m = 0; m < scales.size() / rank; ++m) {
    const double *by = scales.data() + m * rank;
    const Matrix a = model.factor(static_cast<int>(m));
    if (std::all_of(by, by + rank, [](double t) { return t == 1; }))
      continue;
    std::atomic<bool> finite = true;
    parallel_ranges(threads, a.rows, 1024, [&](Range rows) {
      dispatch(a.type, [&](auto zero) {
        using T = decltype(zero);
        for (i64 i = rows.begin; i < rows.end; ++i)
          for (std::size_t r = 0; r < rank; ++r)
            if (!std::isfinite(a.row<T>(i)[r] = static_cast<T>(static_cast<double>(a.row<T>(i)[r]) / by[r])))
              finite = false;
      });
    });
    if (!finite)
      throw_error(Status::numerical, "factor {} of the model has an element above the largest number in {}", m,
                  name_of(a.type));
  }
}

/// One run, as the calling thread sees it.
class Run {
public:
  Run(const RunRequest &request, const Method &method)
      : request_(request), method_(method), settings_(request.options), processes_(request.tensor->processes()),
        threads_(total_threads(request.backends)), whole_(whole_where_wanted()),
        given_(whole_ ? *whole_ : *request.tensor), x_(given_, unusual_exponent(given_), given_.type(), threads_),
        cells_(*x_) {}

  RunResult run() {
    prepare_report();
    require_memory();
    model_ = request_.resume ? resumed() : start();
    if (whole_)
      make_model_whole();
    report_.seconds_init = seconds_since(begin_);
    last_saved_ = Clock::now();
    const int workers = whole_ ? processes_->size() : static_cast<int>(request_.backends.size());
    const tensor::Sharding sharding(*x_, workers, settings_.deterministic);
    sharding_ = &sharding;
    if (!settled()) {
      for (double &w : model_.weights()) // the workers' tensor is scaled
        w = Scaled(w, -x_.exponent()).value();
      spent_.resize(request_.backends.size());
      run_workers(
          request_.backends, [&](kernels::Backend &backend, Communicator &others) { work(backend, others); },
          processes_);
      if (settings_.breakdown)
        report_.breakdown = breakdown_of(*x_, sharding, processes_, spent_);
    }
    divide_columns(model_, scales_, threads_);
    report_.seconds = seconds_since(begin_);
    if (report_.stop_reason == StopReason::tol)
      report_.creeping = creeping(Growth::of(report_.fit, report_.fit_error.back()), settings_.tol,
                                  settings_.nvecs && !request_.resume && request_.init == nullptr);
    const bool keep = settings_.distributed && processes_ != nullptr;
    if (!keep && !model_.whole())
      model_ = tensor::gather(*processes_, model_);
    const Meeting others = meeting(keep && !whole_);
    if (settings_.arrange)
      model_.arrange(others);
    if (settings_.fixsigns)
      model_.fixsigns(others);
    if (keep && whole_)
      model_ = model_.cut(tensor::block_of(*processes_));
    return {std::move(model_), std::move(report_), stopped_};
  }

private:
  /// Sums whose order does not depend on processes are taken of all entries of a row, as by the workers of one process:
  /// each process then holds all entries, and its workers sum those of their rows.
  std::shared_ptr<const tensor::Tensor> whole_where_wanted() const {
    return processes_ != nullptr && settings_.deterministic ? request_.whole() : nullptr;
  }

  /// Blocks of a checkpoint are put together; of one process alone its first worker has all rows, and the others none.
  /// The eigenvectors of process 0 count, as roundings of processes may differ.
  void make_model_whole() {
    const bool in_blocks = any(!model_.whole());
    if (settings_.nvecs && !in_blocks)
      model_ = tensor::deal(*processes_, model_);
    if (settings_.nvecs || in_blocks)
      model_ = tensor::gather(*processes_, model_);
  }

  void prepare_report() {
    report_.order = given_.order();
    report_.rank = request_.rank;
    const i64 processes = processes_ != nullptr ? processes_->size() : 1;
    report_.workers = processes * static_cast<i64>(request_.backends.size());
    report_.threads = threads_;
    report_.norm = given_.facts().norm;
    report_.format = name_of(given_.format());
    report_.devices = request_.devices;
    report_.init = request_.resume ? "resume" : request_.init != nullptr ? "given" : settings_.init;
  }

  /// This is asked before anything is allocated that grows with the rank.
  void require_memory() {
    Options options = request_.options;
    if (request_.resume || request_.init != nullptr) // then the start is there
      options.set_text("init", "random");
    const plan::PlanRequest plan{options,
                                 request_.rank,
                                 request_.backends,
                                 request_.devices,
                                 whole_ ? processes_->size() : 1,
                                 whole_ ? processes_->workers_here() : 1};
    tree_.emplace(tensor::require_solver(*x_, plan, static_cast<bool>(request_.save)));
    if (whole_)
      processes_->require_same(name_of(whole_->format()), "formats, which memory decides between, of a whole tensor");
  }

  Ktensor start() {
    kernels::Backend &backend = *request_.backends.front();
    if (request_.init != nullptr) {
      Ktensor start = given_start(*request_.init, given_, request_.rank);
      method_.check_start(&start, [this](bool here) { return any(here); });
      method_.scale_start(start, given_.type(), meeting(processes_ != nullptr));
      return start.convert(given_.type());
    }
    method_.check_start(nullptr, {});
    if (settings_.nvecs)
      return nvecs_start(backend, given_, request_.rank, settings_.seed, [this] { return time_is_up(); });
    return random_start(backend, given_.dims(), request_.rank, given_.type(), settings_.seed, block_here());
  }

  /// The meeting of all that have rows of a model: of the processes, or of this one alone.
  Meeting meeting(bool of_processes) const {
    Meeting all = of_processes ? tensor::meeting_of(*processes_) : Meeting{};
    all.threads = threads_;
    return all;
  }

  /// The rows of factors that this process has between iterations.
  RowBlock block_here() const { return processes_ != nullptr && !whole_ ? tensor::block_of(*processes_) : RowBlock{}; }

  Ktensor resumed() {
    const State &state = *request_.resume;
    check_shape("resume", state.factors, given_, request_.rank);
    if (state.factors.type() != given_.type())
      throw_error(Status::type, "resume: the checkpoint is {}, the tensor {}; expected the same type",
                  name_of(state.factors.type()), name_of(given_.type()));
    if (!is_norm(state.tensor_norm))
      throw_error(Status::shape, "resume: the checkpoint is of a tensor of norm {}, this one has {}", state.tensor_norm,
                  given_.facts().norm);
    check_same_path(state.settings, path());
    check_state(state, method_.solves());
    static_cast<History &>(report_) = state;
    report_.resumed_from = state.iterations;
    elapsed_before_ = state.elapsed.back();
    report_quality(fit_from(Scaled(given_.facts().norm), Scaled(state.residual.back())));
    scales_ = state.scales;
    Ktensor factors = state.factors.copy();
    if (!state.weights.empty())
      std::copy(state.weights.begin(), state.weights.end(), factors.weights().begin());
    return factors;
  }

  /// Whether a checkpoint's norm is this tensor's. How many processes have added it up shows in its last bits.
  bool is_norm(double norm) const {
    const double here = given_.facts().norm;
    return norm == here || std::abs(norm - here) <= 1e-13 * here;
  }

  std::string path() const { return method_.path() + "\n" + settings_.path(); }

  void report_quality(const Fit &fit) {
    report_.explained = fit.explained;
    report_.relative = fit.relative;
    report_.fit_growth = Growth::of(report_.fit, report_.fit_error.back()).left;
  }

  /// What one worker does.
  void work(kernels::Backend &backend, Communicator &others) {
    if (!settings_.breakdown)
      return iterate(backend, others);
    std::vector<kernels::Device *> devices;
    if (processes_ == nullptr && backend.has_own_memory())
      for (const auto &device : request_.backends)
        devices.push_back(device.get());
    iterate(backend, *make_measured_communicator(others, backend, std::move(devices)));
  }

  void iterate(kernels::Backend &backend, Communicator &others) {
    const Problem problem{*x_, settings_, model_, cells_, *sharding_, *tree_, scales_};
    const std::unique_ptr<Iteration> own = method_.begin(problem, backend, others);
    others.barrier(); // all have their copies of model_, which worker 0 writes
    if (records(others))
      has_callback_ = any(static_cast<bool>(request_.progress));
    i64 iteration = report_.iterations;
    char stop = 0;
    WorkerTimes times(settings_.breakdown, backend);
    while (stop == 0) {
      const i64 sent = sent_bytes();
      own->update(iteration++);
      times.under_way();
      Iteration::Outcome outcome = own->measure();
      {
        // A device of its own has nothing to do meanwhile.
        const kernels::InPhase phase(backend,
                                     backend.has_own_memory() ? kernels::Phase::idle : kernels::Phase::compute);
        Due due;
        if (records(others))
          due = due_here();
        if (processes_ != nullptr)
          share(outcome, due);
        if (records(others))
          report_.exchanged_bytes += sent_bytes() - sent;
        if (records(others))
          stop = record(*own, outcome, due) ? 1 : 0;
        if (processes_ == nullptr) // of which each has decided the same
          others.broadcast(&stop, 1);
      }
      times.end_iteration();
    }
    spent_[processes_ != nullptr ? 0 : static_cast<std::size_t>(others.rank())] = times.take();
    if (records(others))
      take_model(*own);
  }

  i64 sent_bytes() const { return processes_ != nullptr ? processes_->sent_bytes() : 0; }

  /// One worker of a process keeps what a run comes to.
  bool records(const Communicator &others) const { return processes_ != nullptr || others.rank() == 0; }

  /// What clocks say after an iteration.
  struct Due {
    bool end = false, save = false;
  };
  Due due_here() const {
    return {time_is_up(),
            settings_.checkpoint_seconds > 0 && seconds_since(last_saved_) >= settings_.checkpoint_seconds};
  }

  /// Processes may be on machines whose roundings differ, and go on together or stop together: what an iteration came
  /// to is what process 0 says, to which the others add zeros, and something is due where it is for any of them.
  void share(Iteration::Outcome &outcome, Due &due) const {
    std::vector<double> numbers{outcome.residual_squared, outcome.fit_error};
    numbers.insert(numbers.end(), outcome.effective_rank.begin(), outcome.effective_rank.end());
    numbers.insert(numbers.end(), outcome.condition.begin(), outcome.condition.end());
    if (processes_->rank() != 0)
      std::fill(numbers.begin(), numbers.end(), 0.0);
    numbers.push_back(due.end ? 1 : 0);
    numbers.push_back(due.save ? 1 : 0);
    processes_->all_reduce(numbers, Reduction::sum);
    due.save = numbers.back() != 0;
    numbers.pop_back();
    due.end = numbers.back() != 0;
    numbers.pop_back();
    outcome.residual_squared = numbers[0];
    outcome.fit_error = numbers[1];
    const auto solves = static_cast<std::ptrdiff_t>(outcome.effective_rank.size());
    outcome.effective_rank.assign(numbers.begin() + 2, numbers.begin() + 2 + solves);
    outcome.condition.assign(numbers.begin() + 2 + solves, numbers.end());
  }

  /// Whether it is so on any process.
  bool any(bool here) const { return processes_ != nullptr ? processes_->any(here) : here; }

  /// Keeps what an iteration came to, tells the caller, and decides whether it was the last.
  bool record(const Iteration &own, const Iteration::Outcome &outcome, const Due &due) {
    const Scaled residual = Scaled(outcome.residual_squared, 2 * i64{x_.exponent()}).root();
    const Fit fit = fit_from(x_->facts().norm, outcome.residual_squared);
    const double before = report_.fit.empty() ? 0.0 : report_.fit.back();
    report_.fit.push_back(fit.fit);
    report_.fit_error.push_back(outcome.fit_error);
    report_.fit_change.push_back(std::abs(fit.fit - before));
    report_.residual.push_back(residual.value());
    report_.effective_rank.insert(report_.effective_rank.end(), outcome.effective_rank.begin(),
                                  outcome.effective_rank.end());
    report_.condition.insert(report_.condition.end(), outcome.condition.begin(), outcome.condition.end());
    const std::vector<double> &mttkrp = own.times().mttkrp_of_mode;
    report_.mttkrp_seconds.insert(report_.mttkrp_seconds.end(), mttkrp.begin(), mttkrp.end());
    report_quality(fit);
    ++report_.iterations;
    report_.exact_residuals += outcome.exact ? 1 : 0;
    report_.seconds = seconds_since(begin_);
    report_.elapsed.push_back(elapsed_before_ + report_.seconds);
    report_.seconds_mttkrp = own.times().mttkrp;
    report_.seconds_solve = own.times().solve;
    report_.seconds_fit = own.times().fit;

    bool last = settled();
    if (!last && due.end) {
      report_.stop_reason = StopReason::max_seconds;
      last = true;
    }
    if (has_callback_ && any(request_.progress && !request_.progress(report_))) {
      report_.stop_reason = StopReason::callback;
      stopped_ = last = true;
    }
    const bool in_turn = settings_.checkpoint_iters > 0 && report_.iterations % settings_.checkpoint_iters == 0;
    if (request_.save && (last || due.save || in_turn))
      save(own);
    return last;
  }

  bool time_is_up() const { return settings_.max_seconds > 0 && seconds_since(begin_) >= settings_.max_seconds; }

  /// Whether the iterations so far are enough, and why. A fit that is not known to `tol` cannot tell that it changed by
  /// less.
  bool settled() {
    report_.converged =
        report_.iterations > 1 && report_.fit_change.back() < settings_.tol && report_.fit_error.back() < settings_.tol;
    if (report_.converged)
      report_.stop_reason = StopReason::tol;
    else if (report_.iterations >= settings_.max_iters)
      report_.stop_reason = StopReason::max_iters;
    return report_.stop_reason != StopReason::none;
  }

  void save(const Iteration &own) {
    take_model(own);
    State state{report_,
                whole_ ? model_.cut(tensor::block_of(*processes_)) : model_.copy(),
                given_.facts().norm,
                path(),
                scales_,
                {}};
    if (!scales_.empty())
      state.weights.assign(model_.weights().begin(), model_.weights().end());
    for (std::size_t r = 0; r < state.weights.size(); ++r) {
      Scaled w(state.weights[r]);
      for (std::size_t k = r; k < scales_.size(); k += state.weights.size())
        w = w / Scaled(scales_[k]);
      state.factors.weights()[r] = w.value();
    }
    report_.checkpoint_error = request_.save(state);
    last_saved_ = Clock::now();
  }

  void take_model(const Iteration &own) {
    own.download(model_);
    scales_ = own.scales();
    for (double &w : model_.weights()) {
      w = Scaled(w, x_.exponent()).value();
      if (!std::isfinite(w))
        throw_error(Status::numerical, "a weight of the model is above the largest number in f64");
    }
  }

  const RunRequest &request_;
  const Method &method_;
  Clock::time_point begin_ = Clock::now();
  RunSettings settings_;
  Processes *processes_; // that share the tensor; null: none
  int threads_;
  std::shared_ptr<const tensor::Tensor> whole_; // where each process is to hold all
  const tensor::Tensor &given_;
  ScaledTensor x_; // given_, or a copy in a safe range
  Cells cells_;
  const tensor::Sharding *sharding_ = nullptr; // while workers run
  std::optional<plan::SweepTree> tree_;        // decided with the memory that is asked for
  Ktensor model_;                              // the start, later the result
  std::vector<double> scales_;                 // of model_, as State::scales
  Report report_;
  bool has_callback_ = false; // or another process has
  double elapsed_before_ = 0;
  std::vector<std::vector<kernels::PhaseSeconds>> spent_; // [workers of this process] of each iteration
  Clock::time_point last_saved_;
  bool stopped_ = false;
};

} // namespace

std::string_view name_of(StopReason reason) noexcept {
  constexpr std::string_view names[] = {"", "tol", "max_iters", "max_seconds", "callback"};
  return names[static_cast<std::size_t>(reason)];
}

i64 Report::smallest_effective_rank() const {
  double least = static_cast<double>(rank);
  for (const double one : last_solves(*this, effective_rank))
    least = std::min(least, one);
  return static_cast<i64>(least);
}

double Report::largest_condition() const {
  double largest = 0;
  for (const double one : last_solves(*this, condition))
    largest = std::max(largest, one);
  return largest;
}

RunResult run(const RunRequest &request, const Method &method) { return Run(request, method).run(); }

} // namespace td::solvers
