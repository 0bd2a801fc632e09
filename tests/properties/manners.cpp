// The library leaves the process as it found it, and prints nothing.
#include <cfenv>
#include <clocale>
#include <csignal>
#include <cstdlib>

#include <dlfcn.h>
#include <gtest/gtest.h>

#include "support/planted.hpp"
#include "support/temporary.hpp"

namespace {

using namespace tdtest;

/// What a function of a library that libtd brings along says, or -1 where there is none.
int ask(const char *function) {
  using Asked = int (*)();
  void *found = dlsym(RTLD_DEFAULT, function);
  return found == nullptr ? -1 : reinterpret_cast<Asked>(found)();
}

struct Surroundings {
  int openmp_threads = ask("omp_get_max_threads");
  int openmp_dynamic = ask("omp_get_dynamic");
  int rounding = std::fegetround();
  std::string locale = std::setlocale(LC_ALL, nullptr);
  std::filesystem::path folder = std::filesystem::current_path();
  bool operator==(const Surroundings &) const = default;
};

void everything() {
  const TemporaryFolder folder;
  Random random(81);
  const Planted p = planted(random, {12, 9, 7}, 2, 0.3, 0.1);
  for (const char *devices : {"reference", "cpu", "cpu:3"}) {
    const Context context = make_context(devices);
    for (const char *format : {"coo", "blco", "sorted", "dense"}) {
      const Tensor x = make_tensor(context, format, p.entries);
      const Fitted run = cpals(context, x, 2, Options{{"init", "nvecs"}, {"max_iters", "3"}});
      const std::string file = folder.file("x.tdb");
      check(td_tensor_write(x, file.c_str(), nullptr));
      const Tensor back = make<Tensor>(td_tensor_read, context, file.c_str(), nullptr);
      check(td_ktensor_write(run.model, folder.file("k.txt").c_str(), nullptr));
    }
    Tensor none;
    EXPECT_EQ(td_tensor_read(context, "/no/such/file", nullptr, none.out()), TD_ERR_IO);
  }
}

TEST(Manners, SurroundingsStayAsTheyWere) {
  make_context("cpu"); // loads what is loaded lazily
  const Surroundings before;
  std::srand(5);
  const int expected = std::rand();
  std::srand(5);
  everything();
  EXPECT_EQ(std::rand(), expected);
  const Surroundings after;
  EXPECT_TRUE(before == after);
}

TEST(Manners, SignalHandlersStay) {
  std::vector<void (*)(int)> before, after;
  const auto handlers = [](std::vector<void (*)(int)> &list) {
    for (const int number : {SIGINT, SIGTERM, SIGPIPE, SIGFPE, SIGSEGV, SIGXFSZ}) {
      struct sigaction action {};
      sigaction(number, nullptr, &action);
      list.push_back(action.sa_handler);
    }
  };
  handlers(before);
  everything();
  handlers(after);
  EXPECT_EQ(before, after);
}

TEST(Manners, PrintsNothing) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  everything();
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

// Numbers are written and read with '.' whatever the locale says.
TEST(Manners, LocaleDoesNotChangeNumbers) {
  const std::string old = std::setlocale(LC_ALL, nullptr);
  const char *comma = nullptr;
  for (const char *name : {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8"})
    if (comma == nullptr)
      comma = std::setlocale(LC_ALL, name);
  if (comma == nullptr)
    GTEST_SKIP() << "no locale with a decimal comma is installed";
  const Options options;
  const td_status set = td_options_set_str(options, "tol", "0.5");
  double tol = 0;
  td_options_get_f64(options, "tol", &tol);
  everything();
  std::setlocale(LC_ALL, old.c_str());
  EXPECT_EQ(set, TD_OK);
  EXPECT_EQ(tol, 0.5);
}

} // namespace
