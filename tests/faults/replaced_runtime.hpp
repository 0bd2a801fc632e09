// Functions of CUDA's runtime that a test program has itself, and that libtd_cuda then calls instead; they count, fail
// when told to, and call the real ones. For one source file of a program.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <sstream>
#include <string>
#include <unordered_map>

#include <dlfcn.h>
#include <gtest/gtest.h>

#include "scenario.hpp"

namespace tdtest {

inline std::mutex counting; // several workers' threads allocate at the same time; held while what follows changes
inline long live = 0;       // allocations that are alive
inline std::unordered_map<void *, std::size_t> sizes; // of these, in bytes
inline std::size_t live_bytes = 0;
inline std::size_t most_bytes = 0;            // that were alive at once
inline long left = -1;                        // those still to succeed before one fails; below 0: none fails
inline bool once = false;                     // those after it succeed
inline std::size_t largest = ~std::size_t{0}; // bytes that an allocation may ask for; one of more fails
inline long too_large = 0;                    // allocations that did
inline bool pins = true;                      // host memory can be pinned
inline long pinned = 0;                       // ranges of it
inline long resources = 0;                    // streams, events and pinned buffers that were asked for
inline long failing_resource = -1;            // the one that is not given, counted from 0; below 0: none
inline bool linked = true;                    // GPUs reach each other's memory
inline int stream_error = 0;                  // what asking for a stream's state gives, unless 0

inline void *runtime() {
  static void *library = [] {
    for (const char *name : {"libcudart.so.13", "libcudart.so.12", "libcudart.so.14"})
      if (void *loaded = dlopen(name, RTLD_NOW | RTLD_NOLOAD))
        return loaded;
    std::abort(); // libtd_cuda called one of its functions
  }();
  return library;
}

template <class F> F *real(const char *name) { return reinterpret_cast<F *>(dlsym(runtime(), name)); }

inline constexpr int out_of_memory = 2; // cudaErrorMemoryAllocation

/// Calls the real function of that name unless it is this one's turn to fail.
template <class... Args> int unless_it_fails(const char *name, Args... args) {
  {
    const std::lock_guard lock(counting);
    if (resources++ == failing_resource)
      return out_of_memory;
  }
  return real<int(Args...)>(name)(args...);
}

} // namespace tdtest

extern "C" __attribute__((visibility("default"))) int cudaMallocFromPoolAsync(void **memory, std::size_t bytes,
                                                                              void *pool, void *stream) {
  const std::lock_guard lock(tdtest::counting);
  if (bytes > tdtest::largest) {
    ++tdtest::too_large;
    return tdtest::out_of_memory;
  }
  if (tdtest::left == 0) {
    tdtest::left = tdtest::once ? -1 : 0;
    return tdtest::out_of_memory;
  }
  if (tdtest::left > 0)
    --tdtest::left;
  static auto *allocate = tdtest::real<int(void **, std::size_t, void *, void *)>("cudaMallocFromPoolAsync");
  const int result = allocate(memory, bytes, pool, stream);
  if (result == 0) {
    ++tdtest::live;
    tdtest::sizes[*memory] = bytes;
    tdtest::live_bytes += bytes;
    tdtest::most_bytes = std::max(tdtest::most_bytes, tdtest::live_bytes);
  }
  return result;
}

extern "C" __attribute__((visibility("default"))) int cudaMallocHost(void **memory, std::size_t bytes) {
  return tdtest::unless_it_fails("cudaMallocHost", memory, bytes);
}

extern "C" __attribute__((visibility("default"))) int cudaStreamCreateWithFlags(void **stream, unsigned flags) {
  return tdtest::unless_it_fails("cudaStreamCreateWithFlags", stream, flags);
}

extern "C" __attribute__((visibility("default"))) int cudaEventCreateWithFlags(void **event, unsigned flags) {
  return tdtest::unless_it_fails("cudaEventCreateWithFlags", event, flags);
}

extern "C" __attribute__((visibility("default"))) int cudaEventCreate(void **event) {
  return tdtest::unless_it_fails("cudaEventCreate", event);
}

