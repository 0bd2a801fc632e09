#include "solvers/cpals.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/sentence.hpp"
#include "guard.hpp"
#include "handles.hpp"
#include "io/io.hpp"
#include "tensor/row_blocks.hpp"
#include "tensor/whole.hpp"
#include "together.hpp"

using namespace td;
using namespace td::c_api;
using solvers::State;

namespace {

constexpr std::string_view record_kind = "cpals checkpoint";

// Counters travel in the record as series of one number each.
io::Record record_of(const State &state) {
  io::Record record;
  record.factors = state.factors.copy();
  record.series = {{"iterations", {static_cast<double>(state.iterations)}},
                   {"exact_residuals", {static_cast<double>(state.exact_residuals)}},
                   {"tensor_norm", {state.tensor_norm}},
                   {"fit", state.fit},
                   {"fit_error", state.fit_error},
                   {"fit_change", state.fit_change},
                   {"residual", state.residual},
                   {"elapsed", state.elapsed},
                   {"effective_rank", state.effective_rank},
                   {"condition", state.condition},
                   {"mttkrp_seconds", state.mttkrp_seconds},
                   {"scales", state.scales},
                   {"weights", state.weights}};
  record.text = {{"kind", std::string(record_kind)}, {"settings", state.settings}};
  return record;
}

template <class Value>
std::optional<Value> find(std::vector<std::pair<std::string, Value>> &list, std::string_view name) {
  for (auto &[key, value] : list)
    if (key == name)
      return std::move(value);
  return std::nullopt;
}

template <class Value>
Value take(std::vector<std::pair<std::string, Value>> &list, std::string_view name, const std::string &path) {
  if (std::optional<Value> value = find(list, name))
    return *std::move(value);
  throw_error(Status::io, "{}: not a checkpoint of CP-ALS: it has no '{}'", path, name);
}

double take_number(io::Record &record, std::string_view name, const std::string &path) {
  const std::vector<double> series = take(record.series, name, path);
  if (series.size() != 1)
    throw_error(Status::io, "{}: '{}' holds {} numbers; expected 1", path, name, series.size());
  return series.front();
}

i64 take_count(io::Record &record, std::string_view name, const std::string &path) {
  constexpr double most = 9007199254740992.0; // 2^53: whole numbers up to here are exact
  const double count = take_number(record, name, path);
  if (!(count >= 0 && count <= most) || count != std::trunc(count))
    throw_error(Status::io, "{}: '{}' is {}; expected a whole number of at least 0", path, name, count);
  return static_cast<i64>(count);
}

State state_of(const std::string &path, const MemoryBudget &budget, Processes *processes) {
  io::Record record = io::read_record(path, budget, readers_of(processes));
  State state;
  if (const std::string kind = take(record.text, "kind", path); kind != record_kind)
    throw_error(Status::io, "{}: is a '{}'; expected a '{}'", path, kind, record_kind);
  state.iterations = take_count(record, "iterations", path);
  state.exact_residuals = take_count(record, "exact_residuals", path);
  state.tensor_norm = take_number(record, "tensor_norm", path);
  state.fit = take(record.series, "fit", path);
  state.fit_error = take(record.series, "fit_error", path);
  state.fit_change = take(record.series, "fit_change", path);
  state.residual = take(record.series, "residual", path);
  state.elapsed = take(record.series, "elapsed", path);
  state.effective_rank = take(record.series, "effective_rank", path);
  state.condition = take(record.series, "condition", path);
  state.mttkrp_seconds = take(record.series, "mttkrp_seconds", path);
  state.settings = take(record.text, "settings", path);
  // Older versions divided the factors in each update.
  state.scales = find(record.series, "scales").value_or(std::vector<double>());
  state.weights = find(record.series, "weights").value_or(std::vector<double>());
  state.factors = std::move(record.factors);
  return state;
}

/// Whether a run could go on from this: a checkpoint's numbers are within f64.
bool is_finite(const State &state) {
  const auto finite = [](double v) { return std::isfinite(v); };
  return finite(state.tensor_norm) && std::all_of(state.residual.begin(), state.residual.end(), finite) &&
         std::all_of(state.factors.weights().begin(), state.factors.weights().end(), finite);
}

/// Writes a checkpoint, several processes together, and gives why that failed, the same on all; nothing if it has not.
/// An error that is no matter of files is thrown.
std::string failure_to_write(Processes *processes, const State &state, const std::string &path) {
  if (!is_finite(state)) // on all of them
    return path + ": the tensor's norm, a residual or a weight is beyond the largest number in f64, expected numbers " +
           "that a run can go on from";
  try {
    try {
      io::write_record(record_of(state), path, writers_of(processes));
      if (processes != nullptr)
        processes->agree();
      return {};
    } catch (const AgreedError &) {
      throw;
    } catch (const Error &e) {
      if (processes == nullptr || e.status() != Status::io)
        throw;
      processes->fail(e.status(), e.what());
    }
  } catch (const Error &e) {
    if (e.status() != Status::io)
      throw;
    if (processes != nullptr)
      processes->begin_call(); // all have the error by now, and go on
    return e.what();
  }
}

// A run of days does not end for want of a place to write to: what cannot be written is said, and the run goes on.
std::string save(const Context &context, const State &state, const std::string &path) {
  std::string failure = failure_to_write(context.processes.get(), state, path);
  if (!failure.empty())
    context.say(1, fmt::format("the checkpoint after {} could not be written, the run goes on: {}",
                               count_text(state.iterations, "iteration", "iterations"), failure));
  return failure;
}

// Lends a report to the callback under a handle that ends with the call, also where the callback does not return.
class LentReport {
public:
  explicit LentReport(const solvers::Report &report)
      : handle_(make_handle<td_report>(std::shared_ptr<const solvers::Report>(std::shared_ptr<void>{}, &report))) {}
  LentReport(const LentReport &) = delete;
  LentReport &operator=(const LentReport &) = delete;
  ~LentReport() { drop_handle(handle_); }

