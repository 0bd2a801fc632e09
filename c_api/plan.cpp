#include "tensor/planned.hpp"

#include <charconv>

#include "arguments.hpp"
#include "guard.hpp"
#include "handles.hpp"
#include "named.hpp"
#include "reading.hpp"
#include "together.hpp"

using namespace td;
using namespace td::c_api;
using plan::Plan;

namespace {

constexpr NamedValue<Plan, i64> integers[] = {
    {"order", [](const Plan &p) { return static_cast<i64>(p.layout.dims.size()); }},
    {"nnz", [](const Plan &p) { return p.entries(); }},
    {"sparse", [](const Plan &p) { return i64{p.layout.sparse}; }},
    {"rank", [](const Plan &p) { return p.rank; }},
    {"workers", [](const Plan &p) { return i64{p.workers}; }},
    {"threads", [](const Plan &p) { return i64{p.threads}; }},
    {"sweeps", [](const Plan &p) { return p.sweeps; }},
    {"fits", [](const Plan &p) { return i64{p.fits}; }},
    {"host_bytes.tensor", [](const Plan &p) { return p.host.tensor; }},
    {"host_bytes.building", [](const Plan &p) { return p.host.building; }},
    {"host_bytes.solver", [](const Plan &p) { return p.host.solver; }},
    {"host_bytes.peak", [](const Plan &p) { return p.host.peak(); }},
    {"host_bytes.available", [](const Plan &p) { return p.available.bytes; }},
    {"device_bytes.tensor", [](const Plan &p) { return p.device.tensor; }},
    {"device_bytes.building", [](const Plan &p) { return p.device.building; }},
    {"device_bytes.solver", [](const Plan &p) { return p.device.solver; }},
    {"device_bytes.streamed", [](const Plan &p) { return p.device.streamed; }},
    {"device_bytes.exchanged", [](const Plan &p) { return p.layout.shared.processes > 1 ? 0 : p.exchanged; }},
    {"host_bytes.exchanged", [](const Plan &p) { return p.layout.shared.processes > 1 ? p.exchanged : 0; }},
    {"processes", [](const Plan &p) { return i64{p.layout.shared.blocks()}; }},
    {"exchange_messages", [](const Plan &p) { return p.exchange_messages; }},
    {"exchange_calls", [](const Plan &p) { return p.exchange_calls; }},
    {"scales_to", [](const Plan &p) { return i64{p.scales_to}; }},
    {"fastest_processes", [](const Plan &p) { return i64{p.fastest_processes}; }},
    {"device_bytes.peak", [](const Plan &p) { return p.device.peak(); }},
};

constexpr NamedValue<Plan, double> reals[] = {
    {"seconds.iteration",
     [](const Plan &p) { return p.seconds_mttkrp > 0 ? p.seconds_mttkrp + p.seconds_update + p.seconds_exchange : 0; }},
    {"seconds.exchange", [](const Plan &p) { return p.seconds_exchange; }},
    {"seconds.mttkrp", [](const Plan &p) { return p.seconds_mttkrp; }},
    {"seconds.solve", [](const Plan &p) { return p.seconds_update; }},
    {"rate.read", [](const Plan &p) { return p.rates.read; }},
    {"rate.near_rows", [](const Plan &p) { return p.rates.near_rows; }},
    {"rate.middle_rows", [](const Plan &p) { return p.rates.middle_rows; }},
    {"rate.far_rows", [](const Plan &p) { return p.rates.far_rows; }},
    {"rate.operations", [](const Plan &p) { return p.rates.operations; }},
};

std::string assumptions_of(const Plan &p) {
  std::string text;
  for (const std::string &assumption : p.layout.assumptions)
    text += (text.empty() ? "" : "\n") + assumption;
  return text;
}

constexpr NamedValue<Plan, std::string> texts[] = {
    {"format", [](const Plan &p) { return std::string(name_of(p.layout.format)); }},
    {"format.why", [](const Plan &p) { return p.layout.why.format; }},
    {"groups", [](const Plan &p) { return p.layout.groups; }},
    {"groups.why", [](const Plan &p) { return p.layout.why.groups; }},
    {"rows", [](const Plan &p) { return p.layout.rows; }},
    {"rows.why", [](const Plan &p) { return p.layout.why.rows; }},
    {"tiles", [](const Plan &p) { return p.layout.tiles; }},
    {"tiles.why", [](const Plan &p) { return p.layout.why.tiles; }},
    {"conflicts", [](const Plan &p) { return p.conflicts.what; }},
    {"conflicts.why", [](const Plan &p) { return p.conflicts.why; }},
    {"precision", [](const Plan &p) { return p.precision.what; }},
    {"precision.why", [](const Plan &p) { return p.precision.why; }},
    {"dense_kernel", [](const Plan &p) { return p.dense_kernel.what; }},
    {"dense_kernel.why", [](const Plan &p) { return p.dense_kernel.why; }},
    {"sharding", [](const Plan &p) { return p.sharding.what; }},
    {"sharding.why", [](const Plan &p) { return p.sharding.why; }},
    {"exchange", [](const Plan &p) { return p.exchange.what; }},
    {"exchange.why", [](const Plan &p) { return p.exchange.why; }},
    {"devices", [](const Plan &p) { return p.devices; }},
    {"solver", [](const Plan &p) { return p.solver.text(); }},
    {"rate.why", [](const Plan &p) { return p.rates_why; }},
    {"assumptions", assumptions_of},
};

std::vector<double> numbers(const std::vector<i64> &from) { return {from.begin(), from.end()}; }

template <class Get> std::vector<double> of_modes(const Plan &p, Get &&get) {
  std::vector<double> values;
  for (const plan::ModePlan &mode : p.modes)
    get(mode, values);
  return values;
}

constexpr NamedValue<Plan, std::vector<double>> series[] = {
    {"dims", [](const Plan &p) { return numbers(p.layout.dims); }},
    {"rows", [](const Plan &p) { return numbers(p.layout.stored_dims); }},
    {"mttkrp_seconds",
     [](const Plan &p) {
       return of_modes(p, [](const plan::ModePlan &m, std::vector<double> &v) { v.push_back(m.seconds); });
     }},
    {"workspace_bytes",
     [](const Plan &p) {
       return of_modes(p, [](const plan::ModePlan &m, std::vector<double> &v) { v.push_back(m.workspace); });
     }},
    {"imbalance",
     [](const Plan &p) {
       return of_modes(p, [](const plan::ModePlan &m, std::vector<double> &v) { v.push_back(m.imbalance); });
     }},
    {"imbalance_unsplit",
     [](const Plan &p) {
       return of_modes(p, [](const plan::ModePlan &m, std::vector<double> &v) { v.push_back(m.unsplit); });
     }},
    {"scaling_seconds", [](const Plan &p) { return p.scaling; }},
    {"split_rows",
     [](const Plan &p) {
       return of_modes(
           p, [](const plan::ModePlan &m, std::vector<double> &v) { v.push_back(static_cast<double>(m.split_rows)); });
     }},
    {"load",
     [](const Plan &p) {
       return of_modes(
           p, [](const plan::ModePlan &m, std::vector<double> &v) { v.insert(v.end(), m.load.begin(), m.load.end()); });
     }},
};

/// The text of a mode under "name.mode", as in "kernel.2"; null for another key.
const std::string *mode_text(const Plan &p, std::string_view key) {
  for (const auto &[name, member] : {std::pair{std::string_view("kernel."), &plan::ModePlan::kernel},
                                     std::pair{std::string_view("conflicts."), &plan::ModePlan::conflicts}}) {
    if (!key.starts_with(name) || key.ends_with(".why"))
      continue;
    std::size_t mode = 0;
    const auto [end, error] = std::from_chars(key.data() + name.size(), key.data() + key.size(), mode);
    if (error != std::errc{} || end != key.data() + key.size() || mode >= p.modes.size())
      throw_error(Status::option_unknown, "no result '{}': expected {}0 .. {}{}", key, name, name, p.modes.size() - 1);
    return &(p.modes[mode].*member);
  }
  return nullptr;
}

plan::PlanRequest request_in(const Context &context, i64 rank, const td_options *options) {
  plan::PlanRequest request{for_worker(context, options_in(context, options)), rank, context.backends_of(0),
                            context.describe()};
  if (const i64 workers = request.options.integer("workers"); workers > 0) {
    request.backends.resize(static_cast<std::size_t>(workers), request.backends.front());
    request.devices += fmt::format("; planned for {} worker{}, by option 'workers'", workers, workers == 1 ? "" : "s");
  }
  if (const int processes = plan::processes_of(request); processes > 1)
    request.devices += fmt::format("; planned for {} processes, by option 'processes'", processes);
  return request;
}

/// Another worker of the same process: what each takes and sends is added up.
void add_worker(Plan &all, const Plan &other) {
  all.host.tensor += other.host.tensor;
  all.host.building += other.host.building;
  all.host.solver += other.host.solver;
  all.device.tensor += other.device.tensor;
  all.device.building += other.device.building;
  all.device.solver += other.device.solver;
  all.device.streamed += other.device.streamed;
  all.exchanged += other.exchanged;
  if (!all.layout.is_whole_on_each())
    all.layout.nnz += other.layout.nnz;
  all.threads += other.threads;
  all.workers += other.workers;
}

td_plan *handle_of(Plan p) { return make_handle<td_plan>(std::make_shared<const Plan>(std::move(p))); }

} // namespace

