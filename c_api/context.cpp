#include <unistd.h>

#include "core/team.hpp"
#include "guard.hpp"
#include "handles.hpp"

namespace td::c_api {

tensor::Builders Context::builders() const {
  tensor::Builders all;
  for (const auto &backend : backends)
    all.push_back(backend.get());
  return all;
}

int Context::threads() const {
  int n = 0;
  for (const auto &backend : backends)
    n += backend->threads();
  return n;
}

std::vector<std::shared_ptr<kernels::Backend>> Context::backends_of(int worker) const {
  if (workers == nullptr)
    return backends;
  return {backends[static_cast<std::size_t>(worker)]};
}

int Context::threads_of(int worker) const {
  return workers == nullptr ? threads() : backends[static_cast<std::size_t>(worker)]->threads();
}

std::string Context::describe() const {
  const std::string one = backends.front()->describe();
  if (workers != nullptr) {
    std::string all = fmt::format("process {} of {}, {} of {} workers: {}", processes->rank(), processes->size(),
                                  workers->size(), workers->total(), one);
    for (std::size_t worker = 1; worker < backends.size(); ++worker)
      all += "; " + backends[worker]->describe();
    return all;
  }
  if (processes != nullptr)
    return fmt::format("process {} of {}, {}", processes->rank(), processes->size(), one);
  if (backends.size() == 1)
    return one;
  if (!backends.front()->has_own_memory())
    return fmt::format("{} workers, each {}", backends.size(), one);
  std::string all = fmt::format("{} workers: {}", backends.size(), one);
  for (std::size_t worker = 1; worker < backends.size(); ++worker)
    all += "; " + backends[worker]->describe();
  return all;
}

std::shared_ptr<Context> open_context(const char *devices, const Options &options) {
  auto context = std::make_shared<Context>();
  context->memory_limit = options.integer("memory_limit");
  context->spec = kernels::parse_devices(devices, options.integer("virtual_devices") == 1);
  context->spec.memory_limit = options.integer("device_memory_limit");
  context->spec.exchange = options.choice<kernels::Exchange>("exchange");
  context->backends = kernels::open_backends(context->spec, static_cast<int>(options.integer("threads")));
  if (context->spec.kind == kernels::DeviceSpec::Kind::cuda)
    context->gpu_process = getpid();
  return context;
}

void Context::require_own_process() const {
  if (gpu_process != 0 && gpu_process != getpid())
    throw_error(
        Status::backend_unavailable,
        "context: its GPU was opened by process {}, of which this one, {}, is a fork, and CUDA does not work in "
        "both: start a new program (exec; in Python, multiprocessing's \"spawn\"), or use a context of \"cpu\"",
        gpu_process, getpid());
}

void Context::say_shortage() const {
  const ThreadShortage s = take_thread_shortage();
  if (s.wanted > s.started)
    say(1, fmt::format("threads: {} were wanted and {} could be started; the work went on with these", s.wanted,
                       s.started));
}

} // namespace td::c_api

using namespace td;
using namespace td::c_api;

extern "C" {

td_status td_context_create(const char *devices, const td_options *options, td_context **out) {
  return guard([&] {
    require_out(out, "out");
    require(devices, "devices");
    *out = make_handle<td_context>(open_context(devices, options_or_defaults(options)));
  });
}

td_status td_context_share(const td_context *context, td_context **out) {
  return guard([&] {
    require_out(out, "out");
    *out = make_handle<td_context>(object_of(context, "context"));
  });
}

void td_context_destroy(td_context *context) { drop_handle(context); }

td_status td_context_set_log(td_context *context, td_log_fn log, void *user) {
  return guard([&] {
    const auto c = object_of(context, "context");
    c->log = log;
    c->log_user = user;
  });
}

td_status td_context_set_stream(td_context *context, int32_t slot, void *stream) {
  return guard([&] {
    const auto c = object_of(context, "context");
    if (slot < 0 || static_cast<std::size_t>(slot) >= c->backends.size())
      throw_error(Status::argument, "slot = {}: expected 0 .. {}, one of the context's devices", slot,
                  c->backends.size() - 1);
    c->backends[static_cast<std::size_t>(slot)]->follow(stream);
  });
}

td_status td_context_describe(const td_context *context, char *buf, int64_t cap, int64_t *needed) {
  return guard([&] { copy_text(object_of(context, "context")->describe(), buf, cap, needed); });
}

} // extern "C"
