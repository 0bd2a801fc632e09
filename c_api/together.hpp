// Calls that all processes of a distributed context make together.
#pragma once

#include "guard.hpp"
#include "handles.hpp"

namespace td::c_api {

/// Tells the others of the exception that is being handled, and throws what all processes then throw.
[[noreturn]] void tell_others(Processes &processes);

/// Runs a body. In a context of several processes all get the same error if it fails on any of them, at whatever place;
/// undo() then ends what the body has made.
template <class Undo, class Body> void together(const Context &context, Undo &&undo, Body &&body) {
  if (context.processes == nullptr) {
    body();
    return;
  }
  try {
    body();
    context.processes->agree();
  } catch (const AgreedError &) {
    undo();
    throw;
  } catch (const abi::__forced_unwind &) {
    undo();
    try {
      context.processes->fail(Status::internal, "a callback ended its thread");
    } catch (const Error &) { // as for all others, and this thread ends
    }
    throw;
  } catch (...) {
    undo();
    tell_others(*context.processes);
  }
}

/// The same for a body that makes *out.
template <class Handle, class Body> void make_together(const Context &context, Handle **out, Body &&body) {
  together(context, [&] { drop_handle(std::exchange(*out, nullptr)); }, body);
}

/// All options of a scope, as text.
std::string text_of_scope(const Options &options, std::string_view scope);

/// Throws Status::unsupported for a call that one process makes, where processes share the context or the tensor.
void require_alone(const Context &context, std::string_view call);
void require_whole(const tensor::Tensor &x, std::string_view call);

} // namespace td::c_api
