/* td.hpp - td.h for C++17: handles with owners, failures as exceptions, texts and series as containers.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * td.h is the manual of this header, too: what td does is done by the functions of td.h, and an owner is passed to them
 * as the handle that it holds. This header needs td.h and the standard library alone.
 *
 * A first program:
 *
 *     try {
 *       const auto context = tdpp::make<tdpp::Context>(td_context_create, "auto", nullptr);
 *       const auto x = tdpp::make<tdpp::Tensor>(td_tensor_read, context, "x.tns", nullptr);
 *       const tdpp::Fitted run = tdpp::cpals(context, x, 8, tdpp::Options{{"tol", "1e-6"}});
 *       std::cout << "fit " << tdpp::get<double>(td_report_get_f64, run.report, "fit") << '\n';
 *     } catch (const tdpp::Error &e) {
 *       std::cerr << e.what() << '\n';
 *     }
 *
 * Rules that hold for everything in here, unless it says otherwise:
 *
 * Ownership  An owner ends its handle. It is moved, not copied: tdpp::share gives another handle of the same thing,
 *            tdpp::copy a copy of its own. Pointers to handles that are arguments are borrowed for the call.
 *            A tensor with option "borrow" reads an array that must outlive it: declare the array first.
 * Errors     A status below 0 is thrown as Error. What is made on the way ends. std::bad_alloc may be thrown, too.
 * Threads    As in td.h. The text of an Error is fetched on the thread whose call failed.
 *
 * The namespace is tdpp and not td, because td is that of the library's own C++, whose Options, Tensor and Error a
 * program that links libtd.a, and a test that sees the inside of td, would otherwise have twice.
 */
#ifndef TD_TD_HPP
#define TD_TD_HPP

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <td/td.h>

/** Owners, exceptions and containers over td.h. */
namespace tdpp {

/* ---- Errors ------------------------------------------------------------------------------------------------------ */

/** The text of this thread's last failed call; empty before any failure. A success leaves it as it was. */
inline std::string last_error() {
  std::string text(static_cast<std::size_t>(td_last_error(nullptr, 0)), '\0');
  td_last_error(text.data(), static_cast<std::int64_t>(text.size()));
  text.pop_back(); // the terminating NUL
  return text;
}

/** A call that failed: its status, and its sentence as what(). */
class Error : public std::runtime_error {
public:
  /** Takes the sentence from this thread's last failed call. */
  explicit Error(td_status status) : std::runtime_error(last_error()), status_(status) {}

  /** One of the TD_ERR_ codes, below 0. */
  td_status status() const noexcept { return status_; }

private:
  td_status status_;
};

/** Passes a status of at least 0 on, such as TD_STOPPED, and throws Error for one below. */
inline td_status check(td_status status) {
  if (status < 0)
    throw Error(status);
  return status;
}

/* ---- Owners ------------------------------------------------------------------------------------------------------ */

/** Owns a handle of td.h, or none (null), and ends it with td's own function. */
template <class T, void (*Destroy)(T *)> class Owner {
public:
  /** What td.h calls the handle: a pointer that is never followed. */
  using Handle = T *;

  /** An owner of nothing. */
  Owner() noexcept = default;
  /** Takes a handle over. */
  explicit Owner(T *handle) noexcept : handle_(handle) {}
  /** Takes over what the other owns; the other owns nothing then. */
  Owner(Owner &&other) noexcept : handle_(other.release()) {}
  /** Ends what is owned and takes over what the other owns. */
  Owner &operator=(Owner &&other) noexcept {
    reset(other.release());
    return *this;
  }
  ~Owner() { Destroy(handle_); }

  /** The handle, which stays owned. */
  T *get() const noexcept { return handle_; }
  /** The handle, which stays owned: an owner is an argument of td.h's functions. */
  operator T *() const noexcept { return handle_; }
  /** Hands the handle over to the caller, who ends it. */
  T *release() noexcept { return std::exchange(handle_, nullptr); }
  /** Ends what is owned and owns this handle instead. */
  void reset(T *handle = nullptr) noexcept { Destroy(std::exchange(handle_, handle)); }
  /** Ends what is owned and gives the place for another handle: the last argument of functions that make something. */
  T **out() noexcept {
    reset();
    return &handle_;
  }

private:
  T *handle_ = nullptr;
};

using Context = Owner<td_context, td_context_destroy>;                /**< where work runs */
using Tensor = Owner<td_tensor, td_tensor_destroy>;                   /**< a sparse or dense tensor */
using Ktensor = Owner<td_ktensor, td_ktensor_destroy>;                /**< weights and factor matrices */
using Report = Owner<td_report, td_report_destroy>;                   /**< what a run did */
using Plan = Owner<td_plan, td_plan_destroy>;                         /**< what would be done, and what that takes */
using Communicator = Owner<td_communicator, td_communicator_destroy>; /**< how processes meet */

/** What a function of td.h makes through its last argument, here left out:
 *  make<Tensor>(td_tensor_read, context, "x.tns", nullptr). */
template <class Made, class Function, class... Arguments> Made make(Function function, const Arguments &...arguments) {
  typename Made::Handle handle = nullptr;
  check(function(arguments..., &handle));
  return Made(handle);
}

/** Named settings as text, checked when they are set: Options{{"init", "nvecs"}, {"tol", "1e-6"}}. */
class Options : public Owner<td_options, td_options_destroy> {
public:
  using Owner::Owner;
  /** A set of its own; what is not named has its default. Errors: as set. */
  Options(std::initializer_list<std::pair<const char *, std::string>> settings = {})
      : Owner(make<Owner>(td_options_create)) {
    for (const auto &[key, value] : settings)
      set(key, value);
  }

