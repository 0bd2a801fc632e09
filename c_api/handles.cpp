#include "handles.hpp"

#include <ctime>
#include <mutex>
#include <unordered_map>

#include <pthread.h>
#include <sys/random.h>

#include "core/error.hpp"

namespace td::c_api {

namespace {

// Bits 0-3: kind; bits 4-47: serial number; bits 48-63: a mark that makes the value no address of user space on any
// 64-bit system, so that following a handle by mistake faults at once.
constexpr std::uintptr_t mark = std::uintptr_t{0x7d7d} << 48;
constexpr std::uintptr_t mark_mask = std::uintptr_t{0xffff} << 48;

/// A number that no other copy of libtd in this process begins with, and that leaves room for 2^43 handles.
std::uintptr_t first_serial() noexcept {
  std::uintptr_t serial = 0;
  if (getrandom(&serial, sizeof serial, GRND_NONBLOCK) != sizeof serial) {
    std::timespec now{};
    std::timespec_get(&now, TIME_UTC);
    serial = (reinterpret_cast<std::uintptr_t>(&mark) ^ static_cast<std::uintptr_t>(now.tv_nsec)) * 0x9e3779b97f4a7c15;
  }
  return serial >> 21;
}

struct Registry {
  std::mutex mutex;
  std::uintptr_t next_serial = first_serial();
  std::unordered_map<std::uintptr_t, std::shared_ptr<void>> objects;
};

// Never destroyed: handles may be dropped by static destructors of the caller.
Registry &registry() {
  alignas(Registry) static unsigned char place[sizeof(Registry)];
  static auto *const r = new (place) Registry;
  return *r;
}

const char *name_of(Kind kind) {
  switch (kind) {
  case Kind::context:
    return "td_context";
  case Kind::options:
    return "td_options";
  case Kind::tensor:
    return "td_tensor";
  case Kind::ktensor:
    return "td_ktensor";
  case Kind::report:
    return "td_report";
  case Kind::plan:
    return "td_plan";
  case Kind::communicator:
    return "td_communicator";
  }
  return "unknown kind";
}

// A child of fork finds the registry unlocked and whole, whatever other threads were doing.
[[maybe_unused]] const int held_over_forks = pthread_atfork(
    [] { registry().mutex.lock(); }, [] { registry().mutex.unlock(); }, [] { registry().mutex.unlock(); });

Kind kind_of(std::uintptr_t handle) { return static_cast<Kind>(handle & 15); }

bool is_ours(std::uintptr_t handle) {
  const auto kind = handle & 15;
  return (handle & mark_mask) == mark && kind >= static_cast<std::uintptr_t>(Kind::context) &&
         kind <= static_cast<std::uintptr_t>(Kind::communicator);
}

} // namespace

namespace detail {

std::uintptr_t add(Kind kind, std::shared_ptr<void> object) {
  Registry &r = registry();
  const std::lock_guard lock(r.mutex);
  const std::uintptr_t handle = mark | (r.next_serial << 4) | static_cast<std::uintptr_t>(kind);
  r.objects.emplace(handle, std::move(object));
  ++r.next_serial;
  return handle;
}

std::shared_ptr<void> find(std::uintptr_t handle, Kind kind, const char *argument) {
  if (handle == 0)
    throw_error(Status::handle, "{}: null handle; expected a {}", argument, name_of(kind));
  if (!is_ours(handle))
    throw_error(Status::handle, "{}: not a handle that td made; expected a {}", argument, name_of(kind));
  if (kind_of(handle) != kind)
    throw_error(Status::handle, "{}: handle of a {}; expected a {}", argument, name_of(kind_of(handle)), name_of(kind));
  Registry &r = registry();
  const std::lock_guard lock(r.mutex);
  const auto it = r.objects.find(handle);
  if (it == r.objects.end())
    throw_error(Status::handle, "{}: handle of a {} that was destroyed", argument, name_of(kind));
  return it->second;
}

void remove(std::uintptr_t handle, Kind kind) noexcept {
  if (handle == 0 || !is_ours(handle) || kind_of(handle) != kind)
    return;
  std::shared_ptr<void> last; // ends outside the lock: an object's end may take long
  Registry &r = registry();
  const std::lock_guard lock(r.mutex);
  if (const auto it = r.objects.find(handle); it != r.objects.end()) {
    last = std::move(it->second);
    r.objects.erase(it);
  }
}

} // namespace detail

std::shared_ptr<Model> object_of(const td_ktensor *ktensor, const char *argument) {
  auto k = object_of<td_ktensor>(ktensor, argument);
  if (!k->whole())
    throw_error(Status::unsupported,
                "{}: {} processes have a block of its rows each; expected a whole ktensor, as td_ktensor_gather makes",
                argument, k->processes->size());
  return k;
}

} // namespace td::c_api
