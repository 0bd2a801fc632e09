// On a GPU: the k-th allocation of device memory fails, for k = 0, 1, 2, ..., until a whole scenario succeeds. Each
// failure must come out as TD_ERR_DEVICE_MEMORY, leave the context usable and leak nothing. Where only that one fails,
// less is kept on the GPU, and results are the same.
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "replaced_runtime.hpp"

namespace {

using namespace tdtest;

td_status scenario(Handles &h, const std::string &format, const char *init, int deterministic) {
  TRY(td_options_create(h.options.out()));
  TRY(make_tensor(h, format));
  TRY(multiply(h.context, h.x, 3));
  TRY(td_options_set_i64(h.options, "max_iters", 2));
  TRY(td_options_set_i64(h.options, "deterministic", deterministic));
  TRY(td_options_set_str(h.options, "init", init));
  TRY(td_cpals(h.context, h.x, 2, nullptr, h.options, nullptr, nullptr, h.k.out(), h.report.out()));
  double fit = 0;
  return td_ktensor_fit(h.context, h.k, h.x, &fit, nullptr, nullptr, nullptr);
}

/// A run on the tests' devices, which exchange so.
td_status exchanging_scenario(const char *exchange, double *fit) {
  Handles h;
  TRY(td_options_create(h.options.out()));
  TRY(td_options_set_str(h.options, "exchange", exchange));
  TRY(td_context_create(devices().substr(0, devices().find('/')).c_str(), h.options, h.context.out()));
  TRY(td_options_create(h.options.out()));
  TRY(make_tensor(h, "sorted"));
  TRY(td_options_set_i64(h.options, "max_iters", 5));
  TRY(td_cpals(h.context, h.x, 2, nullptr, h.options, nullptr, nullptr, h.k.out(), h.report.out()));
  return td_ktensor_fit(h.context, h.k, h.x, fit, nullptr, nullptr, nullptr);
}

// The first test of all, with no context before it: which GPUs reach each other is asked once.
TEST(DeviceLinks, ThatAreMissingAreGoneAround) {
  double by_host = 0, by_auto = 0, by_peer = 0;
  if (one_gpu() || exchanging_scenario("host", &by_host) != TD_OK)
    GTEST_SKIP() << "needs two GPUs: " << last_error();
  linked = false;
  EXPECT_EQ(exchanging_scenario("peer", &by_peer), TD_ERR_BACKEND_UNAVAILABLE);
  EXPECT_NE(last_error().find("cuda:0 does not reach the memory of cuda:1"), std::string::npos) << last_error();
  EXPECT_EQ(exchanging_scenario("auto", &by_auto), TD_OK) << last_error();
  linked = true;
  EXPECT_NEAR(by_auto, by_host, 1e-12);
  EXPECT_GT(by_host, 0);
  EXPECT_EQ(exchanging_scenario("peer", &by_peer), TD_OK) << last_error();
  EXPECT_NEAR(by_peer, by_host, 1e-12);
}

TEST_F(Device, EachAllocationMayFail) {
  for (const char *format : {"coo", "blco", "sorted", "dense", "tile", "gemm"})
    for (const char *init : {"random", "nvecs"})
      for (const int deterministic : {0, 1}) {
        SCOPED_TRACE(std::string(format) + ", init " + init);
        const long before = live;
        td_status status = TD_ERR_DEVICE_MEMORY;
        long k = 0;
        for (; status != TD_OK && k < 10000; ++k) {
          Handles h;
          ASSERT_EQ(make_context(h.context.out()), TD_OK);
          left = k;
          status = scenario(h, format, init, deterministic);
          left = -1;
          if (status != TD_OK) {
            ASSERT_EQ(status, TD_ERR_DEVICE_MEMORY) << "allocation " << k << ": " << last_error();
            ASSERT_NE(last_error().find("out of device memory"), std::string::npos) << last_error();
            if (h.x != nullptr) {
              ASSERT_EQ(multiply(h.context, h.x, 3), TD_OK) << "after allocation " << k << ": " << last_error();
            }
          }
        }
        EXPECT_EQ(status, TD_OK);
        EXPECT_GT(k, 10) << "fewer allocations than there must be: are they seen?";
        EXPECT_EQ(live, before);
      }
}

/// A dense tensor of 9 MB, which is copied through pinned buffers or, with a limit, passes through in parts.
td_status large_scenario(Handles &h, int64_t limit, double *fit) {
  static constexpr int64_t shape[3] = {120, 100, 95};
  static const std::vector<double> values = [] {
    std::vector<double> all(static_cast<std::size_t>(shape[0] * shape[1] * shape[2]));
    for (std::size_t k = 0; k < all.size(); ++k)
      all[k] = static_cast<double>(k * 2654435761u % 1000) - 300;
    return all;
  }();
  TRY(td_options_create(h.options.out()));
  TRY(make_context(h.context.out(), limit));
  TRY(td_tensor_create_dense(h.context, 3, shape, nullptr, TD_F64, values.data(), TD_HOST, nullptr, h.x.out()));
  TRY(td_options_set_i64(h.options, "max_iters", 2));
  TRY(td_cpals(h.context, h.x, 2, nullptr, h.options, nullptr, nullptr, h.k.out(), h.report.out()));
  return td_ktensor_fit(h.context, h.k, h.x, fit, nullptr, nullptr, nullptr);
}

// Streams, events and pinned buffers, too. Where one of several is missing work goes on with the others.
TEST_F(Device, EachStreamEventAndBufferMayFail) {
  for (const int64_t limit : {0, 4000000}) {
    double expected = 0;
    long asked = 1;
    for (long k = -1; k < asked; ++k) { // first without
      SCOPED_TRACE("limit " + std::to_string(limit) + ", resource " + std::to_string(k));
      const long before = live;
      {
        Handles h;
        double fit = 0;
        resources = 0;
        failing_resource = k;
        const td_status status = large_scenario(h, limit, &fit);
        failing_resource = -1;
        if (k < 0) {
          ASSERT_EQ(status, TD_OK) << last_error();
          expected = fit;
          asked = resources;
        } else if (status == TD_OK) {
          EXPECT_NEAR(fit, expected, 1e-9); // a million terms in another order
        } else {
          ASSERT_EQ(status, TD_ERR_DEVICE_MEMORY) << last_error();
          if (h.x != nullptr) {
            ASSERT_EQ(td_cpals(h.context, h.x, 2, nullptr, nullptr, nullptr, nullptr, h.k.out(), nullptr), TD_OK)
                << last_error();
          }
        }
      }
      EXPECT_EQ(live, before);
    }
    EXPECT_GT(asked, 10) << "fewer than there must be: are they seen?";
  }
}

// Alone, a failure is made good: what finds no room stays on the host, and what is kept makes room.
TEST_F(Device, OneAllocationMayFail) {
  for (const char *format : {"coo", "blco", "sorted", "dense"}) {
    double fit = 0;
    long made_good = 0;
    bool failed = true;
    for (long k = -1; failed && k < 10000; ++k) { // first without
      SCOPED_TRACE(std::string(format) + ", allocation " + std::to_string(k));
      Handles h;
      ASSERT_EQ(make_context(h.context.out()), TD_OK);
      left = k;
      once = true;
      const td_status status = scenario(h, format, "random", 0);
      failed = left < 0;
      left = -1;
      if (status == TD_OK) {
        double now = 0;
        ASSERT_EQ(td_ktensor_fit(h.context, h.k, h.x, &now, nullptr, nullptr, nullptr), TD_OK) << last_error();
        if (k < 0)
          fit = now;
        EXPECT_NEAR(now, fit, 1e-10); // 40 entries, 2 iterations
        made_good += k >= 0 && failed ? 1 : 0;
        continue;
      }
      ASSERT_EQ(status, TD_ERR_DEVICE_MEMORY) << last_error();
      if (h.x != nullptr) {
        ASSERT_EQ(multiply(h.context, h.x, 3), TD_OK) << last_error();
      }
    }
    EXPECT_FALSE(failed);
    EXPECT_GT(made_good, 0);
  }
}

// ---- dense tensors that auto multiplies by cuBLAS, whose workspace is 32 MiB and more

constexpr std::size_t below_cublas = (std::size_t{32} << 20) - 1;
constexpr int64_t wide_shape[3] = {100, 80, 60};
constexpr int64_t wide_rank = 64;

td_status make_wide(Handles &h, const char *kernel) {
  static const std::vector<double> values = [] {
    std::vector<double> all(static_cast<std::size_t>(wide_shape[0] * wide_shape[1] * wide_shape[2]));
    for (std::size_t k = 0; k < all.size(); ++k)
      all[k] = static_cast<double>(k * 2654435761u % 1000) / 7 - 60;
    return all;
  }();
  TRY(make_context(h.context.out()));
  TRY(td_options_create(h.options.out()));
  TRY(td_options_set_str(h.options, "dense_kernel", kernel));
  TRY(td_options_set_str(h.options, "groups", "none"));
  return td_tensor_create_dense(h.context, 3, wide_shape, nullptr, TD_F64, values.data(), TD_HOST, h.options,
                                h.x.out());
}

td_status multiply_wide(const Handles &h, int32_t mode, std::vector<double> &out) {
  std::vector<double> a(static_cast<std::size_t>(wide_shape[0] * wide_rank));
  for (std::size_t k = 0; k < a.size(); ++k)
    a[k] = static_cast<double>(k * 40503u % 1000) / 3 - 150;
  const void *factors[3] = {a.data(), a.data(), a.data()};
  out.assign(static_cast<std::size_t>(wide_shape[mode] * wide_rank), 0.0);
  return td_mttkrp(h.context, h.x, mode, wide_rank, factors, wide_shape, out.data(), wide_shape[mode], TD_HOST);
}

td_status decompose_wide(Handles &h, int64_t deterministic) {
  TRY(td_options_set_i64(h.options, "deterministic", deterministic));
  TRY(td_options_set_i64(h.options, "max_iters", 1));
  return td_cpals(h.context, h.x, wide_rank, nullptr, h.options, nullptr, nullptr, h.k.out(), nullptr);
}

// It then takes `fused` and evicts nothing.
TEST_F(Device, AutoNeedsNoRoomForCublas) {
  if (!one_gpu())
    GTEST_SKIP() << "parts of a tensor may be multiplied by other kernels";
  Handles fused, gemm, automatic;
  ASSERT_EQ(make_wide(fused, "fused"), TD_OK) << last_error();
  ASSERT_EQ(make_wide(gemm, "gemm"), TD_OK) << last_error();
  ASSERT_EQ(make_wide(automatic, "auto"), TD_OK) << last_error();
  tdpp::Plan plan;
  ASSERT_EQ(td_plan_create_for_tensor(automatic.context, automatic.x, wide_rank, nullptr, plan.out()), TD_OK);
  int by_cublas = 0;
  for (int32_t mode = 0; mode < 3; ++mode) {
    SCOPED_TRACE("mode " + std::to_string(mode));
    if (tdpp::text(td_plan_get_str, plan, ("kernel." + std::to_string(mode)).c_str()).find("cuBLAS") ==
        std::string::npos)
      continue; // costs that change with what was measured decide
    ++by_cublas;
    std::vector<double> by_fused, by_gemm, by_auto;
    ASSERT_EQ(multiply_wide(fused, mode, by_fused), TD_OK) << last_error();
    ASSERT_EQ(multiply_wide(gemm, mode, by_gemm), TD_OK) << last_error();
    ASSERT_EQ(multiply_wide(automatic, mode, by_auto), TD_OK) << last_error();
    EXPECT_EQ(by_auto, by_gemm) << "with room auto takes gemm";
    EXPECT_NE(by_fused, by_gemm) << "the kernels cannot be told from each other";

    const long resident = live;
    largest = below_cublas;
    too_large = 0;
    const td_status status = multiply_wide(automatic, mode, by_auto);
    largest = ~std::size_t{0};
    ASSERT_EQ(status, TD_OK) << last_error();
    EXPECT_EQ(too_large, 1) << "allocations for cuBLAS";
    EXPECT_EQ(by_auto, by_fused);
    EXPECT_EQ(live, resident);
    ASSERT_EQ(multiply_wide(automatic, mode, by_auto), TD_OK) << last_error();
    EXPECT_EQ(by_auto, by_gemm) << "there is room again";
  }
  EXPECT_GT(by_cublas, 0) << "auto takes fused in all modes";
}

// Where results may not depend on what is free, or `gemm` was asked for, there is no other kernel.
TEST_F(Device, RoomForCublasThatIsAskedForIsNeeded) {
  for (const char *kernel : {"gemm", "auto"}) {
    SCOPED_TRACE(kernel);
    const bool named = std::string(kernel) == "gemm";
    const long before = live;
    {
      Handles h;
      ASSERT_EQ(make_wide(h, kernel), TD_OK) << last_error();
      for (const int64_t deterministic : {0, 1}) {
        SCOPED_TRACE("deterministic " + std::to_string(deterministic));
        largest = below_cublas;
        const td_status status = decompose_wide(h, deterministic);
        const std::string sentence = last_error();
        largest = ~std::size_t{0};
        if (!named && deterministic == 0) {
          EXPECT_EQ(status, TD_OK) << sentence;
          continue;
        }
        EXPECT_EQ(status, TD_ERR_DEVICE_MEMORY);
        EXPECT_NE(sentence.find("out of device memory"), std::string::npos) << sentence;
        EXPECT_NE(sentence.find("dense_kernel = fused needs less"), std::string::npos) << sentence;
        ASSERT_EQ(decompose_wide(h, deterministic), TD_OK) << "with room: " << last_error();
      }
    }
    EXPECT_EQ(live, before);
  }
}

struct Sums {
  td_status status = TD_ERR_INTERNAL;
  double fit = 0;
  double factor[4 * 400] = {};
};

/// The tensor has 200,000 entries, and so many bytes are for copies of it.
Sums decompose(const char *format, int64_t limit, int64_t deterministic) {
  constexpr int64_t entries = 200000;
  static std::vector<int64_t> columns[3];
  static std::vector<double> values;
  for (uint64_t state = 1; static_cast<int64_t>(values.size()) < entries;) {
    for (auto &column : columns) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      column.push_back(static_cast<int64_t>((state >> 33) % 400));
    }
    values.push_back(static_cast<double>(state >> 60));
  }
  constexpr int64_t shape[3] = {400, 400, 400};
  const void *indices[3] = {columns[0].data(), columns[1].data(), columns[2].data()};
  Sums sums;
  Handles h;
  const auto run = [&]() -> td_status {
    TRY(td_options_create(h.options.out()));
    TRY(make_context(h.context.out(), limit));
    TRY(td_options_set_str(h.options, "format", format));
    TRY(td_tensor_create(h.context, 3, shape, entries, TD_I64, indices, 0, TD_F64, values.data(), TD_HOST, h.options,
                         h.x.out()));
    TRY(td_options_set_i64(h.options, "max_iters", 3));
    TRY(td_options_set_i64(h.options, "deterministic", deterministic));
    TRY(td_options_set_str(h.options, "exact_residual", "always"));
    TRY(td_cpals(h.context, h.x, 4, nullptr, h.options, nullptr, nullptr, h.k.out(), h.report.out()));
    TRY(td_ktensor_fit(h.context, h.k, h.x, &sums.fit, nullptr, nullptr, nullptr));
    return td_ktensor_get_factor(h.k, 1, sums.factor, 400, TD_HOST);
  };
  sums.status = run();
  return sums;
}

