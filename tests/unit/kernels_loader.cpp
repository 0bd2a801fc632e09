// Device strings, and what they open.
#include <string_view>

#include <dlfcn.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "kernels/cuda_library.hpp"
#include "kernels/loader.hpp"

namespace td::test {
namespace {

using kernels::DeviceSpec;
using kernels::open_backends;
using kernels::parse_devices;

TEST(KernelsLoader, ReadsDeviceStrings) {
  EXPECT_EQ(parse_devices("cpu").kind, DeviceSpec::Kind::cpu);
  EXPECT_EQ(parse_devices("cpu").workers, 1);
  EXPECT_EQ(parse_devices("cpu:4").workers, 4);
  EXPECT_EQ(parse_devices("reference").kind, DeviceSpec::Kind::reference);
  EXPECT_EQ(parse_devices("cuda").devices, std::vector<int>{0});
  EXPECT_EQ(parse_devices("cuda:2,0").devices, (std::vector<int>{2, 0}));
  EXPECT_EQ(parse_devices("cuda:2,0").workers, 2);
  EXPECT_TRUE(parse_devices("cuda:all").devices.empty());
  const DeviceSpec repeated = parse_devices("cuda:1,0,1,1", true);
  EXPECT_EQ(repeated.devices, (std::vector<int>{1, 0, 1, 1}));
  EXPECT_EQ(repeated.workers, 4);
  EXPECT_EQ(repeated.repeats_before(0), 0);
  EXPECT_EQ(repeated.repeats_before(1), 0);
  EXPECT_EQ(repeated.repeats_before(2), 1);
  EXPECT_EQ(repeated.repeats_before(3), 2);
}

TEST(KernelsLoader, RefusesOtherStringsAndSaysWhatCame) {
  for (const std::string text :
       {"", "cpu:0", "cpu:-1", "cpu:abc", "cpu:", "cpu:2x", "cpu: 2", "cpu:99999999999", "gpu", "CPU", "cpux", "auto:1",
        "reference:2", "cuda:", "cuda:0,0", "cuda:-1", "cuda:0,", "cuda:0;1", "cuda:everything"})
    try {
      parse_devices(text);
      ADD_FAILURE() << "\"" << text << "\" was taken";
    } catch (const Error &error) {
      EXPECT_EQ(error.status(), Status::argument);
      EXPECT_NE(std::string(error.what()).find("\"" + text + "\""), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("expected"), std::string::npos) << error.what();
    }
}

TEST(KernelsLoader, DividesThreadsAmongWorkers) {
  const auto backends = open_backends(parse_devices("cpu:3"), 7);
  ASSERT_EQ(backends.size(), 3U);
  EXPECT_EQ(backends[0]->threads(), 3);
  EXPECT_EQ(backends[1]->threads(), 2);
  EXPECT_EQ(backends[2]->threads(), 2);
  EXPECT_EQ(backends[2]->describe().rfind("cpu, 2 threads, ", 0), 0U) << backends[2]->describe();
  for (const auto &backend : open_backends(parse_devices("cpu:4"), 2))
    EXPECT_EQ(backend->threads(), 1);
  EXPECT_GE(open_backends(parse_devices("cpu"), 0).at(0)->threads(), 1);
  EXPECT_EQ(open_backends(parse_devices("reference"), 8).at(0)->threads(), 1);
}

TEST(KernelsLoader, MissingCudaSaysWhy) {
  std::string why;
  if (kernels::cuda_library_loads(&why))
    GTEST_SKIP() << "libtd_cuda is here; this test is about its absence";
  EXPECT_NE(why.find("libtd_cuda.so"), std::string::npos) << why;
  EXPECT_EQ(parse_devices("auto").kind, DeviceSpec::Kind::cpu);
  try {
    open_backends(parse_devices("cuda"), 0);
    FAIL() << "a GPU was opened without libtd_cuda";
  } catch (const Error &error) {
    EXPECT_EQ(error.status(), Status::backend_unavailable);
    EXPECT_NE(std::string(error.what()).find("libtd_cuda.so"), std::string::npos) << error.what();
  }
}

TEST(KernelsLoader, CudaLibraryOfAnotherVersionIsRefused) {
  if (std::string_view(TD_CUDA_LIBRARY).empty())
    GTEST_SKIP() << "libtd_cuda is not part of this build";
  void *library = dlopen(TD_CUDA_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  auto *open = reinterpret_cast<kernels::CudaOpen *>(dlsym(library, kernels::cuda_open_symbol));
  ASSERT_NE(open, nullptr) << dlerror();
  const DeviceSpec spec{DeviceSpec::Kind::cuda, 1, {0}};
  std::vector<std::shared_ptr<kernels::Backend>> backends;
  std::string why;
  EXPECT_EQ(static_cast<Status>(open("0.0.0-other", &spec, &backends, nullptr, &why)), Status::backend_unavailable);
  EXPECT_NE(why.find("libtd of 0.0.0-other"), std::string::npos) << why;
  EXPECT_TRUE(backends.empty());
}

// A size that cannot be, so that sanitizers do not take offence at a huge one.
TEST(KernelsLoader, MemoryErrorsSayHowMuchForWhat) {
  for (const auto *devices : {"cpu", "reference"}) {
    const auto backend = open_backends(parse_devices(devices), 1).at(0);
    try {
      backend->release(backend->allocate(-8, "a test"));
      FAIL() << "-8 bytes were allocated";
    } catch (const Error &error) {
      EXPECT_EQ(error.status(), Status::host_memory);
      EXPECT_STREQ(error.what(), "out of host memory: -8 bytes for a test");
    }
  }
}

} // namespace
} // namespace td::test
