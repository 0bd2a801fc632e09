#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>

#include <fmt/ranges.h>

#include "comm/processes.hpp"
#include "core/sentence.hpp"
#include "together.hpp"

namespace td::c_api {

void notify_others(Processes &processes) {
  bool named = false; // by those who met in another way
  try {
    throw;
  } catch (const AgreedError &) {
    named = true;
  } catch (...) { // its status and text are all that is wanted
  }
  const td_status status = status_of_current_exception();
  processes.fail(static_cast<Status>(status), last_error_text(), named);
}

namespace {

/// Threads of a process's workers, which begin when it is known that all could be started.
class Gate {
public:
  void open(bool go) {
    const std::lock_guard lock(mutex_);
    state_ = go ? 1 : -1;
    changed_.notify_all();
  }
  bool pass() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return state_ != 0; });
    return state_ > 0;
  }

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int state_ = 0;
};

/// The work of one worker. Gives what all workers throw, if one has failed.
std::exception_ptr work_on(Processes &others, const std::function<void()> &body) {
  try {
    try {
      others.begin_call();
      body();
      others.agree();
      return nullptr;
    } catch (const abi::__forced_unwind &) {
      try {
        others.fail(Status::internal, "a callback ended its thread");
      } catch (const Error &) { // the others have it; this thread ends
      }
      throw;
    } catch (...) {
      notify_others(others);
    }
  } catch (const abi::__forced_unwind &) {
    throw;
  } catch (...) {
    return std::current_exception();
  }
}

} // namespace

void run_on_workers(const Context &context, const std::function<void(int)> &body) {
  if (context.workers == nullptr)
    return body(0);
  Gate gate;
  std::exception_ptr failure;
  {
    std::vector<std::jthread> threads; // joined on leaving this block
    const auto work = [&](int worker) { return work_on(context.workers->of(worker), [&] { body(worker); }); };
    try {
      for (int worker = 1; worker < context.meeting_workers(); ++worker)
        threads.emplace_back([&, worker] {
          if (gate.pass())
            work(worker);
        });
      context.processes->agree(); // the others have theirs
    } catch (const std::system_error &e) {
      gate.open(false);
      throw_error(Status::host_memory, "{} workers: a thread could not be started: {}", context.meeting_workers(),
                  e.what());
    } catch (...) {
      gate.open(false);
      throw;
    }
    gate.open(true);
    failure = work(0);
  }
  if (failure)
    std::rethrow_exception(failure);
}

void by_first(const Context &context, int worker, const std::function<void()> &body) {
  if (context.workers == nullptr)
    return body();
  context.workers->of(worker).agree(); // none is where it would meet workers
  if (worker == 0)
    together(
        context.processes.get(), [] {}, body);
}

std::string text_of_scope(const Options &options, std::string_view scope) {
  std::string text;
  for (const OptionRow &row : option_table())
    if (row.scope == scope)
      text += options.text(row.name) + "\n";
  return text;
}