extern "C" {

td_status td_plan_create(td_context *context, int32_t order, const int64_t *dims, int64_t nnz, td_type value_type,
                         int64_t rank, const td_options *options, td_plan **out) {
  return guard([&] {
    require_out(out, "out");
    const auto c = object_of(context, "context");
    require_alone(*c, "td_plan_create");
    const auto shape = dims_view(order, dims);
    const plan::PlanRequest request = request_in(*c, rank, options);
    require_no_borrowing(request.options, "a sparse tensor");
    *out = handle_of(plan::plan_of(shape, nnz, c_api::value_type(value_type, "value_type"), request));
  });
}

td_status td_plan_create_dense(td_context *context, int32_t order, const int64_t *dims, td_type value_type,
                               int64_t rank, const td_options *options, td_plan **out) {
  return guard([&] {
    require_out(out, "out");
    const auto c = object_of(context, "context");
    require_alone(*c, "td_plan_create_dense");
    const auto shape = dims_view(order, dims);
    *out = handle_of(
        plan::plan_of_dense(shape, c_api::value_type(value_type, "value_type"), request_in(*c, rank, options)));
  });
}

td_status td_plan_create_for_tensor(td_context *context, const td_tensor *tensor, int64_t rank,
                                    const td_options *options, td_plan **out) {
  return guard([&] {
    require_out(out, "out");
    const auto c = object_of(context, "context");
    const Parts parts = parts_for(*c, tensor);
    const auto &x = parts.front();
    plan::PlanRequest request = request_in(*c, rank, options);
    if (request.backends.size() > 1)
      require_whole(*x, "option 'workers' of a plan");
    if (const int processes = plan::processes_of(request); processes > 1)
      throw_error(Status::unsupported,
                  "option 'processes' = {}: expected at most 1 for a tensor that is there, whose plan is for the "
                  "processes that share it; td_plan_create and td_plan_read plan for others",
                  processes);
    require_one_kind(*c, request.options);
    Plan all = tensor::plan_of(*x, request);
    for (int worker = 1; worker < c->meeting_workers(); ++worker) {
      request.backends = c->backends_of(worker);
      add_worker(all, tensor::plan_of(*parts[static_cast<std::size_t>(worker)], request));
    }
    *out = handle_of(std::move(all));
  });
}

td_status td_plan_read(td_context *context, const char *path, int64_t rank, const td_options *options, td_plan **out) {
  return guard([&] {
    require_out(out, "out");
    const auto c = object_of(context, "context");
    require_alone(*c, "td_plan_read");
    require(path, "path");
    const plan::PlanRequest request = request_in(*c, rank, options);
    require_no_borrowing(request.options, "a tensor that is read from a file");
    Options reading = request.options;
    reading.set_text("memory_limit", "0"); // a plan says what would not fit: reading may take what the system has
    io::ReadTensor file = read_for(*c, path, reading);
    if (auto *entries = std::get_if<Entries>(&file.content)) {
      *out = handle_of(plan::processes_of(request) > 1 ? tensor::plan_of_processes(entries->view(), request)
                                                       : plan::plan_of(entries->view(), request));
    } else {
      const DenseArrayView array = std::get<DenseArray>(file.content).view();
      *out = handle_of(plan::plan_of_dense(array.dims, array.value_type, request));
    }
  });
}

td_status td_plan_share(const td_plan *plan, td_plan **out) {
  return guard([&] {
    require_out(out, "out");
    *out = make_handle<td_plan>(object_of(plan, "plan"));
  });
}

void td_plan_destroy(td_plan *plan) { drop_handle(plan); }

td_status td_plan_get_i64(const td_plan *plan, const char *key, int64_t *value) {
  return guard([&] {
    const auto p = object_of(plan, "plan");
    require(value, "value");
    *value = named(integers, *p, key);
  });
}

td_status td_plan_get_f64(const td_plan *plan, const char *key, double *value) {
  return guard([&] {
    const auto p = object_of(plan, "plan");
    require(value, "value");
    *value = named(reals, *p, key);
  });
}

td_status td_plan_get_str(const td_plan *plan, const char *key, char *buf, int64_t cap, int64_t *needed) {
  return guard([&] {
    const auto p = object_of(plan, "plan");
    require(key, "key");
    const std::string *of_mode = mode_text(*p, key);
    copy_text(of_mode != nullptr ? *of_mode : named(texts, *p, key), buf, cap, needed);
  });
}

td_status td_plan_get_series(const td_plan *plan, const char *key, double *values, int64_t cap, int64_t *n) {
  return guard([&] {
    const auto p = object_of(plan, "plan");
    copy_series(named(series, *p, key), values, cap, n);
  });
}

td_status td_plan_describe(const td_plan *plan, char *buf, int64_t cap, int64_t *needed) {
  return guard([&] { copy_text(object_of(plan, "plan")->describe(), buf, cap, needed); });
}

} // extern "C"
