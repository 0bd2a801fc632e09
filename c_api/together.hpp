// Calls that all processes of a distributed context make together.
#pragma once

#include <functional>

#include "guard.hpp"
#include "handles.hpp"
#include "io/io.hpp"

namespace td::c_api {

/// Tells the others of the exception that is being handled, and throws what all processes then throw.
[[noreturn]] void notify_others(Processes &processes);

/// Runs a body. Of several processes all get the same error if it fails on any of them, at whatever place;
/// undo() then ends what the body has made.
template <class Undo, class Body> void together(Processes *processes, Undo &&undo, Body &&body) {
  try {
    if (processes != nullptr)
      processes->begin_call();
    body();
    if (processes != nullptr)
      processes->agree();
  } catch (const abi::__forced_unwind &) {
    undo();
    if (processes != nullptr)
      try {
        processes->fail(Status::internal, "a callback ended its thread");
      } catch (const Error &) { // the others have it; this thread ends
      }
    throw;
  } catch (...) {
    undo();
    if (processes == nullptr)
      throw;
    notify_others(*processes);
  }
}

template <class Undo, class Body> void together(const Context &context, Undo &&undo, Body &&body) {
  together(context.processes.get(), undo, body);
}

/// Ends what *out is, if there is one.
template <class Handle> void take_back(Handle **out) {
  if (out != nullptr)
    drop_handle(std::exchange(*out, nullptr));
}

/// The same for a body that makes *out.
template <class Handle, class Body> void make_together(const Context &context, Handle **out, Body &&body) {
  together(
      context, [&] { take_back(out); },
      [&] {
        require_out(out, "out");
        body();
      });
}

/// The context of a call that gives something through *out, which is null for now.
template <class Handle> std::shared_ptr<Context> context_of(const td_context *context, Handle **out) {
  if (out != nullptr)
    *out = nullptr;
  return object_of(context, "context");
}

/// All options of a scope, as text.
std::string text_of_scope(const Options &options, std::string_view scope);

/// Calls body(worker) for each of Context::meeting_workers(): for the first on this thread, for the others on threads
/// of their own. Where there are several, a failure of one is one of all workers of all processes.
void run_on_workers(const Context &context, const std::function<void(int)> &body);

/// Within run_on_workers: calls body() for the first worker of each process, in which these meet as processes do.
void by_first(const Context &context, int worker, const std::function<void()> &body);

/// Stores what a context is given: all of it, or of what its processes are given what comes here. All of them call it.
Parts store(const Context &context, const formats::Given &given, const Options &options, std::string source);

/// The same of a dense tensor of which each process has a block, where processes share the context.
Parts store(const Context &context, std::span<const i64> dims, const tensor::DenseBlock &block, const Options &options,
            std::string source);

/// How processes that have a block each write one file; none: as one.
io::Writers writers_of(Processes *processes);
/// How they read one.
io::Readers readers_of(Processes *processes);

/// Throws Status::unsupported for option "deterministic" where some processes have GPUs and others none.
void require_one_kind(const Context &context, const Options &options);

/// Throws Status::unsupported for a call that one process makes, where processes share the context or the tensor.
void require_alone(const Context &context, std::string_view call);
void require_whole(const tensor::Tensor &x, std::string_view call);

} // namespace td::c_api
