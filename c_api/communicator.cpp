#include <fmt/ranges.h>

#include "comm/gpu_choice.hpp"
#include "together.hpp"

namespace td::c_api {

void tell_others(Processes &processes) {
  const td_status status = status_of_current_exception();
  processes.fail(static_cast<Status>(status), last_error_text());
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
void require_one_worker(std::string_view devices, const Options &options) {
  if (devices.starts_with("cpu:"))
    kernels::parse_devices(devices); // what has no meaning is refused as elsewhere
  if (devices.starts_with("cpu:") || devices == "cuda:all" || devices.find(',') != devices.npos)
    throw_error(Status::unsupported,
                "devices = \"{}\" in a context that processes share: expected \"cpu\", \"cuda:local\" or one GPU; the "
                "workers are the processes, each with its threads or a GPU",
                devices);
  if (options.choice<kernels::Exchange>("exchange") == kernels::Exchange::peer)
    throw_error(Status::unsupported,
                "option 'exchange' = \"peer\" in a context that processes share: a GPU does not copy out of the memory "
                "of another process; expected auto or host");
}

/// The device of this process: of "cuda:local" a GPU for each process of a machine, of "auto" too, if there are enough
/// for all processes.
std::string own_device(Processes &processes, std::string_view devices, const Options &options) {
  require_one_worker(devices, options);
  const bool automatic = devices == "auto";
  const bool gpu = devices.starts_with("cuda");
  processes.require_same(fmt::format("{} {} {}",
                                     automatic ? "auto"
                                     : gpu     ? "cuda"
                                               : "cpu",
                                     options.text("exchange"), options.integer("virtual_devices")),
                         "devices (GPUs, or none), or options 'exchange' or 'virtual_devices',");
  if (!automatic && !gpu)
    return std::string(devices);
  const bool local = automatic || devices == "cuda:local";
  const bool shared = options.integer("virtual_devices") == 1;
  std::vector<i64> gpus;
  try {
    gpus = kernels::list_gpus();
  } catch (const Error &error) {
    if (!automatic || error.status() != Status::backend_unavailable)
      throw;
  }
  const std::size_t named = local ? 0 : static_cast<std::size_t>(kernels::parse_devices(devices).devices.front());
  if (!local && named < gpus.size()) // else it is refused when it is opened
    gpus = {gpus[named]};
  const int chosen = choose_gpu(processes, gpus, shared);
  if (automatic)
    return processes.any(chosen < 0) ? "cpu" : fmt::format("cuda:{}", chosen);
  if (chosen < 0)
    throw_error(Status::backend_unavailable,
                "devices = \"{}\": {} has a process of a smaller rank; expected {}a GPU for each process, or option "
                "'virtual_devices' = 1, by which several share one",
                devices, local ? fmt::format("each of the GPUs that this process sees, {},", gpus.size()) : "this GPU",
                local ? "" : "\"cuda:local\", ");
  return local ? fmt::format("cuda:{}", chosen) : std::string(devices);
}

} // namespace

std::shared_ptr<const tensor::Tensor> store(const Context &context, const formats::Given &given, const Options &options,
                                            std::string source) {
  if (context.processes == nullptr)
    return tensor::Tensor::make_sparse(given, options, context.threads(), std::move(source), context.target(),
                                       context.builders());
  const EntriesView &entries = given.on_host();
  formats::check_shape(entries);
  require_same(context, entries.dims, entries.value_type, options);
  formats::check_entries(entries, context.threads());
  return tensor::Tensor::make_distributed(
      tensor::distribute(context.processes, entries, context.budget(), context.threads()), options, context.threads(),
      std::move(source), context.target(), context.backends.front().get());
}

std::shared_ptr<const tensor::Tensor> store(const Context &context, std::span<const i64> dims,
                                            const tensor::DenseBlock &block, const Options &options,
                                            std::string source) {
  require_same(context, dims, block.elements.value_type, options);
  return tensor::Tensor::make_distributed(
      tensor::distribute(context.processes, dims, block, context.budget(), context.threads()), options,
      context.threads(), std::move(source), context.target());
}

void require_alone(const Context &context, std::string_view call) {
  if (context.processes != nullptr)
    throw_error(Status::unsupported, "{} in a context that {} processes share; expected one of td_context_create", call,
                context.processes->size());
}

void require_whole(const tensor::Tensor &x, std::string_view call) {
  if (x.distribution() != nullptr)
    throw_error(Status::unsupported,
                "{} of a tensor that {} processes share; expected one that was made in a context of td_context_create",
                call, x.distribution()->processes().size());
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
      make_process_communicator(*processes, *context->backends.front()); // it connects GPUs, or says why it cannot
      processes->agree();                                                // all have come as far
      *out = make_handle<td_context>(std::move(context));
    });
  });
}

} // extern "C"
