// What the program's exit code means. Scripts depend on these numbers: they are pinned.
#pragma once

#include <td/td.h>

namespace cli {

enum ExitCode : int {
  exit_ok = 0,
  exit_failed = 1,       // a self-test failed, or `check --strict` found something
  exit_usage = 2,        // the command line is wrong
  exit_input = 3,        // a file cannot be read or written, or its content cannot be worked on
  exit_memory = 4,       // out of host memory
  exit_device = 5,       // the device is not there, is out of memory, or failed
  exit_internal = 70,    // a defect in td (EX_SOFTWARE of sysexits.h)
  exit_interrupted = 130 // 128 + the signal's number: 130 for ^C, 143 for SIGTERM
};

inline constexpr const char *exit_code_help = R"(Exit codes:
  0    done
  1    a self-test failed, or `td check --strict` found something suspicious
  2    the command line is wrong
  3    a file cannot be read or written, or its content cannot be worked on
  4    out of memory
  5    the device is not there, is out of memory, or failed
  70   a defect in td
  130  interrupted by ^C (143 by SIGTERM); `td cpd` has written the model so far)";

inline ExitCode exit_code(td_status status) {
  switch (status) {
  case TD_ERR_OPTION_UNKNOWN:
  case TD_ERR_OPTION_RANGE:
    return exit_usage;
  case TD_ERR_HOST_MEMORY:
    return exit_memory;
  case TD_ERR_BACKEND_UNAVAILABLE:
  case TD_ERR_DEVICE_MEMORY:
  case TD_ERR_DEVICE:
    return exit_device;
  case TD_ERR_HANDLE:
  case TD_ERR_INTERNAL:
    return exit_internal;
  default:
    return exit_input;
  }
}

} // namespace cli
