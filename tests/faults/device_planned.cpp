// On a GPU: the bytes that a plan tells of a device against those that a run allocates there, and a limit against those
// that building a tensor does.
#include <vector>

#include "replaced_runtime.hpp"

namespace {

using namespace tdtest;

struct Bytes {
  std::int64_t planned = 0;
  std::int64_t allocated = 0;
};

/// The bytes are those of CP-ALS with its copies of the tensor: 60,000 entries at places in no order, or 300,000
/// elements. A format beyond those of sparse tensors is a dense kernel.
td_status run(const std::string &format, std::int64_t rank, std::int64_t deterministic, Bytes &bytes) {
  constexpr std::int64_t shape[3] = {3000, 400, 500}, dense_shape[3] = {300, 50, 20};
  static std::vector<std::int32_t> columns[3];
  static std::vector<double> values;
  for (std::uint64_t state = 1; values.size() < 300000;) {
    for (std::size_t m = 0; m < 3; ++m) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      columns[m].push_back(static_cast<std::int32_t>((state >> 33) % static_cast<std::uint64_t>(shape[m])));
    }
    values.push_back(1 + static_cast<double>(state >> 60));
  }
  const void *indices[3] = {columns[0].data(), columns[1].data(), columns[2].data()};
  Handles h;
  TRY(make_context(h.context.out()));
  const std::size_t before = live_bytes; // a tensor that is built on the GPU stays there
  TRY(td_options_create(h.options.out()));
  if (format != "coo" && format != "blco" && format != "sorted") {
    TRY(td_options_set_str(h.options, "groups", "none"));
    TRY(td_options_set_str(h.options, "dense_kernel", format.c_str()));
    TRY(td_tensor_create_dense(h.context, 3, dense_shape, nullptr, TD_F64, values.data(), TD_HOST, h.options,
                               h.x.out()));
  } else {
    TRY(td_options_set_str(h.options, "format", format.c_str()));
    TRY(td_tensor_create(h.context, 3, shape, 60000, TD_I32, indices, 0, TD_F64, values.data(), TD_HOST, h.options,
                         h.x.out()));
  }
  TRY(td_options_set_i64(h.options, "deterministic", deterministic));
  TRY(td_options_set_i64(h.options, "max_iters", 2));
  TRY(td_options_set_f64(h.options, "tol", 0));
  TRY(td_options_set_str(h.options, "exact_residual", "never"));
  td_plan *plan = nullptr;
  TRY(td_plan_create_for_tensor(h.context, h.x, rank, h.options, &plan));
  const td_status asked = td_plan_get_i64(plan, "device_bytes.peak", &bytes.planned);
  td_plan_destroy(plan);
  TRY(asked);
  most_bytes = live_bytes;
  const td_status status = td_cpals(h.context, h.x, rank, nullptr, h.options, nullptr, nullptr, h.k.out(), nullptr);
  bytes.allocated = static_cast<std::int64_t>(most_bytes - before);
  return status;
}

TEST_F(Device, APlanTellsWhatIsAllocated) {
  for (const char *format : {"coo", "blco", "sorted", "auto", "elem", "slice", "tile", "gemm"})
    for (const std::int64_t rank : {16, 40})
      for (const std::int64_t deterministic : {0, 1}) {
        SCOPED_TRACE(std::string(format) + ", rank " + std::to_string(rank) + ", deterministic " +
                     std::to_string(deterministic));
        Bytes bytes;
        ASSERT_EQ(run(format, rank, deterministic, bytes), TD_OK) << last_error();
        const double ratio = static_cast<double>(bytes.planned) / static_cast<double>(bytes.allocated);
        std::printf("    %-6s rank %d deterministic %d: planned %lld, allocated %lld, %.3f\n", format,
                    static_cast<int>(rank), static_cast<int>(deterministic), static_cast<long long>(bytes.planned),
                    static_cast<long long>(bytes.allocated), ratio);
        // While one GPU still has what it built of a copy, others may have their parts of it.
        EXPECT_NEAR(ratio, 1, one_gpu() ? 0.1 : 0.25);
      }
}

// The limit has room for building, at less than 80 bytes an entry and 64 MiB besides, but not for all copies, too.
TEST_F(Device, BuildingStaysWithinTheLimit) {
  constexpr std::int64_t shape[3] = {3000, 400, 500}, entries = 4000000, limit = 400000000;
  std::vector<std::int32_t> columns[3];
  std::uint64_t state = 1;
  for (std::int64_t k = 0; k < entries; ++k)
    for (std::size_t m = 0; m < 3; ++m) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      columns[m].push_back(static_cast<std::int32_t>((state >> 33) % static_cast<std::uint64_t>(shape[m])));
    }
  const std::vector<double> values(static_cast<std::size_t>(entries), 1.0);
  const void *indices[3] = {columns[0].data(), columns[1].data(), columns[2].data()};
  Handles h;
  ASSERT_EQ(td_options_create(h.options.out()), TD_OK);
  ASSERT_EQ(td_options_set_str(h.options, "format", "sorted"), TD_OK);
  ASSERT_EQ(make_context(h.context.out(), limit), TD_OK);
  const std::size_t before = live_bytes;
  most_bytes = live_bytes;
  ASSERT_EQ(td_tensor_create(h.context, 3, shape, entries, TD_I32, indices, 0, TD_F64, values.data(), TD_HOST,
                             h.options, h.x.out()),
            TD_OK)
      << last_error();
  char text[512] = ""; // "2 workers: ..."; each has the limit
  ASSERT_EQ(td_context_describe(h.context, text, sizeof text, nullptr), TD_OK);
  const std::int64_t gpus = one_gpu() ? 1 : std::atoi(text);
  EXPECT_LE(static_cast<std::int64_t>(most_bytes - before), gpus * limit);
  EXPECT_GT(live_bytes, before) << "the host has built it";
}

} // namespace
