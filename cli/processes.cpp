#include "processes.hpp"

#include <cstdio>
#include <cstdlib>
#include <string>

#include <dlfcn.h>

#include <fmt/format.h>

namespace cli {

namespace {

/// What Open MPI, MPICH and those that start processes as they do put in the environment.
int started(std::initializer_list<const char *> names, int otherwise) {
  for (const char *name : names)
    if (const char *value = std::getenv(name))
      return std::atoi(value);
  return otherwise;
}

/// The plug-in's functions, or why there are none.
struct PlugIn {
  td_status (*start)(std::int32_t *rank, std::int32_t *size, td_communicator **out) = nullptr;
  void (*finish)(std::int32_t exit_code) = nullptr;
  std::string why;
};

PlugIn load() {
  Dl_info library{};
  if (dladdr(reinterpret_cast<const void *>(td_version), &library) == 0)
    return {nullptr, nullptr, "libtd is not found"};
  const std::string path = library.dli_fname;
  const std::string name = path.substr(0, path.rfind('/') + 1) + fmt::format("libtd_mpi.so.{}", td_abi_version());
  void *const loaded = dlopen(name.c_str(), RTLD_NOW | RTLD_GLOBAL); // Open MPI's own plug-ins look for its symbols
  if (loaded == nullptr)
    return {nullptr, nullptr, dlerror()};
  PlugIn plug_in;
  plug_in.start = reinterpret_cast<decltype(plug_in.start)>(dlsym(loaded, "td_mpi_plugin_start"));
  plug_in.finish = reinterpret_cast<decltype(plug_in.finish)>(dlsym(loaded, "td_mpi_plugin_finish"));
  if (plug_in.start == nullptr || plug_in.finish == nullptr)
    return {nullptr, nullptr, name + " is of another version"};
  return plug_in;
}

} // namespace

Processes &Processes::all() {
  static Processes processes;
  return processes;
}

void Processes::join() {
  const int started_size = started({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_SIZE"}, 1);
  if (started_size <= 1)
    return;
  const PlugIn plug_in = load();
  if (plug_in.start == nullptr) {
    idle_ = started({"OMPI_COMM_WORLD_RANK", "PMI_RANK", "MPI_RANK"}, 0) != 0;
    if (!idle_)
      std::fprintf(stderr, "td: one of %d processes works, since they cannot meet: %s\n", started_size,
                   plug_in.why.c_str());
    return;
  }
  finish_ = plug_in.finish;
  check(plug_in.start(&rank_, &size_, &communicator_));
  if (!first() && std::freopen("/dev/null", "w", stdout) == nullptr)
    throw Failure(exit_input, "standard output cannot be turned to /dev/null");
}

bool Processes::is_told(std::string_view sentence) const noexcept {
  return !first() && sentence.starts_with("process ");
}

void Processes::finish(int exit_code) {
  td_communicator_destroy(std::exchange(communicator_, nullptr));
  if (auto *const leave = std::exchange(finish_, nullptr))
    leave(exit_code);
}

} // namespace cli