// All of the tensor is on the GPU, some, and nothing but lists of rows; it passes through pinned memory and without.
TEST_F(Device, ATensorWithoutRoomIsStreamed) {
  for (const char *format : {"coo", "blco", "sorted"})
    for (const int64_t deterministic : {0, 1}) {
      const Sums whole = decompose(format, 0, deterministic);
      ASSERT_EQ(whole.status, TD_OK) << last_error();
      for (const int64_t limit : {4000000, 2000000, 300000})
        for (const bool can_pin : {true, false}) {
          SCOPED_TRACE(std::string(format) + ", " + std::to_string(limit) + " bytes, pinned " +
                       std::to_string(can_pin) + ", deterministic " + std::to_string(deterministic));
          pins = can_pin;
          const Sums some = decompose(format, limit, deterministic);
          pins = true;
          ASSERT_EQ(some.status, TD_OK) << last_error();
          EXPECT_EQ(pinned, 0) << "ranges still pinned";
          if (deterministic == 1) {
            EXPECT_EQ(std::memcmp(some.factor, whole.factor, sizeof some.factor), 0);
          }
          EXPECT_NEAR(some.fit, whole.fit, 1e-9); // 200,000 terms in another order
        }
    }
}

TEST_F(Device, ALimitTooSmallForListsIsRefusedWithNumbers) {
  EXPECT_EQ(decompose("sorted", 1000, 0).status, TD_ERR_DEVICE_MEMORY);
  EXPECT_NE(last_error().find("option 'device_memory_limit'"), std::string::npos) << last_error();
}

