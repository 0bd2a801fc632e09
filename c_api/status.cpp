#include "guard.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "core/sentence.hpp"
#include "kernels/loader.hpp"

namespace td::c_api {

static_assert(static_cast<int>(Status::stopped) == TD_STOPPED &&
              static_cast<int>(Status::argument) == TD_ERR_ARGUMENT &&
              static_cast<int>(Status::shape) == TD_ERR_SHAPE && static_cast<int>(Status::index) == TD_ERR_INDEX &&
              static_cast<int>(Status::type) == TD_ERR_TYPE && static_cast<int>(Status::handle) == TD_ERR_HANDLE &&
              static_cast<int>(Status::option_unknown) == TD_ERR_OPTION_UNKNOWN &&
              static_cast<int>(Status::option_range) == TD_ERR_OPTION_RANGE &&
              static_cast<int>(Status::unsupported) == TD_ERR_UNSUPPORTED &&
              static_cast<int>(Status::backend_unavailable) == TD_ERR_BACKEND_UNAVAILABLE &&
              static_cast<int>(Status::host_memory) == TD_ERR_HOST_MEMORY &&
              static_cast<int>(Status::device_memory) == TD_ERR_DEVICE_MEMORY &&
              static_cast<int>(Status::device) == TD_ERR_DEVICE &&
              static_cast<int>(Status::numerical) == TD_ERR_NUMERICAL && static_cast<int>(Status::io) == TD_ERR_IO &&
              static_cast<int>(Status::communication) == TD_ERR_COMMUNICATION &&
              static_cast<int>(Status::internal) == TD_ERR_INTERNAL);
static_assert(static_cast<int>(ValueType::f32) == TD_F32 && static_cast<int>(ValueType::f64) == TD_F64 &&
              static_cast<int>(IndexType::i32) == TD_I32 && static_cast<int>(IndexType::i64) == TD_I64);

namespace {

thread_local char last_error[1024] = "";

} // namespace

void remember_error(std::string_view text) noexcept {
  last_error[escape(text, last_error, sizeof last_error - 1)] = '\0';
}

std::string_view last_error_text() noexcept { return last_error; }

td_status status_of_current_exception() noexcept {
  try {
    throw;
  } catch (const Error &e) {
    remember_error(e.what());
    return static_cast<td_status>(e.status());
  } catch (const std::bad_alloc &) {
    remember_error("out of host memory");
    return TD_ERR_HOST_MEMORY;
  } catch (const std::exception &e) {
    remember_error(e.what());
    return TD_ERR_INTERNAL;
  } catch (...) {
    remember_error("an exception of unknown type");
    return TD_ERR_INTERNAL;
  }
}

ValueType value_type(td_type type, const char *name) {
  if (type != TD_F32 && type != TD_F64)
    throw_error(Status::type, "{} = {}: expected TD_F32 ({}) or TD_F64 ({})", name, type, int{TD_F32}, int{TD_F64});
  return static_cast<ValueType>(type);
}

IndexType index_type(td_type type, const char *name) {
  if (type != TD_I32 && type != TD_I64)
    throw_error(Status::type, "{} = {}: expected TD_I32 ({}) or TD_I64 ({})", name, type, int{TD_I32}, int{TD_I64});
  return static_cast<IndexType>(type);
}

void require_host(td_space space) {
  if (space == TD_DEVICE)
    throw_error(Status::unsupported, "space = TD_DEVICE: this context works on host memory; expected TD_HOST");
  if (space != TD_HOST)
    throw_error(Status::argument, "space = {}: expected TD_HOST (0) or TD_DEVICE (1)", space);
}

void require_index_base(std::int32_t base) {
  if (base != 0 && base != 1)
    throw_error(Status::argument, "index_base = {}: expected 0 or 1", base);
}

void require_mode(std::int32_t mode, int order) {
  if (mode < 0 || mode >= order)
    throw_error(Status::shape, "mode = {}: expected 0 .. {}", mode, order - 1);
}

void copy_text(std::string_view text, char *buf, std::int64_t cap, std::int64_t *needed) {
  if (needed != nullptr)
    *needed = static_cast<std::int64_t>(text.size()) + 1;
  if (cap < 0 || (buf == nullptr && cap > 0))
    throw_error(Status::argument, "buf, cap = {}: expected room for cap >= 0 bytes", cap);
  if (cap == 0)
    return;
  const std::size_t n = std::min(text.size(), static_cast<std::size_t>(cap) - 1);
  std::copy_n(text.data(), n, buf); // an empty text may have no data
  buf[n] = '\0';
}

} // namespace td::c_api

using namespace td::c_api;

extern "C" {

const char *td_status_name(td_status status) {
  switch (status) {
#define TD_CASE(name)                                                                                                  \
  case name:                                                                                                           \
    return #name;
    TD_CASE(TD_OK)
    TD_CASE(TD_STOPPED)
    TD_CASE(TD_ERR_ARGUMENT)
    TD_CASE(TD_ERR_SHAPE)
    TD_CASE(TD_ERR_INDEX)
    TD_CASE(TD_ERR_TYPE)
    TD_CASE(TD_ERR_HANDLE)
    TD_CASE(TD_ERR_OPTION_UNKNOWN)
    TD_CASE(TD_ERR_OPTION_RANGE)
    TD_CASE(TD_ERR_UNSUPPORTED)
    TD_CASE(TD_ERR_BACKEND_UNAVAILABLE)
    TD_CASE(TD_ERR_HOST_MEMORY)
    TD_CASE(TD_ERR_DEVICE_MEMORY)
    TD_CASE(TD_ERR_DEVICE)
    TD_CASE(TD_ERR_NUMERICAL)
    TD_CASE(TD_ERR_IO)
    TD_CASE(TD_ERR_COMMUNICATION)
    TD_CASE(TD_ERR_INTERNAL)
#undef TD_CASE
  default:
    return "TD_STATUS_UNKNOWN";
  }
}

int64_t td_last_error(char *buf, int64_t cap) {
  const std::string_view text = last_error;
  if (buf != nullptr && cap > 0) {
    const std::size_t n = std::min(text.size(), static_cast<std::size_t>(cap) - 1);
    std::memcpy(buf, text.data(), n);
    buf[n] = '\0';
  }
  return static_cast<int64_t>(text.size()) + 1;
}

int32_t td_version(void) { return 10000 * TD_VERSION_MAJOR + 100 * TD_VERSION_MINOR + TD_VERSION_PATCH; }

int32_t td_abi_version(void) { return TD_ABI_VERSION; }

int32_t td_has_feature(const char *name) {
  if (name == nullptr)
    return 0;
  const std::string_view feature = name;
  int32_t has = feature == "reference" || feature == "cpu" || feature == "openmp" ? 1 : 0;
  if (feature == "cuda")
    guard([&] { has = td::kernels::cuda_library_loads(nullptr) ? 1 : 0; });
  return has;
}

} // extern "C"