namespace {

void require_same(const Context &context, std::span<const i64> dims, ValueType type, const Options &options) {
  context.processes->require_same(
      fmt::format("{} {} {}", fmt::join(dims, " "), name_of(type), text_of_scope(options, "tensor")),
      "order, dims, value_type or options of a tensor");
}

/// Throws Status::unsupported for what processes that share a context cannot have.
void require_possible(std::string_view devices, const Options &options) {
  if (devices.starts_with("cpu:"))
    kernels::parse_devices(devices); // what has no meaning is refused as elsewhere
  if (devices.starts_with("cpu:"))
    throw_error(Status::unsupported,
                "devices = \"{}\" in a context that processes share: expected \"cpu\", \"cuda:local\" or GPUs; the "
                "workers are the processes, each with its threads, or their GPUs",
                devices);
  if (options.choice<kernels::Exchange>("exchange") == kernels::Exchange::peer)
    throw_error(Status::unsupported,
                "option 'exchange' = \"peer\" in a context that processes share: a GPU does not copy out of the memory "
                "of another process; expected auto or host");
}

/// Throws Status::backend_unavailable where a process of a smaller rank has one of these GPUs.
void require_own(Processes &processes, std::string_view devices, std::span<const i64> gpus) {
  double most = static_cast<double>(gpus.size());
  processes.all_reduce({&most, 1}, Reduction::max);
  std::vector<i64> mine(gpus.begin(), gpus.end());
  mine.resize(static_cast<std::size_t>(most), 0);
  const std::vector<i64> all = processes.all_gather(mine);
  const auto before = all.begin() + processes.rank() * std::ssize(mine);
  for (std::size_t k = 0; k < gpus.size(); ++k)
    if (std::find(all.begin(), before, gpus[k]) != before)
      throw_error(
          Status::backend_unavailable,
          "devices = \"{}\": GPU {} of these has a process of a smaller rank; expected GPUs of its own for each "
          "process, or option 'virtual_devices' = 1, by which several share one",
          devices, k);
}

/// The device of this process: of "cuda:local" a GPU for each process of a machine, of "auto" too, if there are enough
/// for all processes. Some have a GPU and others none only where all is exchanged by way of the host, and that was
/// asked for.
std::string own_device(Processes &processes, std::string_view devices, const Options &options) {
  require_possible(devices, options);
  const bool automatic = devices == "auto";
  const bool gpu = devices.starts_with("cuda");
  const bool mixes = options.choice<kernels::Exchange>("exchange") == kernels::Exchange::host;
  processes.require_same(fmt::format("{} {} {}",
                                     automatic      ? "auto"
                                     : gpu || mixes ? "cuda"
                                                    : "cpu",
                                     options.text("exchange"), options.integer("virtual_devices")),
                         "devices (GPUs, or none, unless option 'exchange' is host), or options 'exchange' or "
                         "'virtual_devices',");
  if (!automatic && !(mixes ? processes.any(gpu) : gpu))
    return std::string(devices);
  const bool local = automatic || devices == "cuda:local";
  const bool named = gpu && !local;
  const bool shared = options.integer("virtual_devices") == 1;
  std::vector<i64> gpus;
  try {
    if (gpu || automatic)
      gpus = kernels::list_gpus();
  } catch (const Error &error) {
    if (!automatic || error.status() != Status::backend_unavailable)
      throw;
  }
  const auto spec = named ? kernels::parse_devices(devices, shared) : kernels::DeviceSpec{};
  if (processes.any(named && spec.workers != 1)) { // then nothing is chosen for anybody
    if (local)
      throw_error(
          Status::unsupported,
          "devices = \"{}\" on this process, and several GPUs on another: expected each process to name its GPUs",
          devices);
    std::vector<i64> own;
    for (const int ordinal : spec.devices)
      if (static_cast<std::size_t>(ordinal) < gpus.size()) // else it is refused when it is opened
        own.push_back(gpus[static_cast<std::size_t>(ordinal)]);
    if (!shared)
      require_own(processes, devices, spec.workers == 0 ? gpus : own);
    return std::string(devices);
  }
  if (named && static_cast<std::size_t>(spec.devices.front()) < gpus.size())
    gpus = {gpus[static_cast<std::size_t>(spec.devices.front())]};
  const int chosen = choose_gpu(processes, gpus, shared);
  if (automatic)
    return processes.any(chosen < 0) ? "cpu" : fmt::format("cuda:{}", chosen);
  if (gpu && chosen < 0)
    throw_error(Status::backend_unavailable,
                "devices = \"{}\": {} has a process of a smaller rank; expected {}a GPU for each process, or option "
                "'virtual_devices' = 1, by which several share one",
                devices, local ? fmt::format("each of the GPUs that this process sees, {},", gpus.size()) : "this GPU",
                local ? "" : "\"cuda:local\", ");
  return local ? fmt::format("cuda:{}", chosen) : std::string(devices);
}

} // namespace

Parts store(const Context &context, const formats::Given &given, const Options &options, std::string source) {
  if (context.processes == nullptr)
    return {tensor::Tensor::make_sparse(given, options, context.threads(), std::move(source), context.target(),
                                        context.builders())};
  const EntriesView &entries = given.on_host();
  formats::check_shape(entries);
  require_same(context, entries.dims, entries.value_type, options);
  formats::check_entries(entries, context.threads());
  Parts parts(static_cast<std::size_t>(context.meeting_workers()));
  run_on_workers(context, [&](int worker) {
    EntriesView mine = entries;
    if (worker > 0)
      mine.nnz = 0; // the first worker brings what the process does
    const Options own = for_worker(context, options);
    const int threads = context.threads_of(worker);
    const MemoryBudget budget(own.integer("memory_limit"), 0);
    parts[static_cast<std::size_t>(worker)] = tensor::Tensor::make_distributed(
        tensor::distribute(context.others_of(worker), mine, budget, threads), own, threads, source, context.target(),
        context.backends[static_cast<std::size_t>(worker)].get());
  });
  return parts;
}

