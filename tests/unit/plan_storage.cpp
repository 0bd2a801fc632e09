// Which format auto takes, by what is known of host memory and of GPUs.
#include "plan/storage.hpp"

#include <gtest/gtest.h>

namespace td::plan {
namespace {

constexpr i64 gigabyte = 1000000000;
const std::vector<i64> patents = {46, 239200, 239200};
constexpr i64 patents_entries = 3600000000; // 130 GB in sorted copies of f64 values, 58 GB in BLCO

Storage chosen(std::span<const i64> dims, i64 nnz, int gpus, i64 memory_of_each, i64 host = 1000 * gigabyte,
               const char *format = "auto") {
  Options options;
  options.set_text("format", format);
  const TensorSettings settings(options);
  StorageRequest request{settings, gpus, 2, HostMemory{host, false}, {}};
  request.chip.memory_bytes = memory_of_each;
  return decide_storage({dims, nnz, ValueType::f64}, request);
}

Format format_of(int gpus, i64 memory_of_each, i64 host = 1000 * gigabyte, const char *format = "auto") {
  return chosen(patents, patents_entries, gpus, memory_of_each, host, format).format;
}

TEST(Storage, OneCopyWhereGpusHaveNoRoomForMore) {
  EXPECT_EQ(format_of(1, 75 * gigabyte), Format::blco);
  EXPECT_EQ(format_of(1, 200 * gigabyte), Format::sorted) << "they fit";
  EXPECT_EQ(format_of(4, 50 * gigabyte), Format::sorted) << "they fit four GPUs";
  EXPECT_EQ(format_of(2, 35 * gigabyte), Format::blco) << "one copy fits two GPUs";
  EXPECT_EQ(format_of(1, 120 * gigabyte), Format::sorted) << "the rest comes while the GPU works";
  EXPECT_EQ(format_of(1, 40 * gigabyte), Format::sorted) << "either has to be streamed";
}

TEST(Storage, MemoryOfGpusMattersToNothingElse) {
  EXPECT_EQ(format_of(0, 75 * gigabyte), Format::sorted) << "on the CPU";
  EXPECT_EQ(format_of(1, 0), Format::sorted) << "it is not known";
  EXPECT_EQ(format_of(1, 75 * gigabyte, 1000 * gigabyte, "sorted"), Format::sorted) << "asked for";
  EXPECT_EQ(format_of(1, 200 * gigabyte, 500 * gigabyte), Format::blco) << "more than a quarter of the host's memory";
  EXPECT_EQ(chosen({}, 0, 1, 1).format, Format::sorted);
}

TEST(Storage, WhatOnlySortedCopiesHaveIsKept) {
  for (const auto &[option, value] : {std::pair{"groups", "0|1|2"}, std::pair{"tiles", "1000000"}}) {
    Options options;
    options.set_text(option, value);
    const TensorSettings settings(options);
    StorageRequest request{settings, 1, 2, HostMemory{1000 * gigabyte, false}, {}};
    request.chip.memory_bytes = 75 * gigabyte;
    EXPECT_EQ(decide_storage({patents, patents_entries, ValueType::f64}, request).format, Format::sorted) << option;
  }
}

TEST(Storage, SaysWhy) {
  const auto why = [](int gpus, i64 memory_of_each) {
    return chosen(patents, patents_entries, gpus, memory_of_each).why.format;
  };
  EXPECT_NE(why(1, 75 * gigabyte).find("the memory of the GPU, where copies"), std::string::npos);
  EXPECT_NE(why(2, 35 * gigabyte).find("the memory of the GPUs, where copies"), std::string::npos);
  EXPECT_NE(why(1, 200 * gigabyte).find("is fastest"), std::string::npos);
}

} // namespace
} // namespace td::plan
