// td.h with owners: each handle ends with its scope, and a failed call is an exception that carries td's own text.
#pragma once

#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <td/td.h>

namespace tdtest {

/// The text of this thread's last failed call.
std::string last_error();

class Failure : public std::runtime_error {
public:
  explicit Failure(td_status status)
      : std::runtime_error(std::string(td_status_name(status)) + ": " + last_error()), status_(status) {}
  td_status status() const noexcept { return status_; }

private:
  td_status status_;
};

/// Passes a success on and throws a failure.
inline td_status must(td_status status) {
  if (status < 0)
    throw Failure(status);
  return status;
}

template <class T, void (*Destroy)(T *)> class Handle {
public:
  Handle() = default;
  Handle(const Handle &) = delete;
  Handle &operator=(const Handle &) = delete;
  Handle(Handle &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Handle &operator=(Handle &&other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Handle() { Destroy(handle_); }

  operator T *() const noexcept { return handle_; }
  T **out() noexcept { return &handle_; }
  void reset() noexcept { Destroy(std::exchange(handle_, nullptr)); }

private:
  T *handle_ = nullptr;
};

using Context = Handle<td_context, td_context_destroy>;
using Tensor = Handle<td_tensor, td_tensor_destroy>;
using Ktensor = Handle<td_ktensor, td_ktensor_destroy>;
using Report = Handle<td_report, td_report_destroy>;
using Plan = Handle<td_plan, td_plan_destroy>;

/// Options from text, as a user types them: Options{{"format", "blco"}, {"tol", "1e-6"}}.
class Options : public Handle<td_options, td_options_destroy> {
public:
  Options(std::initializer_list<std::pair<const char *, std::string>> settings = {});
  Options &set(const char *key, const std::string &value);
};

Context make_context(const std::string &devices, const td_options *options = nullptr);

struct Outcome {
  Ktensor model;
  Report report;
  td_status status = TD_OK;
};
Outcome cpals(td_context *context, const td_tensor *x, int64_t rank, const td_options *options,
              const td_ktensor *init = nullptr, td_progress_fn progress = nullptr, void *user = nullptr);

int64_t report_i64(const td_report *report, const char *key);
double report_f64(const td_report *report, const char *key);
std::string report_str(const td_report *report, const char *key);
std::vector<double> report_series(const td_report *report, const char *key);

int64_t tensor_nnz(const td_tensor *x);
double tensor_norm(const td_tensor *x);
std::string tensor_str(const td_tensor *x, const char *key);

std::vector<double> weights_of(const td_ktensor *k);
double ktensor_norm(const td_ktensor *k);
double score(const td_ktensor *a, const td_ktensor *b, bool use_weights = true);

struct Fit {
  double fit, explained, relative, residual;
};
Fit fit_of(td_context *context, const td_ktensor *k, const td_tensor *x);

} // namespace tdtest