Parts store(const Context &context, std::span<const i64> dims, const tensor::DenseBlock &block, const Options &options,
            std::string source) {
  require_same(context, dims, block.elements.value_type, options);
  const std::vector<i64> nothing(dims.size());
  const tensor::DenseBlock none{nothing, {nothing, {}, block.elements.value_type, block.elements.values}};
  Parts parts(static_cast<std::size_t>(context.meeting_workers()));
  run_on_workers(context, [&](int worker) {
    const Options own = for_worker(context, options);
    const int threads = context.threads_of(worker);
    const MemoryBudget budget(own.integer("memory_limit"), 0);
    parts[static_cast<std::size_t>(worker)] = tensor::Tensor::make_distributed(
        tensor::distribute(context.others_of(worker), dims, worker == 0 ? block : none, budget, threads), own, threads,
        source, context.target());
  });
  return parts;
}

void require_one_kind(const Context &context, const Options &options) {
  if (context.mixed && plan::SolverSettings(options).deterministic)
    throw_error(Status::unsupported,
                "option 'deterministic' = 1 on {} processes of which some have GPUs and others none, whose sums differ "
                "in their last bits; expected devices of one kind",
                context.processes->size());
}

void require_alone(const Context &context, std::string_view call) {
  if (context.processes != nullptr)
    throw_error(Status::unsupported, "{} in a context that {}; expected one of td_context_create", call,
                count_text(context.processes->size(), "process shares", "processes share"));
}

void require_whole(const tensor::Tensor &x, std::string_view call) {
  if (x.distribution() != nullptr)
    throw_error(Status::unsupported,
                "{} of a tensor that {}; expected one that was made in a context of td_context_create", call,
                count_text(x.distribution()->processes().processes(), "process shares", "processes share"));
}

} // namespace td::c_api

using namespace td;
using namespace td::c_api;

extern "C" {

td_status td_communicator_create(int32_t rank, int32_t size, td_all_reduce_fn all_reduce,
                                 td_all_to_all_v_fn all_to_all_v, td_broadcast_fn broadcast, td_abort_fn abort,
                                 td_release_fn release, void *user, td_communicator **out) {
  return guard([&] {
    require_out(out, "out");
    if (size < 1)
      throw_error(Status::argument, "size = {}: expected 1 or more", size);
    if (rank < 0 || rank >= size)
      throw_error(Status::argument, "rank = {}: expected 0 .. {}", rank, size - 1);
    const auto require_function = [](bool there, const char *name) {
      if (!there)
        throw_error(Status::argument, "{}: null function", name);
    };
    require_function(all_reduce != nullptr, "all_reduce");
    require_function(all_to_all_v != nullptr, "all_to_all_v");
    require_function(broadcast != nullptr, "broadcast");
    require_function(abort != nullptr, "abort");
    ProcessFunctions functions{all_reduce, all_to_all_v, broadcast, abort, nullptr, user};
    auto processes = std::make_shared<Processes>(rank, size, functions);
    *out = make_handle<td_communicator>(processes);
    processes->release_by(release); // from now on: what was refused is the caller's still
  });
}

void td_communicator_destroy(td_communicator *communicator) { drop_handle(communicator); }

td_status td_context_create_distributed(const char *devices, const td_options *options, td_communicator *communicator,
                                        td_context **out) {
  return guard([&] {
    if (out != nullptr)
      *out = nullptr;
    const auto processes = object_of(communicator, "communicator");
    Context shared;
    shared.processes = processes;
    make_together(shared, out, [&] {
      require(devices, "devices");
      const Options o = options_or_defaults(options);
      auto context = open_context(own_device(*processes, devices, o).c_str(), o);
      context->processes = processes;
      const bool gpu = context->spec.kind == kernels::DeviceSpec::Kind::cuda;
      context->mixed = processes->any(gpu) && processes->any(!gpu);
      if (context->mixed) // all call the same functions in the same order
        for (const auto &backend : context->backends)
          backend->set_exchange(kernels::Exchange::host);
      const int here = static_cast<int>(context->backends.size());
      if (processes->any(here > 1))
        context->workers = ProcessWorkers::make(processes, here);
      run_on_workers(*context, [&](int worker) { // it connects GPUs, or says why it cannot
        make_process_communicator(*context->others_of(worker), *context->backends[static_cast<std::size_t>(worker)]);
      });
      processes->agree(); // all have come as far
      *out = make_handle<td_context>(std::move(context));
    });
  });
}

} // extern "C"
