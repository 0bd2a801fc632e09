#include "solvers/cpals.hpp"

#include "guard.hpp"
#include "handles.hpp"
#include "io/io.hpp"

using namespace td;
using namespace td::c_api;
using solvers::State;

namespace {

// Counters travel in the record as series of one number each.
io::Record record_of(const State &state) {
  io::Record record;
  record.factors = state.factors.copy();
  record.series = {{"iterations", {static_cast<double>(state.iterations)}},
                   {"exact_residuals", {static_cast<double>(state.exact_residuals)}},
                   {"tensor_norm", {state.tensor_norm}},
                   {"fit", state.fit},
                   {"fit_change", state.fit_change},
                   {"residual", state.residual},
                   {"elapsed", state.elapsed},
                   {"effective_rank", state.effective_rank},
                   {"mttkrp_seconds", state.mttkrp_seconds}};
  record.text = {{"kind", "cpals checkpoint"}, {"settings", state.settings}};
  return record;
}

template <class Value>
Value take(std::vector<std::pair<std::string, Value>> &list, std::string_view name, const std::string &path) {
  for (auto &[key, value] : list)
    if (key == name)
      return std::move(value);
  throw_error(Status::io, "{}: not a checkpoint of CP-ALS: it has no '{}'", path, name);
}

double take_number(io::Record &record, std::string_view name, const std::string &path) {
  const std::vector<double> series = take(record.series, name, path);
  if (series.size() != 1)
    throw_error(Status::io, "{}: '{}' holds {} numbers; expected 1", path, name, series.size());
  return series.front();
}

State state_of(const std::string &path, const MemoryBudget &budget) {
  io::Record record = io::read_record(path, budget);
  State state;
  state.iterations = static_cast<i64>(take_number(record, "iterations", path));
  state.exact_residuals = static_cast<i64>(take_number(record, "exact_residuals", path));
  state.tensor_norm = take_number(record, "tensor_norm", path);
  state.fit = take(record.series, "fit", path);
  state.fit_change = take(record.series, "fit_change", path);
  state.residual = take(record.series, "residual", path);
  state.elapsed = take(record.series, "elapsed", path);
  state.effective_rank = take(record.series, "effective_rank", path);
  state.mttkrp_seconds = take(record.series, "mttkrp_seconds", path);
  state.settings = take(record.text, "settings", path);
  state.factors = std::move(record.factors);
  return state;
}

/// A report under a handle that ends with the callback it is lent to, also where the callback ends by an exception: the
/// handle must not outlive the report, which is the run's.
class Lent {
public:
  explicit Lent(const solvers::Report &report)
      : handle_(make_handle<td_report>(std::shared_ptr<const solvers::Report>(std::shared_ptr<void>{}, &report))) {}
  Lent(const Lent &) = delete;
  Lent &operator=(const Lent &) = delete;
  ~Lent() { drop_handle(handle_); }
  const td_report *handle() const noexcept { return handle_; }

private:
  td_report *handle_;
};

bool call_progress(td_progress_fn progress, void *user, const solvers::Report &so_far) {
  const Lent lent(so_far);
  return progress(lent.handle(), user) == 0;
}

} // namespace

extern "C" {

td_status td_cpals(td_context *context, const td_tensor *tensor, int64_t rank, const td_ktensor *init,
                   const td_options *options, td_progress_fn progress, void *user, td_ktensor **model,
                   td_report **report) {
  return guard([&]() -> td_status {
    require_out(model, "model");
    if (report != nullptr)
      *report = nullptr;
    const auto c = object_of(context, "context");
    const auto x = object_of(tensor, "tensor");
    const auto start = init == nullptr ? nullptr : object_of(init, "init");

    solvers::CpalsRequest request;
    request.tensor = x.get();
    request.rank = rank;
    request.init = start.get();
    request.options = options_in(*c, options);
    request.backends = c->backends;
    request.devices = c->describe();
    if (progress != nullptr)
      request.progress = [&](const solvers::Report &so_far) { return call_progress(progress, user, so_far); };
    if (const std::string path = request.options.text("checkpoint"); !path.empty())
      request.save = [path](const State &state) { io::write_record(record_of(state), path); };
    if (const std::string path = request.options.text("resume"); !path.empty())
      request.resume = state_of(path, c->budget().beside(x->bytes()));

    solvers::CpalsResult result = solvers::cpals(request);
    td_report *report_handle =
        report == nullptr ? nullptr
                          : make_handle<td_report>(std::make_shared<solvers::Report>(std::move(result.report)));
    try {
      *model = make_handle<td_ktensor>(std::make_shared<Model>(std::move(result.model), c->budget()));
    } catch (...) {
      drop_handle(report_handle);
      throw;
    }
    if (report != nullptr)
      *report = report_handle;
    return result.stopped ? TD_STOPPED : TD_OK;
  });
}

} // extern "C"
