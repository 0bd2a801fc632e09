// How much memory there is, told from files as the system writes them, and refusing what needs more.
#include "core/memory.hpp"

#include "unit/formats_random.hpp"
#include "unit/io_files.hpp"
#include "unit/solver_make.hpp"

namespace {

using namespace td;

/// A tree with /proc and /sys.
class FakeSystem {
public:
  const FakeSystem &put(const std::string &path, std::string_view content) const {
    std::filesystem::create_directories((folder_.path() / path).parent_path());
    folder_.put(path, content);
    return *this;
  }
  std::optional<i64> available() const { return td::available_memory(folder_.path().string() + "/"); }

private:
  io::TempFolder folder_;
};

constexpr std::string_view meminfo = "MemTotal:       16000 kB\nMemFree:         1000 kB\nMemAvailable:    8000 kB\n";
constexpr i64 in_system = 8000 * 1024;

TEST(Memory, IsWhatTheSystemHas) {
  EXPECT_EQ(FakeSystem().available(), std::nullopt);
  EXPECT_EQ(FakeSystem().put("proc/meminfo", meminfo).available(), in_system);
  EXPECT_EQ(FakeSystem().put("proc/meminfo", "MemTotal: 16000 kB\n").available(), std::nullopt);
  EXPECT_GT(td::available_memory().value_or(1), 0); // this machine
}

TEST(Memory, IsLimitedByAGroupOfVersion2AndThoseAboveIt) {
  const FakeSystem s;
  s.put("proc/meminfo", meminfo).put("proc/self/cgroup", "0::/batch/job\n");
  s.put("sys/fs/cgroup/batch/job/memory.max", "max\n").put("sys/fs/cgroup/batch/job/memory.current", "3000000\n");
  EXPECT_EQ(s.available(), in_system);
  s.put("sys/fs/cgroup/batch/memory.max", "5000000\n").put("sys/fs/cgroup/batch/memory.current", "4000000\n");
  EXPECT_EQ(s.available(), 1000000);
  // Pages of files can be given back.
  s.put("sys/fs/cgroup/batch/memory.stat", "anon 2500000\ninactive_file 1000000\nactive_file 500000\nslab 1\n");
  EXPECT_EQ(s.available(), 2500000);
  s.put("sys/fs/cgroup/batch/job/memory.max", "3000000\n");
  EXPECT_EQ(s.available(), 0);
  s.put("sys/fs/cgroup/batch/job/memory.current", "3500000\n"); // above its limit: not less than nothing
  EXPECT_EQ(s.available(), 0);
}

TEST(Memory, IsLimitedByAGroupOfVersion1) {
  const FakeSystem s;
  s.put("proc/meminfo", meminfo).put("proc/self/cgroup", "5:cpu,cpuacct:/a\n4:hugetlb,memory:/docker/c1\n0::/\n");
  s.put("sys/fs/cgroup/memory/docker/c1/memory.limit_in_bytes", "9223372036854771712\n");
  s.put("sys/fs/cgroup/memory/docker/c1/memory.usage_in_bytes", "100\n");
  s.put("sys/fs/cgroup/memory/docker/c1/memory.stat", "cache 4096\ntotal_inactive_file 4096\n"); // more than the usage
  EXPECT_EQ(s.available(), in_system);
  s.put("sys/fs/cgroup/memory/docker/c1/memory.limit_in_bytes", "2000000\n");
  s.put("sys/fs/cgroup/memory/docker/c1/memory.usage_in_bytes", "1500000\n");
  s.put("sys/fs/cgroup/memory/docker/c1/memory.stat", "inactive_file 7\ntotal_inactive_file 300000\n");
  EXPECT_EQ(s.available(), 800000);
}

TEST(Memory, IsLimitedByAContainersOwnMount) {
  // The path is the host's; inside, the group's files stand at the mount.
  const FakeSystem s;
  s.put("proc/meminfo", meminfo).put("proc/self/cgroup", "0::/system.slice/container-17\n");
  s.put("sys/fs/cgroup/memory.max", "4000000\n").put("sys/fs/cgroup/memory.current", "1000000\n");
  EXPECT_EQ(s.available(), 3000000);
  EXPECT_EQ(FakeSystem().put("proc/meminfo", meminfo).put("proc/self/cgroup", "nonsense\n::\n").available(), in_system);
}

TEST(Memory, SizesAreReadByPeople) {
  EXPECT_EQ(td::size_text(0), "0 bytes");
  EXPECT_EQ(td::size_text(999), "999 bytes");
  EXPECT_EQ(td::size_text(1500), "1.5 kB");
  EXPECT_EQ(td::size_text(999960), "1.0 MB");
  EXPECT_EQ(td::size_text(std::numeric_limits<i64>::max()), "9.2 EB");
}

TEST(Memory, RefusesWithTheNumbers) {
  td::MemoryNeed need;
  need.add("crumbs", 10.5);
  need.add("nothing", 0);
  need.add("bread", 2000);
  EXPECT_EQ(need.total(), 2011);
  td::require_memory("a meal", need, {2011, false}, "");
  EXPECT_EQ(test::refusal(Status::host_memory,
                          [&] {
                            td::require_memory("a meal", need, {2010, false}, "fasting needs less");
                          }),
            "out of host memory: a meal needs 2011 bytes (2.0 kB for bread, 11 bytes for crumbs); available are 2010 "
            "bytes; fasting needs less");
  need.add("a mountain", 1e30);
  EXPECT_EQ(need.total(), std::numeric_limits<i64>::max());
}

TEST(Memory, TheLimitCoversWhatIsHeldAlready) {
  const Options options = io::options({{"memory_limit", "1000"}});
  EXPECT_EQ(td::host_memory(options, 300).bytes, 700);
  EXPECT_TRUE(td::host_memory(options, 300).limited_by_option);
  EXPECT_EQ(td::host_memory(options, 1300).bytes, 0);
  EXPECT_FALSE(td::host_memory(Options{}, 300).limited_by_option);
}

TEST(Memory, ATensorThatDoesNotFitIsRefused) {
  const std::vector<i64> dims{30, 20, 10};
  const std::vector<double> values(6000, 1.0);
  auto entries = test::random_entries<i64, double>(dims, 2000, 0, 5);
  const auto build = [&](const char *format, const char *limit) {
    return tensor::Tensor::make_sparse(entries.view(), io::options({{"format", format}, {"memory_limit", limit}}), 1,
                                       "");
  };
  // Keys and values of 8 bytes twice, for sorting in one bin, and the bin of 2^8 prefixes; in the end one of each, and
  // a block's 4 numbers.
  EXPECT_EQ(test::refusal(Status::host_memory, [&] { build("blco", "64511"); }),
            "out of host memory: a blco tensor of 2000 entries needs 64512 bytes (32.4 kB for building it, 32.1 kB for "
            "the tensor); available are 64511 bytes of option 'memory_limit'; values in f32 need less");
  EXPECT_EQ(build("blco", "64512")->format(), plan::Format::blco);
  const std::string sorted = test::refusal(Status::host_memory, [&] { build("sorted", "64512"); });
  EXPECT_NE(sorted.find("format blco needs 64.5 kB"), std::string::npos) << sorted;
  EXPECT_EQ(build("auto", "100000")->format(), plan::Format::blco); // three sorted copies are more than a quarter
  EXPECT_EQ(build("auto", "1000000")->format(), plan::Format::sorted);
  test::refusal(Status::host_memory, [&] { build("auto", "50000"); });
  test::refusal(Status::host_memory, [&] {
    tensor::Tensor::make_dense({dims, {}, ValueType::f64, values.data()}, io::options({{"memory_limit", "40000"}}), 1,
                               "");
  });
}

TEST(Memory, ARunThatDoesNotFitIsRefusedBeforeItBegins) {
  const std::vector<i64> dims{30, 20, 10};
  const auto x = test::sparse_tensor(dims, std::vector<double>(6000, 1.0), "coo");
  auto request = test::request_for(*x, 100, 2);
  // 60 rows of 800 bytes: the model, a copy for each of two workers, the longest mode's products for each; 2 x 7
  // matrices of 80,000 bytes and 7 vectors of 800, of which three are the modes' scales; 800 bytes of weights.
  const i64 needed = 3 * 60 * 800 + 2 * 30 * 800 + 2 * 7 * 80000 + 2 * 7 * 800 + 800;
  test::set(request, {{"memory_limit", fmt::format("{}", x->bytes() + needed - 1).c_str()}});
  const std::string text = test::refusal(Status::host_memory, [&] { solvers::cpals(request); });
  EXPECT_NE(text.find(fmt::format("CP-ALS of rank 100 with 2 workers needs {} bytes (1.1 MB for Gram", needed)),
            std::string::npos)
      << text;
  EXPECT_NE(text.find(fmt::format("available are {} bytes", needed - 1)), std::string::npos) << text;
  test::set(request, {{"memory_limit", fmt::format("{}", x->bytes() + needed).c_str()}, {"max_iters", "1"}});
  EXPECT_EQ(solvers::cpals(request).report.iterations, 1);
}

} // namespace
