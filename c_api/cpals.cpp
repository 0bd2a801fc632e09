#include "solvers/cpals.hpp"

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

/// Writes a checkpoint, several processes together, and gives why that failed, the same on all; nothing if it has not.
/// An error that is no matter of files is thrown.
std::string failure_to_write(Processes *processes, const State &state, const std::string &path) {
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
      const Parts parts = parts_for(*c, tensor);
      const auto start = start_for(*c, init);
      std::optional<Ktensor> rest; // of the start, for other workers than the first
      if (c->workers != nullptr && start != nullptr && !start->whole())
        rest = without_rows(*start);

      Options o = for_worker(*c, options_in(*c, options));
      if (c->processes != nullptr)
        c->processes->require_same(fmt::format("{} {} {}", rank, kind_of(start.get()), text_of_scope(o, "cpals")),
                                   "td_cpals: rank, options, whether there is an init or its type");
      require_one_kind(*c, o);
      const bool shared = c->processes != nullptr && plan::SolverSettings(o).distributed;
      if (c->workers != nullptr)
        o.set_text("model", "distributed"); // it is made whole once in a process
      const std::string checkpoint = o.text("checkpoint");
      if (!checkpoint.empty() && (c->processes == nullptr || c->processes->rank() == 0))
        io::require_place_for_record(checkpoint);
      std::optional<State> resume;
      if (const std::string path = o.text("resume"); !path.empty())
        resume = state_of(path, c->budget().beside(parts.front()->bytes()), c->processes.get());

      std::vector<State> others_resume(parts.size());
      for (std::size_t worker = 1; worker < parts.size() && resume; ++worker)
        others_resume[worker] = without_rows(*resume);
      std::shared_ptr<const tensor::Tensor> whole; // of all workers here, for a run in order
      std::vector<solvers::RunResult> results(parts.size());
      run_on_workers(*c, [&](int worker) {
        const auto place = static_cast<std::size_t>(worker);
        solvers::RunRequest own;
        own.tensor = parts[place].get();
        own.rank = rank;
        own.options = o;
        own.devices = c->describe();
        own.init = worker > 0 && rest ? &*rest : start.get();
        own.backends = c->backends_of(worker);
        if (progress != nullptr && worker == 0)
          own.progress = [&](const solvers::Report &so_far) {
            return progress(LentReport(so_far).handle(), user) == 0;
          };
        if (!checkpoint.empty())
          own.save = [&c, &checkpoint, worker](const State &state) {
            std::string failure;
            by_first(*c, worker, [&] { failure = save(*c, state, checkpoint); });
            return failure;
          };
        own.whole = [&, worker] {
          by_first(*c, worker, [&] {
            whole = tensor::whole_of(parts, *c->processes, c->memory_limit, *c->backends_of(0).front(), c->threads());
          });
          if (c->workers != nullptr)
            c->workers->of(worker).agree(); // it is there
          return whole;
        };
        if (resume)
          own.resume = worker == 0 ? std::move(*resume) : std::move(others_resume[place]);
        results[place] = solvers::cpals(own);
      });
      whole.reset();
      solvers::RunResult &result = results.front();
      result.report.threads = c->threads();
      for (std::size_t worker = 1; worker < results.size(); ++worker)
        result.report.exchanged_bytes += results[worker].report.exchanged_bytes;
      if (c->workers != nullptr && !shared && !result.model.whole())
        result.model = tensor::gather(*c->processes, result.model, c->budget());
      if (Labels labels = object_of<td_tensor>(tensor, "tensor")->labels; !labels.empty())
        result.model.labels() = std::move(labels);
      status = result.stopped ? TD_STOPPED : TD_OK;
      c->say_shortage();
      if (report != nullptr)
        *report = make_handle<td_report>(std::make_shared<solvers::Report>(std::move(result.report)));
      *model = make_handle<td_ktensor>(
          std::make_shared<Model>(std::move(result.model), c->budget(), shared ? c->processes : nullptr));
    };
    together(*c, undo, run);
    return status;
  });
}

} // extern "C"
