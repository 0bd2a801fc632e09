// Handles are numbers in the clothes of pointers: looked up, never followed. So a null, destroyed, foreign or
// wrong-kind handle is told apart from a good one whatever it holds, and an object lives as long as a call uses it.
#pragma once

#include <algorithm>
#include <iterator>
#include <memory>

#include "comm/process_workers.hpp"
#include "core/ktensor.hpp"
#include "core/memory.hpp"
#include "core/options.hpp"
#include "core/sentence.hpp"
#include "kernels/loader.hpp"
#include "plan/plan.hpp"
#include "solvers/cpals.hpp"
#include "td/td.h"
#include "tensor/tensor.hpp"

namespace td::c_api {

/// What a td_context stands for.
struct Context {
  kernels::DeviceSpec spec;
  std::vector<std::shared_ptr<kernels::Backend>> backends;
  i64 memory_limit = 0;                    // option of that name
  int gpu_process = 0;                     // which opened the GPU; 0 without one
  std::shared_ptr<Processes> processes;    // that share it; null: it is this process's alone
  std::shared_ptr<ProcessWorkers> workers; // where a process has several; null: of processes that share it each is one
  bool mixed = false;                      // some of the processes have GPUs, others none
  td_log_fn log = nullptr;
  void *log_user = nullptr;

