// td.hpp as the command uses it, and what ends a command.
#pragma once

#include <stdexcept>
#include <string>

#include <td/td.hpp>

#include "exit_codes.hpp"

namespace cli {

using tdpp::check, tdpp::copy, tdpp::cpals, tdpp::dims_of, tdpp::get, tdpp::last_error, tdpp::make, tdpp::series,
    tdpp::text, tdpp::weights_of;
using tdpp::Context, tdpp::Fitted, tdpp::Ktensor, tdpp::Options, tdpp::Plan, tdpp::Tensor;

/// What ends a command besides a call of td that failed: the sentence for standard error and the exit code.
struct Failure : std::runtime_error {
  Failure(ExitCode exit, const std::string &text) : std::runtime_error(text), code(exit) {}
  ExitCode code;
};

} // namespace cli