TEST_F(Device, CallsAreRepeatedWithoutANewCopy) {
  Handles h;
  ASSERT_EQ(make_context(h.context.out()), TD_OK);
  ASSERT_EQ(td_options_create(h.options.out()), TD_OK);
  const long before = live;
  ASSERT_EQ(make_tensor(h, "blco"), TD_OK);
  long with_copy = live;
  if (one_gpu()) {
    EXPECT_GT(with_copy, before) << "what was built stays";
  }
  ASSERT_EQ(multiply(h.context, h.x, 3), TD_OK);
  if (one_gpu()) {
    EXPECT_EQ(live, with_copy);
  }
  with_copy = live; // several GPUs have parts instead
  ASSERT_EQ(multiply(h.context, h.x, 9), TD_OK);
  EXPECT_EQ(live, with_copy);

  td_context *other = nullptr; // on the same GPU: the copy serves it too, and outlives the context that made it
  ASSERT_EQ(make_context(&other), TD_OK);
  h.context.reset(other);
  ASSERT_EQ(multiply(other, h.x, 3), TD_OK);
  EXPECT_EQ(live, with_copy);

  double values[nnz]; // a copy for the host does not take the GPU's away
  ASSERT_EQ(td_tensor_get_entries(h.x, TD_I64, nullptr, 0, TD_F64, values), TD_OK) << last_error();
  EXPECT_EQ(live, with_copy);
  char text[512] = ""; // "2 workers: ..."; each has flags by which several GPUs of a context wait for each other
  ASSERT_EQ(td_context_describe(h.context, text, sizeof text, nullptr), TD_OK);
  h.x.reset();
  EXPECT_GE(live, before);
  EXPECT_LE(live, before + (one_gpu() ? 0 : std::atoi(text)));
  h.context.reset();
  EXPECT_EQ(live, before);
}

// Asking a caller's stream may tell errors of work that was started before; they are not the argument's.
TEST_F(Device, AnArgumentIsRefusedOnlyForWhatIsWrongWithAStream) {
  void *const stream = reinterpret_cast<void *>(1); // cudaStreamLegacy
  Handles h;
  ASSERT_EQ(make_context(h.context.out()), TD_OK);
  const struct {
    int error; // CUDA's number
    td_status status;
  } cases[] = {{0, TD_OK},
               {400, TD_ERR_ARGUMENT}, // cudaErrorInvalidResourceHandle
               {900, TD_ERR_ARGUMENT}, // cudaErrorStreamCaptureUnsupported
               {700, TD_ERR_DEVICE},   // cudaErrorIllegalAddress
               {719, TD_ERR_DEVICE}};  // cudaErrorLaunchFailure
  for (const auto &[error, status] : cases) {
    stream_error = error;
    EXPECT_EQ(td_context_set_stream(h.context, 0, stream), status) << error << ": " << last_error();
  }
}

} // namespace
