// Checkpoints that cannot be written, and checkpoints whose checksums are right and whose content is not.
#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "support/container_seal.hpp"
#include "support/handles.hpp"
#include "support/planted.hpp"
#include "support/problem.hpp"
#include "support/temporary.hpp"

namespace {

using namespace tdtest;

constexpr int rank = 2;
constexpr int saved_iterations = 4;

class Checkpoints : public testing::Test {
protected:
  Options options(int iterations) const {
    return Options{{"tol", "0"}, {"max_iters", std::to_string(iterations)}, {"seed", "5"}};
  }
  td_status resume(const std::string &file) const {
    Ktensor model;
    return td_cpals(context_, x_, rank, nullptr, options(saved_iterations + 2).set("resume", file), nullptr, nullptr,
                    model.out(), nullptr);
  }

  Random random_{11};
  Context context_ = make_context("cpu:2");
  Tensor x_ = make_tensor(context_, "coo", planted(random_, {7, 6, 5}, rank, 0, 0.3).entries);
  TemporaryFolder folder_;
};

std::string content_of(const std::string &file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void put(const std::string &file, const std::string &content) {
  std::ofstream(file, std::ios::binary | std::ios::trunc) << content;
}

/// Where the table's entry of a section stands.
std::size_t entry_of(const std::string &bytes, const std::string &section) {
  const auto table = number_at<std::uint64_t>(bytes, container_table_at);
  for (std::uint32_t i = 0; i < number_at<std::uint32_t>(bytes, container_sections_at); ++i)
    if (bytes.c_str() + table + i * table_entry_size == section)
      return table + i * table_entry_size;
  throw std::runtime_error("no section " + section);
}

struct Forgery {
  const char *section;
  const char *says; // what the refusal must name
  std::function<void(std::string &, std::size_t)> forge;
};

/// Overwrites one number of a section.
Forgery number(const char *section, const char *says, std::size_t at, double v) {
  return {section, says, [=](std::string &bytes, std::size_t entry) {
            put_at(bytes, number_at<std::uint64_t>(bytes, entry + entry_offset_at) + at * sizeof v, v);
          }};
}
Forgery count(const char *section, const char *says, std::uint64_t n) {
  return {section, says, [=](std::string &bytes, std::size_t entry) { put_at(bytes, entry + entry_count_at, n); }};
}
Forgery letter(const char *section, const char *says) {
  return {section, says, [=](std::string &bytes, std::size_t entry) {
            bytes[number_at<std::uint64_t>(bytes, entry + entry_offset_at)] = 'X';
          }};
}

TEST_F(Checkpoints, ContentThatNoRunLeaves) {
  const std::string file = folder_.file("run.tdb");
  cpals(context_, x_, rank, options(saved_iterations).set("checkpoint", file));
  ASSERT_EQ(resume(file), TD_OK);
  const std::string good = content_of(file);
  const double nan = std::nan("");
  const double infinity = std::numeric_limits<double>::infinity();
  std::vector<Forgery> forgeries = {
      number("series.iterations", "iterations", 0, nan),
      number("series.iterations", "iterations", 0, infinity),
      number("series.iterations", "iterations", 0, -3),
      number("series.iterations", "iterations", 0, 0),
      number("series.iterations", "iterations", 0, 2.5),
      number("series.iterations", "4503599627370496 iterations", 0, 4503599627370496.0),
      number("series.iterations", "iterations", 0, 1e300),
      count("series.iterations", "iterations", 0),
      number("series.exact_residuals", "exact_residuals", 0, -1),
      number("series.exact_residuals", "exact_residuals", 0, saved_iterations + 1),
      number("series.tensor_norm", "norm", 0, nan),
      number("series.fit", "fit", 1, 1.5),
      number("series.fit_change", "fit_change", 0, -0.5),
      number("series.residual", "residual", 0, -1),
      number("series.elapsed", "elapsed", saved_iterations - 1, -1),
      number("series.effective_rank", "effective_rank", 0, rank + 1),
      number("series.effective_rank", "effective_rank", 0, 0.5),
      number("series.mttkrp_seconds", "mttkrp_seconds", 5, -1e-9),
      number("weights", "weight", 1, infinity),
      number("factor.1", "factor 1", 3, nan),
      letter("text.kind", "Xpals checkpoint"),
      letter("text.settings", "Xode_order"),
      count("text.settings", "mode_order", 0),
  };
  for (const char *series : {"fit", "fit_change", "residual", "elapsed", "effective_rank", "mttkrp_seconds"}) {
    static std::vector<std::string> names; // of the sections
    names.reserve(16);
    const char *section = names.emplace_back(std::string("series.") + series).c_str();
    for (const double v : {nan, infinity, -infinity})
      forgeries.push_back(number(section, series, 0, v));
    for (const std::uint64_t n : {0U, 1U, 3U})
      forgeries.push_back(count(section, series, n));
  }
  for (const Forgery &f : forgeries) {
    std::string bytes = good;
    f.forge(bytes, entry_of(bytes, f.section));
    seal_container(bytes);
    put(file, bytes);
    EXPECT_LT(resume(file), 0) << f.section << ", " << f.says;
    EXPECT_NE(last_error().find(f.says), std::string::npos) << f.section << ": " << last_error();
  }
  put(file, good);
  EXPECT_EQ(resume(file), TD_OK);
}

/// Lets no file grow beyond some bytes, which writing meets as it meets a full disk.
class FileLimit {
public:
  explicit FileLimit(rlim_t bytes) {
    getrlimit(RLIMIT_FSIZE, &before_);
    rlimit small = before_;
    small.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &small);
  }
  FileLimit(const FileLimit &) = delete;
  FileLimit &operator=(const FileLimit &) = delete;
  ~FileLimit() { setrlimit(RLIMIT_FSIZE, &before_); }

private:
  rlimit before_ = {};
};

struct Watch {
  std::optional<FileLimit> limit;
  int calls = 0;
  int full_at = 0;  // the iteration after which nothing can be written
  int empty_at = 0; // and after which it can again; 0: never
  std::vector<std::string> errors;

