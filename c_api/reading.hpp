// Reading a tensor's file for a context.
#pragma once

#include <string>

#include "handles.hpp"
#include "io/io.hpp"

namespace td::c_api {

/// The log hears what the file was found to be.
io::ReadTensor read_for(const Context &context, const std::string &path, const Options &options);

/// Runs a body whose errors do not know the file that they are about.
template <class Body> auto about(const std::string &path, Body &&body) {
  try {
    return body();
  } catch (const AgreedError &) { // says what it is about
    throw;
  } catch (const Error &e) {
    throw Error(e.status(), fmt::format("{}: {}", path, e.what()));
  }
}

} // namespace td::c_api