  /** Sets an option from text. Errors: TD_ERR_OPTION_UNKNOWN, TD_ERR_OPTION_RANGE. */
  Options &set(const std::string &key, const std::string &value) {
    check(td_options_set_str(*this, key.c_str(), value.c_str()));
    return *this;
  }
};

/** Another handle of the same context, which ends with the last of them. */
inline Context share(const td_context *context) { return make<Context>(td_context_share, context); }
/** Another handle of the same tensor. */
inline Tensor share(const td_tensor *tensor) { return make<Tensor>(td_tensor_share, tensor); }
/** Another handle of the same plan. */
inline Plan share(const td_plan *plan) { return make<Plan>(td_plan_share, plan); }
/** A copy of its own. */
inline Options copy(const td_options *options) { return make<Options>(td_options_copy, options); }
/** A copy of its own. */
inline Ktensor copy(const td_ktensor *ktensor) { return make<Ktensor>(td_ktensor_copy, ktensor); }
/** A copy of its own; also of a report that was lent to a progress callback. */
inline Report copy(const td_report *report) { return make<Report>(td_report_copy, report); }

/* ---- What functions give ----------------------------------------------------------------------------------------- */

/** The number that a function of td.h gives through its last argument, a T: get<double>(td_tensor_norm, x). */
template <class T, class Function, class... Arguments> T get(Function function, const Arguments &...arguments) {
  T value{};
  check(function(arguments..., &value));
  return value;
}

/** The text that a function of td.h gives through (buf, cap, needed): text(td_tensor_get_str, x, "format"). */
template <class Function, class... Arguments> std::string text(Function function, const Arguments &...arguments) {
  std::int64_t needed = 0;
  check(function(arguments..., nullptr, 0, &needed));
  std::string text(static_cast<std::size_t>(needed), '\0');
  check(function(arguments..., text.data(), needed, nullptr));
  text.pop_back(); // the terminating NUL
  return text;
}

/** The numbers that a function of td.h gives through (values, cap, n): series(td_report_get_series, report, "fit"). */
template <class Function, class... Arguments>
std::vector<double> series(Function function, const Arguments &...arguments) {
  std::int64_t n = 0;
  check(function(arguments..., nullptr, 0, &n));
  std::vector<double> values(static_cast<std::size_t>(n));
  check(function(arguments..., values.data(), n, nullptr));
  return values;
}

/** The dims of a tensor, as many as it has modes. */
inline std::vector<std::int64_t> dims_of(const td_tensor *tensor) {
  std::vector<std::int64_t> dims(static_cast<std::size_t>(get<std::int32_t>(td_tensor_order, tensor)));
  check(td_tensor_dims(tensor, dims.data()));
  return dims;
}

/** The labels of a mode's indices; none if it has no labels: labels_of(td_ktensor_get_labels, model, 0). */
template <class Function, class Handle>
std::vector<std::string> labels_of(Function function, const Handle &handle, std::int32_t mode) {
  std::int64_t needed = 0;
  check(function(handle, mode, nullptr, 0, &needed));
  std::string text(static_cast<std::size_t>(needed), '\0');
  check(function(handle, mode, text.data(), needed, nullptr));
  std::vector<std::string> labels;
  for (std::size_t at = 0; at < text.size(); at += labels.back().size() + 1)
    labels.emplace_back(text.c_str() + at);
  return labels;
}

/** The weights of a ktensor, as many as its rank. */
inline std::vector<double> weights_of(const td_ktensor *ktensor) {
  std::int64_t rank = 0;
  check(td_ktensor_shape(ktensor, nullptr, nullptr, &rank, nullptr));
  std::vector<double> weights(static_cast<std::size_t>(rank));
  check(td_ktensor_get_weights(ktensor, weights.data()));
  return weights;
}

/** What a run of CP-ALS gives. */
struct Fitted {
  Ktensor model;            /**< the result */
  Report report;            /**< what the run did */
  td_status status = TD_OK; /**< TD_OK, or TD_STOPPED if progress asked to stop */
};

/** td_cpals, with the arguments that are seldom given last. Errors: as td_cpals. */
inline Fitted cpals(td_context *context, const td_tensor *tensor, std::int64_t rank,
                    const td_options *options = nullptr, const td_ktensor *init = nullptr,
                    td_progress_fn progress = nullptr, void *user = nullptr) {
  Fitted run;
  run.status = check(td_cpals(context, tensor, rank, init, options, progress, user, run.model.out(), run.report.out()));
  return run;
}

} // namespace tdpp
#endif