  static int32_t progress(const td_report *so_far, void *user) {
    auto *w = static_cast<Watch *>(user);
    w->errors.push_back(report_str(so_far, "checkpoint_error"));
    if (++w->calls == w->full_at)
      w->limit.emplace(100);
    if (w->calls == w->empty_at)
      w->limit.reset();
    return 0;
  }
};

struct Log {
  std::vector<std::string> warnings;
  static void hear(int32_t level, const char *text, void *user) {
    if (level <= 1)
      static_cast<Log *>(user)->warnings.emplace_back(text);
  }
};

TEST_F(Checkpoints, FullDiskDoesNotEndTheRun) {
  const auto handler = std::signal(SIGXFSZ, SIG_IGN); // else the limit kills the program instead of failing the write
  Log log;
  check(td_context_set_log(context_, Log::hear, &log));
  const std::string file = folder_.file("run.tdb");
  const Fitted whole = cpals(context_, x_, rank, options(6));

  Watch watch;
  watch.full_at = 3;
  const Fitted full = cpals(context_, x_, rank, options(6).set("checkpoint", file).set("checkpoint_iters", "1"),
                            nullptr, Watch::progress, &watch);
  watch.limit.reset();
  EXPECT_EQ(full.status, TD_OK);
  EXPECT_EQ(report_i64(full.report, "iterations"), 6);
  EXPECT_EQ(weights_of(full.model), weights_of(whole.model));
  EXPECT_NE(report_str(full.report, "checkpoint_error").find("run.tdb"), std::string::npos);
  EXPECT_EQ(watch.errors[2], "");
  EXPECT_NE(watch.errors[3], "");
  ASSERT_EQ(log.warnings.size(), 4u); // after iterations 3, 4, 5 and 6
  EXPECT_NE(log.warnings[0].find("after 3 iterations"), std::string::npos) << log.warnings[0];
  // The last checkpoint that could be written is whole.
  const Fitted rest = cpals(context_, x_, rank, options(6).set("resume", file));
  EXPECT_EQ(report_i64(rest.report, "resumed_from"), 2);
  EXPECT_EQ(report_str(rest.report, "checkpoint_error"), "");
  const auto files = std::distance(std::filesystem::directory_iterator(folder_.path()), {});
  EXPECT_EQ(files, 1) << "a temporary file is left";

  // Room again: the last checkpoint is written, and nothing is wrong any more.
  Watch passing;
  passing.full_at = 2;
  passing.empty_at = 4;
  const Fitted later = cpals(context_, x_, rank, options(6).set("checkpoint", file).set("checkpoint_iters", "1"),
                             nullptr, Watch::progress, &passing);
  EXPECT_EQ(report_str(later.report, "checkpoint_error"), "");
  EXPECT_NE(passing.errors[3], "");
  check(td_context_set_log(context_, nullptr, nullptr));
  std::signal(SIGXFSZ, handler);
}

TEST_F(Checkpoints, PlaceThatCannotBeWrittenIsRefusedBeforeTheFirstIteration) {
  Watch watch;
  Ktensor model;
  const std::string missing = folder_.file("no_such_folder/run.tdb");
  EXPECT_EQ(td_cpals(context_, x_, rank, nullptr, options(3).set("checkpoint", missing), Watch::progress, &watch,
                     model.out(), nullptr),
            TD_ERR_IO);
  EXPECT_NE(last_error().find("no_such_folder"), std::string::npos) << last_error();
  EXPECT_EQ(watch.calls, 0);
  // A file that is no checkpoint would be lost.
  const std::string precious = folder_.file("x.tns");
  put(precious, "1 1 1 1.0\n");
  EXPECT_EQ(td_cpals(context_, x_, rank, nullptr, options(3).set("checkpoint", precious), nullptr, nullptr, model.out(),
                     nullptr),
            TD_ERR_IO);
  EXPECT_EQ(content_of(precious), "1 1 1 1.0\n");
  std::filesystem::remove(precious);
  // Where it can be written, trying leaves what is there as it is.
  const std::string file = folder_.file("run.tdb");
  cpals(context_, x_, rank, options(3).set("checkpoint", file));
  const std::string good = content_of(file);
  EXPECT_EQ(td_cpals(context_, x_, rank + 1, nullptr, options(4).set("checkpoint", file).set("resume", file), nullptr,
                     nullptr, model.out(), nullptr),
            TD_ERR_SHAPE);
  EXPECT_EQ(content_of(file), good);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.path()), {}), 1);
}

} // namespace
