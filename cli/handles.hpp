// td.h for C++: handles that end themselves, statuses that throw, texts that are strings.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <td/td.h>

#include "exit_codes.hpp"

namespace cli {

/// What ends a command: the sentence for standard error and the exit code.
struct Failure : std::runtime_error {
  Failure(ExitCode exit, const std::string &text) : std::runtime_error(text), code(exit) {}
  ExitCode code;
};

inline std::string last_error() {
  std::string text(static_cast<std::size_t>(td_last_error(nullptr, 0)), '\0');
  td_last_error(text.data(), static_cast<std::int64_t>(text.size()));
  if (!text.empty())
    text.pop_back(); // the terminating NUL
  return text;
}

/// Passes a status of at least 0 on; throws the library's sentence for one below.
inline td_status check(td_status status) {
  if (status < 0)
    throw Failure(exit_code(status), last_error());
  return status;
}

template <auto Destroy> struct Destroyer {
  template <class T> void operator()(T *handle) const { Destroy(handle); }
};

using Context = std::unique_ptr<td_context, Destroyer<td_context_destroy>>;
using Options = std::unique_ptr<td_options, Destroyer<td_options_destroy>>;
using Tensor = std::unique_ptr<td_tensor, Destroyer<td_tensor_destroy>>;
using Ktensor = std::unique_ptr<td_ktensor, Destroyer<td_ktensor_destroy>>;
using Report = std::unique_ptr<td_report, Destroyer<td_report_destroy>>;
using Plan = std::unique_ptr<td_plan, Destroyer<td_plan_destroy>>;

/// The handle that a td function makes through its last argument: make<Tensor>(td_tensor_read, ctx, path, options).
template <class Handle, class Function, class... Arguments> Handle make(Function function, Arguments... arguments) {
  typename Handle::pointer handle = nullptr;
  check(function(arguments..., &handle));
  return Handle(handle);
}

/// The number that a td function gives through its last argument: get<double>(td_tensor_norm, x).
template <class T, class Function, class... Arguments> T get(Function function, Arguments... arguments) {
  T value{};
  check(function(arguments..., &value));
  return value;
}

/// The text that a td function gives through (buf, cap, needed), its last arguments.
template <class Function, class... Arguments> std::string text(Function function, Arguments... arguments) {
  std::int64_t needed = 0;
  check(function(arguments..., nullptr, std::int64_t{0}, &needed));
  std::string out(static_cast<std::size_t>(needed), '\0');
  check(function(arguments..., out.data(), needed, &needed));
  out.resize(out.empty() ? 0 : out.size() - 1);
  return out;
}

/// What td_cpals gives.
struct Fitted {
  Ktensor model;
  Report report;
};

inline Fitted cpals(td_context *context, const td_tensor *x, std::int64_t rank, const td_ktensor *start,
                    const td_options *options, td_progress_fn progress = nullptr, void *user = nullptr) {
  td_ktensor *model = nullptr;
  td_report *report = nullptr;
  check(td_cpals(context, x, rank, start, options, progress, user, &model, &report));
  return {Ktensor(model), Report(report)};
}

inline std::vector<std::int64_t> dims(const td_tensor *x) {
  std::vector<std::int64_t> d(static_cast<std::size_t>(get<std::int32_t>(td_tensor_order, x)));
  check(td_tensor_dims(x, d.data()));
  return d;
}

inline std::vector<double> weights(const td_ktensor *k) {
  std::int64_t rank = 0;
  check(td_ktensor_shape(k, nullptr, nullptr, &rank, nullptr));
  std::vector<double> w(static_cast<std::size_t>(rank));
  check(td_ktensor_get_weights(k, w.data()));
  return w;
}

/// The numbers that a td function gives through (values, cap, n), its last arguments.
template <class Function, class Handle>
std::vector<double> series_of(Function function, const Handle *handle, const char *key) {
  std::int64_t n = 0;
  check(function(handle, key, nullptr, std::int64_t{0}, &n));
  std::vector<double> values(static_cast<std::size_t>(n));
  check(function(handle, key, values.data(), n, &n));
  return values;
}
inline std::vector<double> series(const td_report *report, const char *key) {
  return series_of(td_report_get_series, report, key);
}

} // namespace cli
