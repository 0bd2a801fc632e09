// The one place where exceptions become a status and a text, and the checks that every entry point shares.
#pragma once

#include <cxxabi.h>

#include <string_view>
#include <type_traits>

#include "caller_state.hpp"
#include "core/error.hpp"
#include "core/types.hpp"
#include "td/td.h"

namespace td::c_api {

/// Keeps a failure's text for td_last_error. Never allocates: it also reports that memory has run out.
void remember_error(std::string_view text) noexcept;

td_status status_of_current_exception() noexcept;
/// This thread's text for td_last_error.
std::string_view last_error_text() noexcept;

/// Runs a function body that gives nothing (TD_OK) or a td_status. It passes on a thread's own end: where a callback
/// ends its thread (pthread_exit), the thread unwinds through td and what it held is given back.
template <class Body> td_status guard(Body &&body) {
  const CallerState kept;
  try {
    if constexpr (std::is_void_v<decltype(body())>) {
      body();
      return TD_OK;
    } else {
      return body();
    }
  } catch (const abi::__forced_unwind &) {
    throw;
  } catch (...) {
    return status_of_current_exception();
  }
}

/// Throws Status::argument "<name>: null pointer" for a required pointer.
inline void require(const void *pointer, const char *name) {
  if (pointer == nullptr)
    throw_error(Status::argument, "{}: null pointer", name);
}

/// A result that is asked for begins as null, so that a failed call leaves a null handle.
template <class T> void require_out(T **out, const char *name) {
  require(out, name);
  *out = nullptr;
}

ValueType value_type(td_type type, const char *name);
IndexType index_type(td_type type, const char *name);
/// CPU contexts work on host memory only.
void require_host(td_space space);
void require_index_base(std::int32_t base);
void require_mode(std::int32_t mode, int order);

/// Writes at most cap bytes including NUL; needed may be null.
void copy_text(std::string_view text, char *buf, std::int64_t cap, std::int64_t *needed);

} // namespace td::c_api