  const td_report *handle() const noexcept { return handle_; }

private:
  td_report *handle_;
};

/// What a run starts from; null for none.
std::shared_ptr<Model> start_for(const Context &context, const td_ktensor *init) {
  if (init == nullptr)
    return nullptr;
  auto start = object_of<td_ktensor>(init, "init");
  if (start->processes != nullptr && start->processes != context.processes)
    throw_error(Status::unsupported, "init: its rows are those of {} processes that do not share this context",
                start->processes->size());
  return start;
}

/// What a process's workers besides the first have of something that it has a block of: none of the rows.
Ktensor without_rows(const Ktensor &k) {
  const RowBlock none{k.block().count, k.block().count};
  Ktensor rest(k.dims(), k.rank(), k.type(), {}, none);
  std::copy(k.weights().begin(), k.weights().end(), rest.weights().begin());
  return rest;
}

/// The same of a checkpoint.
State without_rows(const State &state) {
  return {static_cast<const solvers::History &>(state),
          without_rows(state.factors),
          state.tensor_norm,
          state.settings,
          state.scales,
          state.weights};
}

std::string kind_of(const Model *start) {
  if (start == nullptr)
    return "none";
  return fmt::format("{} {}", name_of(start->type()), start->processes != nullptr);
}

/// One call of td_cpals by a process, for all of its workers.
class CpalsCall {
public:
  CpalsCall(const Context &context, const td_tensor *tensor, std::int64_t rank, const td_ktensor *init,
            const td_options *options)
      : context_(context), labelled_(object_of<td_tensor>(tensor, "tensor")), rank_(rank),
        parts_(parts_for(context, tensor)), start_(start_for(context, init)),
        options_(for_worker(context, options_in(context, options))) {
    if (context.workers != nullptr && start_ != nullptr && !start_->whole())
      rest_ = without_rows(*start_);
    if (context.processes != nullptr)
      context.processes->require_same(
          fmt::format("{} {} {}", rank, kind_of(start_.get()), text_of_scope(options_, "cpals")),
          "td_cpals: rank, options, whether there is an init or its type");
    require_one_kind(context, options_);
    shared_ = context.processes != nullptr && plan::SolverSettings(options_).distributed;
    if (context.workers != nullptr)
      options_.set_text("model", "distributed"); // it is made whole once in a process
    checkpoint_ = options_.text("checkpoint");
    if (!checkpoint_.empty() && (context.processes == nullptr || context.processes->rank() == 0))
      io::require_place_for_record(checkpoint_);
    if (const std::string path = options_.text("resume"); !path.empty()) {
      if (init != nullptr)
        throw_error(
            Status::argument,
            "init: is given with option 'resume' = \"{}\", whose factors the run would go on with; expected one", path);
      resume_.reserve(parts_.size());
      resume_.push_back(state_of(path, context.budget().beside(parts_.front()->bytes()), context.processes.get()));
      while (resume_.size() < parts_.size())
        resume_.push_back(without_rows(resume_.front()));
    }
  }