  int threads() const;
  /// Workers of this process that meet those of others, each with a backend; 1 where those of the context work as one.
  int meeting_workers() const noexcept { return workers != nullptr ? workers->size() : 1; }
  /// How one of these meets the others; null: no processes share the context.
  std::shared_ptr<Processes> others_of(int worker) const {
    return workers != nullptr ? workers->shared(worker) : processes;
  }
  std::vector<std::shared_ptr<kernels::Backend>> backends_of(int worker) const;
  int threads_of(int worker) const;
  std::string describe() const;
  /// Throws Status::backend_unavailable in a child of fork, where a GPU of the parent's does not answer.
  void require_own_process() const;
  MemoryBudget budget() const noexcept { return {memory_limit, 0}; }
  tensor::Target target() const noexcept {
    return spec.kind == kernels::DeviceSpec::Kind::cuda ? tensor::Target::gpu : tensor::Target::cpu;
  }
  /// What tensor::Tensor::make_sparse builds with.
  tensor::Builders builders() const;
  /// Says that a call had fewer threads than it wanted, if so; calls that work with threads end with it.
  void say_shortage() const;
  void say(std::int32_t level, const std::string &text) const {
    if (log != nullptr)
      log(level, escaped(text).c_str(), log_user);
  }
};

/// Opens the devices that a string names.
std::shared_ptr<Context> open_context(const char *devices, const Options &options);

/// A ktensor, and what host memory the context that it was made in leaves to it and to work on it.
struct Model : Ktensor {
  Model(Ktensor &&k, const MemoryBudget &b, std::shared_ptr<Processes> p = nullptr)
      : Ktensor(std::move(k)), budget(b), processes(std::move(p)) {}
  MemoryBudget budget;
  std::shared_ptr<Processes> processes; // that have a block each; null: it is whole
};

/// A tensor, which never changes and which several handles may stand for, and the labels of one of these handles.
struct LabelledTensor {
  std::shared_ptr<const tensor::Tensor> x;
  Labels labels;
  std::vector<std::shared_ptr<const tensor::Tensor>> of_others; // of this process's workers besides the first
};

/// A tensor's parts, one for each of Context::meeting_workers().
using Parts = std::vector<std::shared_ptr<const tensor::Tensor>>;

enum class Kind : int { context = 1, options, tensor, ktensor, report, plan, communicator };

template <class Handle> struct HandleTraits;
template <> struct HandleTraits<td_context> {
  using Object = Context;
  static constexpr Kind kind = Kind::context;
};
template <> struct HandleTraits<td_options> {
  using Object = Options;
  static constexpr Kind kind = Kind::options;
};
template <> struct HandleTraits<td_tensor> {
  using Object = LabelledTensor;
  static constexpr Kind kind = Kind::tensor;
};
template <> struct HandleTraits<td_ktensor> {
  using Object = Model;
  static constexpr Kind kind = Kind::ktensor;
};
template <> struct HandleTraits<td_report> {
  using Object = const solvers::Report;
  static constexpr Kind kind = Kind::report;
};
template <> struct HandleTraits<td_plan> {
  using Object = const plan::Plan;
  static constexpr Kind kind = Kind::plan;
};
template <> struct HandleTraits<td_communicator> {
  using Object = Processes;
  static constexpr Kind kind = Kind::communicator;
};
template <class Handle> using ObjectOf = typename HandleTraits<Handle>::Object;

namespace detail {
std::uintptr_t add(Kind kind, std::shared_ptr<void> object);
std::shared_ptr<void> find(std::uintptr_t handle, Kind kind, const char *argument); // throws Status::handle
void remove(std::uintptr_t handle, Kind kind) noexcept;
} // namespace detail

template <class Handle> Handle *make_handle(std::shared_ptr<ObjectOf<Handle>> object) {
  using Mutable = std::remove_const_t<ObjectOf<Handle>>;
  return reinterpret_cast<Handle *>(
      detail::add(HandleTraits<Handle>::kind, std::const_pointer_cast<Mutable>(std::move(object))));
}

/// The object of a handle; throws Status::handle naming the argument.
template <class Handle> std::shared_ptr<ObjectOf<Handle>> object_of(const Handle *handle, const char *argument) {
  auto object = std::static_pointer_cast<ObjectOf<Handle>>(
      detail::find(reinterpret_cast<std::uintptr_t>(handle), HandleTraits<Handle>::kind, argument));
  if constexpr (std::is_same_v<Handle, td_context>)
    object->require_own_process();
  return object;
}

/// The tensor alone.
inline std::shared_ptr<const tensor::Tensor> object_of(const td_tensor *tensor, const char *argument) {
  return object_of<td_tensor>(tensor, argument)->x;
}

/// A ktensor that is whole; throws Status::unsupported for one that processes have blocks of.
std::shared_ptr<Model> object_of(const td_ktensor *ktensor, const char *argument);

inline td_tensor *make_tensor(std::shared_ptr<const tensor::Tensor> x, Labels labels = {}) {
  return make_handle<td_tensor>(std::make_shared<LabelledTensor>(LabelledTensor{std::move(x), std::move(labels), {}}));
}
inline td_tensor *make_tensor(Parts parts, Labels labels = {}) {
  LabelledTensor made{std::move(parts.front()), std::move(labels), {}};
  made.of_others.assign(std::make_move_iterator(parts.begin() + 1), std::make_move_iterator(parts.end()));
  return make_handle<td_tensor>(std::make_shared<LabelledTensor>(std::move(made)));
}

/// A tensor for work in a context. Throws Status::unsupported for one that is borrowed in a memory which a device of
/// the context does not reach, or that other processes share than the context.
inline Parts parts_for(const Context &context, const td_tensor *tensor) {
  const auto labelled = object_of<td_tensor>(tensor, "tensor");
  const auto &x = labelled->x;
  if (context.workers != nullptr && x->processes() != &context.workers->of(0))
    throw_error(Status::unsupported,
                "tensor: was made in another context than this one, whose processes have several GPUs; expected one "
                "that was made in it");
  if (context.workers == nullptr && x->processes() != context.processes.get())
    throw_error(Status::unsupported, "tensor: was made in a context that {} share, this one is that of {}",
                x->processes() == nullptr ? "no processes" : "other processes",
                context.processes == nullptr ? "one process" : "others");
  for (const auto &backend : context.backends)
    x->require_reach(*backend);
  Parts parts{x};
  parts.insert(parts.end(), labelled->of_others.begin(), labelled->of_others.end());
  return parts;
}
inline std::shared_ptr<const tensor::Tensor> tensor_for(const Context &context, const td_tensor *tensor) {
  return parts_for(context, tensor).front();
}

template <class Handle> void drop_handle(Handle *handle) noexcept {
  detail::remove(reinterpret_cast<std::uintptr_t>(handle), HandleTraits<Handle>::kind);
}

/// Throws Status::unsupported where option "borrow" is asked for and has no meaning.
inline void require_no_borrowing(const Options &options, std::string_view what) {
  if (options.integer("borrow") != 0)
    throw_error(Status::unsupported, "option 'borrow' = 1 of {}: only the array of a dense tensor can be borrowed",
                what);
}

/// The options with less of "memory_limit", if there is one: so many bytes are taken.
inline Options beside(Options options, i64 bytes) {
  const i64 limit = options.integer("memory_limit");
  if (limit > 0)
    options.set("memory_limit", std::max<i64>(limit - bytes, 1));
  return options;
}

/// The options of a handle that may be null: then the defaults.
inline Options options_or_defaults(const td_options *options) {
  return options == nullptr ? Options{} : *object_of(options, "options");
}

/// The same for work in a context: with what was said when the context was made.
inline Options options_in(const Context &context, const td_options *options) {
  Options o = options_or_defaults(options);
  o.set("memory_limit", context.memory_limit);
  return o;
}

/// The same options for one of several workers of a process, who share the memory.
inline Options for_worker(const Context &context, Options options) {
  if (const i64 limit = options.integer("memory_limit"); limit > 0)
    options.set("memory_limit", std::max<i64>(limit / context.meeting_workers(), 1));
  return options;
}

} // namespace td::c_api
