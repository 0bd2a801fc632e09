// A suite runs on the device strings that this header gives.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/handles.hpp"

namespace tdtest {

/// "reference", "cpu", "cpu:2", "cpu:3", and the words of TD_TEST_DEVICES (separated by blanks or semicolons), such as
/// "cuda cuda:0,1". A word may go on with @ and option device_memory_limit, and with / and option exchange:
/// "cuda:0,1@8000/nccl". A GPU may be named twice, as two virtual ones: "cuda:0,0".
std::vector<std::string> device_strings();

/// The last of these for a context that processes share, "cpu" where there is none: one GPU, or where words of |
/// between them are for one process after the other, and then from the first one again, several: "cuda:0|cuda:1,2".
std::string process_devices();
/// What a process of some rank has of such a word, and how many workers `size` processes have.
std::string devices_of_process(const std::string &devices, int rank);
int workers_of(const std::string &devices, int size);
/// The device of one worker of process_devices(): its first GPU.
std::string device_alone();

/// A word's device string, and the options that it stands for.
std::string place_of(const std::string &devices);
Options context_options(const std::string &devices, const char *threads);

/// A context, or nothing (with the reason in last_error()) if the device is not there. Other failures throw.
std::optional<Context> context_if_there(const std::string &devices, const char *threads = "0");

/// A test's name part made of a device string and other words: letters, digits and '_'.
std::string name_part(const std::string &text);

/// How a tensor is stored and where the work is done.
struct Place {
  std::string format; // as make_tensor takes it
  std::string device;
};

std::vector<Place> places(const std::vector<std::string> &formats);
std::string place_name(const testing::TestParamInfo<Place> &info);

/// A test on each place, with a context; skipped with the reason where the device is not there.
class OnPlace : public testing::TestWithParam<Place> {
protected:
  void SetUp() override;
  td_context *context() const { return *context_; }
  const std::string &format() const { return GetParam().format; }

private:
  std::optional<Context> context_;
};

} // namespace tdtest