  solvers::RunResult run(td_progress_fn progress, void *user) {
    std::vector<solvers::RunResult> results(parts_.size());
    run_on_workers(context_, [&](int worker) {
      solvers::RunRequest own = request_of(worker);
      if (progress != nullptr && worker == 0)
        own.progress = [&](const solvers::Report &so_far) { return progress(LentReport(so_far).handle(), user) == 0; };
      results[static_cast<std::size_t>(worker)] = solvers::cpals(own);
    });
    whole_.reset();
    solvers::RunResult result = std::move(results.front());
    result.report.threads = context_.threads();
    for (std::size_t worker = 1; worker < results.size(); ++worker)
      result.report.exchanged_bytes += results[worker].report.exchanged_bytes;
    if (context_.workers != nullptr && !shared_ && !result.model.whole())
      result.model = tensor::gather(*context_.processes, result.model, context_.budget());
    if (Labels labels = labelled_->labels; !labels.empty())
      result.model.labels() = std::move(labels);
    return result;
  }

  /// Whether the processes share the model.
  bool shared() const noexcept { return shared_; }

private:
  solvers::RunRequest request_of(int worker) {
    const auto place = static_cast<std::size_t>(worker);
    solvers::RunRequest own;
    own.tensor = parts_[place].get();
    own.rank = rank_;
    own.options = options_;
    own.devices = context_.describe();
    own.init = worker > 0 && rest_ ? &*rest_ : start_.get();
    own.backends = context_.backends_of(worker);
    if (!checkpoint_.empty())
      own.save = [this, worker](const State &state) {
        std::string failure;
        by_first(context_, worker, [&] { failure = save(context_, state, checkpoint_); });
        return failure;
      };
    own.whole = [this, worker] {
      by_first(context_, worker, [&] {
        whole_ = tensor::whole_of(parts_, *context_.processes, context_.memory_limit, *context_.backends_of(0).front(),
                                  context_.threads());
      });
      if (context_.workers != nullptr)
        context_.workers->of(worker).agree(); // it is there
      return whole_;
    };
    if (!resume_.empty())
      own.resume = std::move(resume_[place]);
    return own;
  }

  const Context &context_;
  std::shared_ptr<const LabelledTensor> labelled_; // the handle may be destroyed while the run works
  std::int64_t rank_;
  Parts parts_;
  std::shared_ptr<Model> start_;
  std::optional<Ktensor> rest_; // of the start, for other workers than the first
  Options options_;
  bool shared_ = false;
  std::string checkpoint_;
  std::vector<State> resume_;                   // [workers] or none
  std::shared_ptr<const tensor::Tensor> whole_; // of all workers here, for a run in order
};

} // namespace

extern "C" {

td_status td_cpals(td_context *context, const td_tensor *tensor, int64_t rank, const td_ktensor *init,
                   const td_options *options, td_progress_fn progress, void *user, td_ktensor **model,
                   td_report **report) {
  return guard([&]() -> td_status {
    const auto c = context_of(context, model);
    if (report != nullptr)
      *report = nullptr;
    td_status status = TD_OK;
    const auto undo = [&] {
      take_back(model);
      take_back(report);
    };
    const auto run = [&] {
      require(model, "model");
      CpalsCall call(*c, tensor, rank, init, options);
      solvers::RunResult result = call.run(progress, user);
      status = result.stopped ? TD_STOPPED : TD_OK;
      c->say_shortage();
      if (report != nullptr)
        *report = make_handle<td_report>(std::make_shared<solvers::Report>(std::move(result.report)));
      *model = make_handle<td_ktensor>(
          std::make_shared<Model>(std::move(result.model), c->budget(), call.shared() ? c->processes : nullptr));
    };
    together(*c, undo, run);
    return status;
  });
}

} // extern "C"
