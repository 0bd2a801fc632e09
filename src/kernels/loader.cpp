#include "kernels/loader.hpp"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <optional>

#include <dlfcn.h>
#include <unistd.h>

#include "core/beside.hpp"
#include "core/error.hpp"
#include "core/parallel.hpp"
#include "kernels/cpu/backend.hpp"
#include "kernels/cuda_library.hpp"
#include "kernels/reference/backend.hpp"

namespace td::kernels {

namespace {

// Each worker is a thread of its own with replicas of the factors; more than this is a slip of the finger.
constexpr int most_workers = 1024;

[[noreturn]] void refuse_devices(std::string_view text, std::string_view reason) {
  throw_error(Status::argument,
              "devices \"{}\": {}; expected \"auto\", \"cpu\", \"cpu:P\" with P workers, \"reference\", \"cuda\", "
              "\"cuda:0,2\" or \"cuda:all\"",
              text, reason);
}

std::optional<int> whole_number(std::string_view text) {
  int value = 0;
  const char *end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (text.empty() || error != std::errc{} || stop != end)
    return std::nullopt;
  return value;
}

std::vector<int> parse_ordinals(std::string_view text, std::string_view list, bool virtual_devices) {
  std::vector<int> ordinals;
  while (true) {
    const auto comma = list.find(',');
    const std::string_view item = list.substr(0, comma);
    const auto ordinal = whole_number(item);
    if (!ordinal || *ordinal < 0)
      refuse_devices(text, fmt::format("\"{}\" is no device number", item));
    if (!virtual_devices && std::find(ordinals.begin(), ordinals.end(), *ordinal) != ordinals.end())
      refuse_devices(text, fmt::format("device {} comes twice", *ordinal));
    ordinals.push_back(*ordinal);
    if (comma == std::string_view::npos)
      return ordinals;
    list.remove_prefix(comma + 1);
  }
}

/// The entry of libtd_cuda, or null and the reason. The library stays loaded: CUDA does not survive being unloaded.
CudaOpen *find_cuda(std::string &why) {
  why.clear();
  for (const char *name : {"libtd_cuda.so." TD_ABI_VERSION, "libtd_cuda.so"}) {
    std::string reason;
    void *library = load_beside(name, reason);
    if (library == nullptr) {
      why += fmt::format("{}{}", why.empty() ? "the CUDA backend does not load: " : "; ", reason);
      continue;
    }
    void *entry = dlsym(library, cuda_open_symbol);
    if (entry != nullptr)
      return reinterpret_cast<CudaOpen *>(entry);
    dlclose(library);
    why = fmt::format("{} has no function {}: it is not td's CUDA backend", name, cuda_open_symbol);
    return nullptr;
  }
  return nullptr;
}

/// CUDA does not survive fork: the first process that asks for GPUs has them, its children do not.
Status open_cuda(const DeviceSpec &spec, std::vector<std::shared_ptr<Backend>> *out, std::vector<i64> *seen,
                 std::string &why) {
  static std::atomic<pid_t> owner{0};
  CudaOpen *open = find_cuda(why);
  if (open == nullptr)
    return Status::backend_unavailable;
  pid_t first = 0;
  if (!owner.compare_exchange_strong(first, getpid()) && first != getpid()) {
    why = fmt::format("cuda: this process, {}, is a fork of process {}, which has asked for a GPU, and CUDA does not "
                      "work in both: start a new program (exec; in Python, multiprocessing's \"spawn\")",
                      getpid(), first);
    return Status::backend_unavailable;
  }
  return static_cast<Status>(open(TD_VERSION, &spec, out, seen, &why));
}

bool gpu_is_there() {
  std::vector<std::shared_ptr<Backend>> backends;
  std::string why;
  return open_cuda({DeviceSpec::Kind::cuda, 1, {0}}, &backends, nullptr, why) == Status::ok;
}

} // namespace

DeviceSpec parse_devices(std::string_view text, bool virtual_devices) {
  const auto colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  const bool has_list = colon != std::string_view::npos;
  const std::string_view list = has_list ? text.substr(colon + 1) : std::string_view{};

  if (name == "auto" && !has_list)
    return gpu_is_there() ? DeviceSpec{DeviceSpec::Kind::cuda, 1, {0}} : DeviceSpec{};
  if (name == "reference" && !has_list)
    return {DeviceSpec::Kind::reference, 1, {}};
  if (name == "cpu") {
    const auto workers = has_list ? whole_number(list) : 1;
    if (!workers || *workers < 1 || *workers > most_workers)
      refuse_devices(text, fmt::format("\"{}\" is no number of workers between 1 and {}", list, most_workers));
    return {DeviceSpec::Kind::cpu, *workers, {}};
  }
  if (name == "cuda") {
    if (list == "all")
      return {DeviceSpec::Kind::cuda, 0, {}};
    std::vector<int> ordinals = has_list ? parse_ordinals(text, list, virtual_devices) : std::vector<int>{0};
    const int workers = static_cast<int>(ordinals.size());
    return {DeviceSpec::Kind::cuda, workers, std::move(ordinals)};
  }
  refuse_devices(text, "no such device");
}

std::vector<std::shared_ptr<Backend>> open_backends(const DeviceSpec &spec, int threads) {
  std::vector<std::shared_ptr<Backend>> backends;
  switch (spec.kind) {
  case DeviceSpec::Kind::reference:
    backends.push_back(reference::make_backend());
    break;
  case DeviceSpec::Kind::cpu: {
    const int all = threads > 0 ? threads : available_threads();
    for (int worker = 0; worker < spec.workers; ++worker) {
      const i64 own = part_of({0, all}, worker, spec.workers).size();
      backends.push_back(cpu::make_backend(static_cast<int>(std::max<i64>(own, 1))));
    }
    break;
  }
  case DeviceSpec::Kind::cuda: {
    DeviceSpec with_threads = spec;
    with_threads.host_threads = threads > 0 ? threads : available_threads();
    std::string why;
    const Status status = open_cuda(with_threads, &backends, nullptr, why);
    if (status != Status::ok)
      throw Error(status, why);
    break;
  }
  }
  return backends;
}

std::vector<i64> list_gpus() {
  std::vector<i64> seen;
  std::string why;
  const Status status = open_cuda({DeviceSpec::Kind::cuda, 0, {}}, nullptr, &seen, why);
  if (status != Status::ok)
    throw Error(status, why);
  return seen;
}

bool cuda_library_loads(std::string *why) {
  std::string reason;
  const bool loads = find_cuda(reason) != nullptr;
  if (why != nullptr)
    *why = reason;
  return loads;
}

} // namespace td::kernels
