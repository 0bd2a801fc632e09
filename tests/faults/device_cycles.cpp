// On a GPU: what is made and destroyed again and again leaves nothing behind.
#include <cstdint>
#include <fstream>
#include <functional>
#include <memory>
#include <vector>

#include <unistd.h>

#include "replaced_runtime.hpp"

namespace {

using namespace tdtest;

using MemoryInfo = int(std::size_t *, std::size_t *);

std::size_t free_memory() {
  std::size_t free = 0, total = 0;
  real<MemoryInfo>("cudaMemGetInfo")(&free, &total);
  return free;
}

std::size_t resident_host_memory() {
  std::size_t all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

constexpr const char *formats[] = {"coo", "blco", "sorted", "dense"};
/// Each GPU has memory for lists of rows, but not for the entries of any format.
std::int64_t least_memory() { return 600 / (1 + std::count(devices().begin(), devices().end(), ',')); }

std::int64_t streamed_bytes(const char *format) {
  Handles h;
  td_plan *plan = nullptr;
  std::int64_t bytes = -1;
  const auto ask = [&]() -> td_status {
    TRY(td_options_create(h.options.out()));
    TRY(make_context(h.context.out(), least_memory()));
    TRY(make_tensor(h, format));
    TRY(td_plan_create_for_tensor(h.context, h.x, 3, nullptr, &plan));
    return td_plan_get_i64(plan, "device_bytes.streamed", &bytes);
  };
  EXPECT_EQ(ask(), TD_OK) << last_error();
  td_plan_destroy(plan);
  return bytes;
}

/// A context, a tensor of a format built on the GPU or by the host (dense, coordinates), and MTTKRP; with all of the
/// tensor on the GPU or with nothing but its lists.
td_status cycle(const char *format, bool streamed) {
  Handles h;
  TRY(td_options_create(h.options.out()));
  TRY(make_context(h.context.out(), streamed ? least_memory() : 0));
  TRY(make_tensor(h, format));
  return multiply(h.context, h.x, 1);
}

/// What `count` cycles, each format and both ways in turn, leave behind of what is counted or measured.
struct Growth {
  long allocations;
  long pins;
  std::int64_t device_bytes;
  std::int64_t host_bytes;
};
Growth growth_over(int count, const std::function<void()> &besides) {
  const auto once = [&](int k) {
    EXPECT_EQ(cycle(formats[k % 4], k / 4 % 2 == 1), TD_OK) << "cycle " << k << ": " << last_error();
    besides();
  };
  for (int k = 0; k < 200 && !testing::Test::HasFailure(); ++k) // what is made once, and the allocators' first growth
    once(k);
  const long live_before = live, pinned_before = pinned;
  const std::size_t free_before = free_memory(), resident_before = resident_host_memory();
  for (int k = 0; k < count && !testing::Test::HasFailure(); ++k)
    once(k);
  return {live - live_before, pinned - pinned_before, static_cast<std::int64_t>(free_before - free_memory()),
          static_cast<std::int64_t>(resident_host_memory() - resident_before)};
}

// Allocations on the GPU and pins are counted one by one. Besides, a leak of 8 KiB of device memory, or of 4 KiB of
// the host's, in each cycle shows: streams, events and pinned buffers take as much.
constexpr std::int64_t most_device_bytes = std::int64_t{64} << 20;
constexpr std::int64_t most_host_bytes = std::int64_t{32} << 20;

TEST_F(Device, TenThousandCyclesDoNotGrow) {
  for (const char *format : formats)
    ASSERT_GT(streamed_bytes(format), 0) << format << " has room for all of the tensor";
  const Growth growth = growth_over(one_gpu() ? 10000 : 2000, [] {}); // with threads to start, cycles take longer
  EXPECT_EQ(growth.allocations, 0);
  EXPECT_EQ(growth.pins, 0);
  EXPECT_LE(growth.device_bytes, most_device_bytes);
  EXPECT_LE(growth.host_bytes, most_host_bytes);
}

// Growth would be seen: here a tensor stays in each of some cycles.
TEST_F(Device, GrowthShows) {
  std::vector<std::unique_ptr<Handles>> kept;
  const Growth growth = growth_over(100, [&] {
    Handles &h = *kept.emplace_back(std::make_unique<Handles>());
    ASSERT_EQ(make_context(h.context.out()), TD_OK) << last_error();
    ASSERT_EQ(td_options_create(h.options.out()), TD_OK);
    ASSERT_EQ(make_tensor(h, "blco"), TD_OK) << last_error();
    ASSERT_EQ(multiply(h.context, h.x, 1), TD_OK) << last_error();
  });
  EXPECT_GE(growth.allocations, 100);
  EXPECT_GT(growth.host_bytes, most_host_bytes / 100); // a hundredth of the cycles of the other test
}

} // namespace