extern "C" __attribute__((visibility("default"))) int cudaHostRegister(void *memory, std::size_t bytes,
                                                                       unsigned flags) {
  if (!tdtest::pins)
    return tdtest::out_of_memory;
  static auto *pin = tdtest::real<int(void *, std::size_t, unsigned)>("cudaHostRegister");
  const int result = pin(memory, bytes, flags);
  const std::lock_guard lock(tdtest::counting);
  tdtest::pinned += result == 0 ? 1 : 0;
  return result;
}

extern "C" __attribute__((visibility("default"))) int cudaHostUnregister(void *memory) {
  static auto *unpin = tdtest::real<int(void *)>("cudaHostUnregister");
  {
    const std::lock_guard lock(tdtest::counting);
    --tdtest::pinned;
  }
  return unpin(memory);
}

extern "C" __attribute__((visibility("default"))) int cudaFreeAsync(void *memory, void *stream) {
  static auto *release = tdtest::real<int(void *, void *)>("cudaFreeAsync");
  const std::lock_guard lock(tdtest::counting);
  --tdtest::live;
  if (const auto found = tdtest::sizes.find(memory); found != tdtest::sizes.end()) {
    tdtest::live_bytes -= found->second;
    tdtest::sizes.erase(found);
  }
  return release(memory, stream);
}

extern "C" __attribute__((visibility("default"))) int cudaDeviceCanAccessPeer(int *can, int device, int other) {
  static auto *ask = tdtest::real<int(int *, int, int)>("cudaDeviceCanAccessPeer");
  const int result = ask(can, device, other);
  if (!tdtest::linked)
    *can = 0;
  return result;
}

extern "C" __attribute__((visibility("default"))) int cudaStreamIsCapturing(void *stream, int *state) {
  if (tdtest::stream_error != 0)
    return tdtest::stream_error;
  static auto *ask = tdtest::real<int(void *, int *)>("cudaStreamIsCapturing");
  return ask(stream, state);
}

namespace tdtest {

/// The first word of TD_TEST_DEVICES without a limit of its own; "cuda" without one. It may go on with / and option
/// exchange.
inline const std::string &devices() {
  static const std::string found = [] {
    const char *words = std::getenv("TD_TEST_DEVICES");
    std::istringstream all(words == nullptr ? "" : words);
    for (std::string word; all >> word;)
      if (word.find('@') == std::string::npos)
        return word;
    return std::string("cuda");
  }();
  return found;
}
inline bool one_gpu() { // not "cuda:0,1" or "cuda:all"
  return devices().find(',') == std::string::npos && devices().find("all") == std::string::npos;
}

/// A context on them, in which copies of tensors may take so many bytes.
inline td_status make_context(td_context **out, std::int64_t limit = 0) {
  tdpp::Options options{nullptr};
  TRY(td_options_create(options.out()));
  TRY(td_options_set_i64(options, "virtual_devices", 1));
  TRY(td_options_set_i64(options, "device_memory_limit", limit));
  const auto by = devices().find('/');
  TRY(td_options_set_str(options, "exchange", by == std::string::npos ? "auto" : devices().substr(by + 1).c_str()));
  return td_context_create(devices().substr(0, by).c_str(), options, out);
}

/// "tile" and "gemm": dense, by these kernels.
inline td_status make_tensor(Handles &h, const std::string &format) {
  if (format == "tile" || format == "gemm")
    TRY(td_options_set_str(h.options, "dense_kernel", format.c_str()));
  if (format == "dense" || format == "tile" || format == "gemm")
    return make_dense(h, h.x.out());
  TRY(td_options_set_str(h.options, "format", format.c_str()));
  return make_sparse(h, h.x.out());
}

using tdpp::last_error;

class Device : public testing::Test {
protected:
  void SetUp() override {
    left = -1;
    td_context *context = nullptr;
    const td_status status = make_context(&context);
    td_context_destroy(context);
    if (status == TD_ERR_BACKEND_UNAVAILABLE)
      GTEST_SKIP() << last_error();
    ASSERT_EQ(status, TD_OK) << last_error();
  }
  void TearDown() override {
    left = -1;
    once = false;
    largest = ~std::size_t{0};
    pins = true;
    failing_resource = -1;
    stream_error = 0;
  }
};

} // namespace tdtest
