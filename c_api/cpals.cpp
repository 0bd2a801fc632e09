#include "solvers/cpals.hpp"

#include <cmath>
#include <optional>

#include "core/sentence.hpp"
#include "guard.hpp"
#include "handles.hpp"
#include "io/io.hpp"
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

State state_of(const std::string &path, const MemoryBudget &budget) {
  io::Record record = io::read_record(path, budget);
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

// A run of days does not end for want of a place to write to: what cannot be written is said, and the run goes on.
std::string save(const Context &context, const State &state, const std::string &path) {
  try {
    io::write_record(record_of(state), path);
    return {};
  } catch (const Error &e) {
    if (e.status() != Status::io)
      throw;
    context.say(1, fmt::format("the checkpoint after {} could not be written, the run goes on: {}",
                               count_text(state.iterations, "iteration", "iterations"), e.what()));
    return e.what();
  }
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
      const auto x = tensor_for(*c, tensor);
      const auto start = init == nullptr ? nullptr : object_of(init, "init");

      solvers::RunRequest request;
      request.tensor = x.get();
      request.rank = rank;
      request.init = start.get();
      request.options = options_in(*c, options);
      if (c->processes != nullptr)
        c->processes->require_same(
            fmt::format("{} {} {}", rank, start != nullptr, text_of_scope(request.options, "cpals")),
            "td_cpals: rank, options or whether there is an init");
      request.backends = c->backends;
      request.devices = c->describe();
      if (progress != nullptr)
        request.progress = [&](const solvers::Report &so_far) {
          return progress(LentReport(so_far).handle(), user) == 0;
        };
      if (const std::string path = request.options.text("checkpoint"); !path.empty()) {
        const bool writes = c->processes == nullptr || c->processes->rank() == 0;
        if (writes)
          io::require_place_for_record(path);
        request.save = [path, writes, &c](const State &state) {
          return writes ? save(*c, state, path) : std::string();
        };
      }
      if (const std::string path = request.options.text("resume"); !path.empty())
        request.resume = state_of(path, c->budget().beside(x->bytes()));

      solvers::RunResult result = solvers::cpals(request);
      if (Labels labels = object_of<td_tensor>(tensor, "tensor")->labels; !labels.empty())
        result.model.labels() = std::move(labels);
      status = result.stopped ? TD_STOPPED : TD_OK;
      c->say_shortage();
      if (report != nullptr)
        *report = make_handle<td_report>(std::make_shared<solvers::Report>(std::move(result.report)));
      *model = make_handle<td_ktensor>(std::make_shared<Model>(std::move(result.model), c->budget()));
    };
    together(*c, undo, run);
    return status;
  });
}

} // extern "C"
