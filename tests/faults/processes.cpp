// What goes wrong on one process gives the same status on all, and none waits for ever: an entry, an option, memory, a
// callback, each function of the communicator at each of its calls, and each allocation. This program replaces operator
// new and delete, which libtd then uses too.
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <new>
#include <thread>

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include "support/devices.hpp"
#include "support/problem.hpp"
#include "support/processes.hpp"
#include "support/temporary.hpp"

namespace {

thread_local bool armed = false;
thread_local long left = 0; // allocations of this thread still to succeed before one fails

[[gnu::noinline]] void *allocate(std::size_t size, std::size_t alignment) noexcept {
  if (armed && !tdtest::in_communicator() && left-- == 0)
    return nullptr;
  void *p = nullptr;
  if (posix_memalign(&p, alignment < sizeof(void *) ? sizeof(void *) : alignment, size == 0 ? 1 : size) != 0)
    return nullptr;
  return p;
}

[[gnu::noinline]] void release(void *p) noexcept { std::free(p); }

} // namespace

#include "replaced_new.hpp"

namespace {

using namespace tdtest;

const std::vector<std::string> device_of_each = [] { // while allocations are counted nothing is made for a test
  std::vector<std::string> devices;
  for (int rank = 0; rank < 8; ++rank)
    devices.push_back(place_of(devices_of_process(process_devices(), rank)));
  return devices;
}();
const bool on_cpu = process_devices() == "cpu";

struct Ended {
  td_status status = TD_OK;
  std::string text;
  const char *in = "";
};

constexpr int64_t dims[3] = {6, 5, 4};
constexpr int64_t nnz = 40;

/// A process's part of a small tensor, on the stack.
struct Part {
  int64_t i[nnz], j[nnz], l[nnz], count = 0;
  double values[nnz];
  Part(int rank, int size) {
    for (int64_t n = rank; n < nnz; n += size, ++count) {
      i[count] = n % 6;
      j[count] = n / 6 % 5;
      l[count] = (7 * n + 1) % 4;
      values[count] = static_cast<double>(n % 7) - 2.5;
    }
  }
  /// The slabs of the last mode that process `rank` of `size` has of a dense array.
  td_status make_dense(td_context *context, int rank, int size, td_tensor **out) const {
    const int64_t begin = dims[2] * rank / size, end = dims[2] * (rank + 1) / size;
    const int64_t offset[3] = {0, 0, begin}, block[3] = {6, 5, end - begin};
    double cells[120];
    for (int n = 0; n < 120; ++n)
      cells[n] = n % 11 - 4.5;
    return td_tensor_create_dense_block(context, 3, dims, offset, block, nullptr, TD_F64, cells, TD_HOST, nullptr, out);
  }
  td_status make(td_context *context, td_tensor **out, const td_options *options = nullptr) const {
    const void *indices[3] = {i, j, l};
    return td_tensor_create(context, 3, dims, count, TD_I64, indices, 0, TD_F64, values, TD_HOST, options, out);
  }
};

#define TRY(call)                                                                                                      \
  if (const td_status status_of_call = (call); status_of_call < 0)                                                     \
    return {status_of_call, last_error(), #call};

const Options same_bits{{"deterministic", "1"}, {"max_iters", "1"}};
const Options in_blocks{{"model", "distributed"}, {"max_iters", "1"}};
const TemporaryFolder folder; // in which nothing may stay but whole files
const std::string model_file = folder.file("model.tdb");
const Options by_qr{{"solve", "qr"}, {"init", "nvecs"}, {"max_iters", "1"}};

/// What processes do together is gone through in two parts.
enum class What { sparse_run, other_calls };

Ended scenario(What what, td_communicator *communicator, int rank, int size, const td_options *options,
               const td_options *stored = nullptr) {
  Context context;
  Tensor x, dense;
  Ktensor model;
  Report report;
  const Part part(rank, size);
  TRY(td_context_create_distributed(device_of_each[static_cast<std::size_t>(rank)].c_str(), options, communicator,
                                    context.out()));
  TRY(part.make(context, x.out(), stored));
  if (what == What::other_calls) {
    TRY(td_cpals(context, x, 2, nullptr, same_bits, nullptr, nullptr, model.out(), nullptr));
    TRY(part.make_dense(context, rank, size, dense.out()));
    Ktensor other;
    TRY(td_cpals(context, x, 2, nullptr, by_qr, nullptr, nullptr, other.out(), nullptr));
    double a[12] = {1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6};
    double out[12];
    const void *factors[3] = {a, a, a};
    TRY(td_mttkrp(context, dense, 2, 2, factors, dims, out, 6, TD_HOST));
    Ktensor block, whole;
    TRY(td_cpals(context, x, 2, other, in_blocks, nullptr, nullptr, block.out(), nullptr));
    TRY(td_ktensor_gather(block, whole.out()));
    TRY(td_ktensor_write(block, model_file.c_str(), nullptr));
    return {};
  }
  TRY(td_cpals(context, x, 2, nullptr, options, nullptr, nullptr, model.out(), report.out()));
  double a[12] = {1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6};
  double out[12];
  const void *factors[3] = {a, a, a};
  TRY(td_mttkrp(context, x, 1, 2, factors, dims, out, 6, TD_HOST));
  return {};
}

void expect_one_end(const std::vector<Ended> &ended, bool text = true) {
  for (const Ended &e : ended) {
    EXPECT_EQ(e.status, ended.front().status) << e.text << " | " << ended.front().text;
    EXPECT_STREQ(e.in, ended.front().in);
    if (text) {
      EXPECT_EQ(e.text, ended.front().text);
    }
  }
}

const Options few_steps{{"tol", "0"}, {"max_iters", "2"}, {"threads", "1"}, {"virtual_devices", "1"}};

// One call returns a number: what the processes agree on by that call tells which of them it was.
TEST(OneProcessFails, InACallOfTheCommunicator) {
  constexpr std::pair<int, What> cases[] = {{2, What::sparse_run}, {3, What::sparse_run}, {3, What::other_calls}};
  for (const auto &one : cases)
    for (const bool for_good : {false, true}) {
      const int size = one.first;
      int64_t call = 0;
      int unknown = 0;
      for (bool failed = true; failed; call += light() ? 5 : one.second == What::sparse_run ? 1 : 3) {
        ASSERT_LT(call, 1000);
        SCOPED_TRACE("call " + std::to_string(call) + (for_good ? " and all later ones" : ""));
        Processes processes(size, {size - 1, call, for_good});
        std::vector<Ended> ended(static_cast<std::size_t>(size));
        processes.run([&](int rank) {
          const Communicator c = processes.communicator(rank);
          ended[static_cast<std::size_t>(rank)] = scenario(one.second, c, rank, size, few_steps);
        });
        EXPECT_EQ(processes.trouble(), "");
        EXPECT_EQ(processes.released(), size);
        failed = ended.back().status != TD_OK;
        // The last that is agreed on may fail where it has succeeded on the others: no message can tell them any more.
        if (failed && ended.front().status == TD_OK) {
          EXPECT_TRUE(processes.aborted());
          EXPECT_EQ(++unknown, 1);
          continue;
        }
        for (const Ended &e : ended) {
          EXPECT_EQ(e.status, failed ? TD_ERR_COMMUNICATION : TD_OK) << e.text;
          EXPECT_EQ(e.text.find("returned") != std::string::npos, failed) << e.text;
        }
        if (!processes.aborted())
          expect_one_end(ended);
      }
      EXPECT_GT(call, 50);
    }
}

void fail_to_allocate(What what) {
  if (process_devices() != "cpu")
    GTEST_SKIP() << "what stands for a GPU's driver allocates too, and not for td";
  const Options stored{{"format", "sorted"}};
  bool failed = true;
  const long step = what == What::sparse_run ? 1 : 4; // each goes through all before it again
  for (long k = 0; failed; k += light() ? 7 : step) {
    ASSERT_LT(k, 20000);
    SCOPED_TRACE("allocation " + std::to_string(k));
    Processes processes(2);
    std::vector<Ended> ended(2);
    std::vector<Communicator> communicators;
    for (int rank = 0; rank < 2; ++rank)
      communicators.push_back(processes.communicator(rank));
    processes.run([&](int rank) {
      armed = rank == 1;
      left = k;
      ended[static_cast<std::size_t>(rank)] =
          scenario(what, communicators[static_cast<std::size_t>(rank)], rank, 2, few_steps, stored);
      if (rank == 1)
        failed = left < 0;
      armed = false;
    });
    ASSERT_EQ(processes.trouble(), "") << ended[0].in << ended[0].text << " | " << ended[1].in << ended[1].text;
    expect_one_end(ended, false);
    EXPECT_TRUE(ended.front().status == TD_OK || ended.front().status == TD_ERR_HOST_MEMORY) << ended.front().text;
  }
}

void expect_whole_files() {
  for (const auto &entry : std::filesystem::directory_iterator(folder.path()))
    EXPECT_EQ(entry.path().filename(), "model.tdb");
}

TEST(OneProcessFails, ToAllocate) { fail_to_allocate(What::sparse_run); }
TEST(OneProcessFails, ToAllocateInOtherCalls) {
  fail_to_allocate(What::other_calls);
  expect_whole_files();
}

template <class Body> std::vector<Ended> ended_of(int size, Body &&body) {
  Processes processes(size);
  std::vector<Ended> ended(static_cast<std::size_t>(size));
  processes.run(process_devices(),
                [&](int rank, td_context *context) { ended[static_cast<std::size_t>(rank)] = body(rank, context); });
  EXPECT_EQ(processes.trouble(), "");
  expect_one_end(ended);
  return ended;
}

void expect_text(const Ended &ended, td_status status, const std::string &part) {
  EXPECT_EQ(ended.status, status);
  EXPECT_NE(ended.text.find(part), std::string::npos) << ended.text;
}

Ended made(const Part &part, td_context *context, const td_options *options = nullptr) {
  Tensor x;
  TRY(part.make(context, x.out(), options));
  return {};
}

TEST(OneProcessFails, ByItsEntriesAndOptions) {
  expect_text(ended_of(3,
                       [](int rank, td_context *context) {
                         Part part(rank, 3);
                         if (rank == 1)
                           part.j[4] = 5;
                         return made(part, context);
                       })
                  .front(),
              TD_ERR_INDEX, "process 1 of 3: entry 4, mode 1 (counting from 0): index 5 outside 0..4");
  expect_text(ended_of(3,
                       [](int rank, td_context *context) {
                         Part part(rank, 3);
                         if (rank == 2)
                           part.values[0] = std::nan("");
                         return made(part, context);
                       })
                  .front(),
              TD_ERR_ARGUMENT, "process 2 of 3: entry 0");
  expect_text(ended_of(2,
                       [](int rank, td_context *context) {
                         return made(Part(rank, 2), context, Options{{"format", rank == 0 ? "coo" : "blco"}});
                       })
                  .front(),
              TD_ERR_ARGUMENT, "process 1 of 2: order, dims, value_type or options of a tensor differ");
  expect_text(ended_of(2,
                       [](int rank, td_context *context) -> Ended {
                         Tensor x;
                         TRY(Part(rank, 2).make(context, rank == 0 ? nullptr : x.out()));
                         return {};
                       })
                  .front(),
              TD_ERR_ARGUMENT, "process 0 of 2: out: null pointer");
  expect_text(ended_of(2,
                       [](int rank, td_context *context) {
                         Part part(rank, 2);
                         part.i[0] = part.j[0] = part.l[0] = 0;
                         return made(part, context, Options{{"duplicates", "error"}});
                       })
                  .front(),
              TD_ERR_INDEX, "at the coordinates of others");
}

TEST(OneProcessFails, ByItsBlock) {
  struct Block {
    int64_t offset[3] = {0, 0, 0}, dims[3] = {6, 5, 2};
    int64_t of[3] = {6, 5, 4};
    double first = 1;
  };
  const auto end_of = [](const Block &first, const Block &second) {
    return ended_of(2,
                    [&](int rank, td_context *context) -> Ended {
                      const Block &b = rank == 0 ? first : second;
                      double cells[120] = {b.first};
                      Tensor x;
                      TRY(td_tensor_create_dense_block(context, 3, b.of, b.offset, b.dims, nullptr, TD_F64, cells,
                                                       TD_HOST, nullptr, x.out()));
                      return {};
                    })
        .front();
  };
  const Block front, back{{0, 0, 2}};
  EXPECT_EQ(end_of(front, back).status, TD_OK);
  expect_text(end_of(front, {{0, 0, 1}}), TD_ERR_SHAPE, "processes 0 and 1 both have element (0, 0, 1)");
  expect_text(end_of(front, {{0, 0, 2}, {6, 5, 1}}), TD_ERR_SHAPE,
              "have 90 of the 120 elements of a tensor of 6 x 5 x 4");
  expect_text(end_of(front, {{0, 0, 3}}), TD_ERR_SHAPE,
              "process 1 of 2: mode 2: a block of dim 2 at offset 3, expected it within the tensor's dim 4");
  expect_text(end_of(front, {{0, -1, 2}}), TD_ERR_SHAPE, "process 1 of 2: mode 1: a block of dim 5 at offset -1");
  expect_text(end_of(front, {{0, 0, 2}, {6, 5, -1}}), TD_ERR_SHAPE, "process 1 of 2: mode 2: a block of dim -1");
  expect_text(end_of(front, {{0, 0, 2}, {6, 5, 2}, {6, 5, 4}, std::nan("")}), TD_ERR_ARGUMENT,
              "process 1 of 2: element (0, 0, 2) (0-based): value nan");
  expect_text(end_of(front, {{0, 0, 2}, {6, 5, 2}, {6, 5, 5}}), TD_ERR_ARGUMENT, "process 1 of 2: order, dims");
}

TEST(OneProcessFails, ByItsRunsArguments) {
  const auto run = [](int rank, td_context *context, int64_t model_rank, const Options &options) -> Ended {
    Tensor x;
    Ktensor model;
    TRY(Part(rank, 2).make(context, x.out()));
    TRY(td_cpals(context, x, model_rank, nullptr, options, nullptr, nullptr, model.out(), nullptr));
    return {};
  };
  expect_text(ended_of(2, [&](int rank, td_context *c) { return run(rank, c, 2 + rank, few_steps); }).front(),
              TD_ERR_ARGUMENT, "process 1 of 2: td_cpals: rank, options");
  expect_text(ended_of(2,
                       [&](int rank, td_context *c) {
                         return run(rank, c, 2, Options{{"tol", rank == 0 ? "0" : "1e-3"}});
                       })
                  .front(),
              TD_ERR_ARGUMENT, "process 1 of 2");
  expect_text(ended_of(2,
                       [&](int rank, td_context *c) {
                         return run(rank, c, 2, Options{{"checkpoint", "/no/such/folder/run.tdb"}});
                       })
                  .front(),
              TD_ERR_IO, "process 0 of 2: ");
}

// Its context allows it too little memory.
TEST(OneProcessFails, ForWantOfMemory) {
  Processes processes(2);
  std::vector<Ended> ended(2);
  processes.run([&](int rank) {
    const Communicator c = processes.communicator(rank);
    Options options = copy(few_steps);
    options.set("memory_limit", rank == 1 ? "20000" : "0");
    Context context;
    Tensor x;
    Ktensor model;
    ended[static_cast<std::size_t>(rank)] = [&]() -> Ended {
      TRY(td_context_create_distributed(device_of_each[static_cast<std::size_t>(rank)].c_str(), options, c,
                                        context.out()));
      TRY(Part(rank, 2).make(context, x.out()));
      TRY(td_cpals(context, x, 400, nullptr, Options{{"max_iters", "2"}}, nullptr, nullptr, model.out(), nullptr));
      return {};
    }();
  });
  EXPECT_EQ(processes.trouble(), "");
  expect_one_end(ended);
  expect_text(ended.front(), TD_ERR_HOST_MEMORY, "process 1 of 2: ");
}

int32_t end_thread(const td_report *, void *) { pthread_exit(nullptr); }

// A callback that ends its thread, as td_log_fn and td_progress_fn may: the others end with an error.
TEST(OneProcessFails, ByAThreadThatEnds) {
  Processes processes(2);
  td_status other = TD_OK;
  std::string text;
  const auto process = [&](int rank, td_progress_fn progress) {
    const Communicator c = processes.communicator(rank);
    const Context context =
        make<Context>(td_context_create_distributed, device_of_each[static_cast<std::size_t>(rank)].c_str(),
                      static_cast<const td_options *>(few_steps), static_cast<td_communicator *>(c));
    Tensor x;
    check(Part(rank, 2).make(context, x.out()));
    Ktensor model;
    other = td_cpals(context, x, 2, nullptr, few_steps, progress, nullptr, model.out(), nullptr);
    text = last_error();
  };
  struct Ending {
    const decltype(process) &run;
    static void *start(void *self) {
      static_cast<Ending *>(self)->run(1, end_thread);
      return nullptr;
    }
  } ending{process};
  pthread_t thread{};
  ASSERT_EQ(pthread_create(&thread, nullptr, Ending::start, &ending), 0);
  process(0, nullptr);
  pthread_join(thread, nullptr);
  EXPECT_EQ(processes.trouble(), "");
  EXPECT_EQ(other, TD_ERR_INTERNAL);
  EXPECT_NE(text.find("process 1 of 2: a callback ended its thread"), std::string::npos) << text;
}

/// A context of `size` processes, as each of them has it: its description, or what it is refused with.
std::vector<Ended> opened(int size, const std::function<std::string(int)> &devices, const Options &options) {
  Processes processes(size);
  std::vector<Ended> ended(static_cast<std::size_t>(size));
  processes.run([&](int rank) {
    const Communicator c = processes.communicator(rank);
    ended[static_cast<std::size_t>(rank)] = [&]() -> Ended {
      Context context;
      TRY(td_context_create_distributed(devices(rank).c_str(), options, c, context.out()));
      return {TD_OK, text(td_context_describe, context), ""};
    }();
  });
  EXPECT_EQ(processes.trouble(), "");
  return ended;
}

std::vector<Ended> opened(int size, const std::string &devices, const Options &options = Options{}) {
  return opened(
      size, [&](int) { return devices; }, options);
}

void expect_refused(const std::vector<Ended> &ended, td_status status, const std::string &part) {
  expect_one_end(ended);
  expect_text(ended.front(), status, part);
}

// Each has a GPU of its own, as long as there are enough.
TEST(ProcessesWithGpus, TakeOneEach) {
  if (process_devices() == "cpu")
    GTEST_SKIP() << "no GPU in TD_TEST_DEVICES";
  const Options shared{{"virtual_devices", "1"}};
  int gpus = 0;
  for (std::vector<Ended> ended; gpus < 64; ++gpus) {
    ended = opened(gpus + 1, "cuda:local");
    if (ended.front().status != TD_OK) {
      expect_refused(ended, TD_ERR_BACKEND_UNAVAILABLE,
                     "process " + std::to_string(gpus) + " of " + std::to_string(gpus + 1) +
                         ": devices = \"cuda:local\": each of the GPUs that this process sees, " +
                         std::to_string(gpus));
      break;
    }
    for (int rank = 0; rank <= gpus; ++rank)
      EXPECT_NE(ended[static_cast<std::size_t>(rank)].text.find("cuda:" + std::to_string(rank)), std::string::npos)
          << ended[static_cast<std::size_t>(rank)].text;
  }
  ASSERT_GE(gpus, 1);
  EXPECT_NE(opened(gpus + 1, "cuda:local", shared).back().text.find("cuda:0"), std::string::npos);
  EXPECT_NE(opened(gpus, "auto").back().text.find("cuda:"), std::string::npos);
  EXPECT_EQ(opened(gpus + 1, "auto").front().text.find("cuda"), std::string::npos);
  expect_refused(opened(2, "cuda"), TD_ERR_BACKEND_UNAVAILABLE, "process 1 of 2: devices = \"cuda\": this GPU");
  EXPECT_EQ(opened(2, "cuda:0", shared).back().status, TD_OK);
  expect_refused(opened(1, "cuda:99"), TD_ERR_BACKEND_UNAVAILABLE, "cuda:99");
}

TEST(ProcessesWithGpus, RefuseWhatTheyCannotHave) {
  expect_refused(opened(2, "cpu:2"), TD_ERR_UNSUPPORTED, "the workers are the processes");
  expect_refused(opened(2, "cuda:local", Options{{"exchange", "peer"}}), TD_ERR_UNSUPPORTED, "'exchange' = \"peer\"");
  if (process_devices() == "cpu")
    GTEST_SKIP() << "no GPU in TD_TEST_DEVICES";
  const auto mixed = [](int rank) { return std::string(rank == 0 ? "cuda:local" : "cpu"); };
  EXPECT_EQ(opened(2, mixed, Options{{"exchange", "host"}}).back().status, TD_OK);
  expect_refused(opened(2, mixed, Options{{"exchange", "nccl"}}), TD_ERR_ARGUMENT, "GPUs, or none");
  expect_refused(opened(2, mixed, Options{}), TD_ERR_ARGUMENT, "process 1 of 2: devices (GPUs, or none, unless");
}

// Several GPUs a process, no matter how many the others have; of these none is another's.
TEST(ProcessesWithGpus, HaveSeveral) {
  if (on_cpu)
    GTEST_SKIP() << "no GPU in TD_TEST_DEVICES";
  const auto several = [](int rank) { return std::string(rank == 0 ? "cuda:0" : "cuda:1,2"); };
  const std::vector<Ended> ended = opened(2, several, Options{});
  if (ended.front().status == TD_ERR_BACKEND_UNAVAILABLE)
    GTEST_SKIP() << ended.front().text;
  EXPECT_EQ(ended.front().status, TD_OK) << ended.front().text;
  EXPECT_NE(ended.front().text.find("process 0 of 2, 1 of 3 workers: "), std::string::npos) << ended.front().text;
  EXPECT_NE(ended.back().text.find("process 1 of 2, 2 of 3 workers: "), std::string::npos) << ended.back().text;
  for (const char *both : {"cuda:0,1", "cuda:all"})
    expect_refused(opened(2, both), TD_ERR_BACKEND_UNAVAILABLE,
                   "process 1 of 2: devices = \"" + std::string(both) + "\": GPU 0 of these has a process");
  const auto overlapping = [](int rank) { return std::string(rank == 0 ? "cuda:0,1" : "cuda:2,1"); };
  expect_refused(opened(2, overlapping, Options{}), TD_ERR_BACKEND_UNAVAILABLE,
                 "process 1 of 2: devices = \"cuda:2,1\": GPU 1 of these");
  EXPECT_EQ(opened(2, overlapping, Options{{"virtual_devices", "1"}}).back().status, TD_OK);
  expect_refused(opened(2, "cuda:0,0"), TD_ERR_ARGUMENT, "cuda:0,0");
  const auto local = [](int rank) { return std::string(rank == 0 ? "cuda:local" : "cuda:1,2"); };
  expect_refused(opened(2, local, Options{}), TD_ERR_UNSUPPORTED, "process 0 of 2: devices = \"cuda:local\"");
}

// A GPU in software fails one allocation, whichever: all processes say so, and none waits for ever.
TEST(ProcessesWithGpus, OneHasTooLittleMemory) {
  void *const library = dlopen("libtd_cuda.so.0", RTLD_NOW | RTLD_NOLOAD);
  auto *const fail = library == nullptr
                         ? nullptr
                         : reinterpret_cast<int64_t (*)(int32_t, int64_t)>(dlsym(library, "td_software_fail"));
  if (fail == nullptr)
    GTEST_SKIP() << "no GPU in software";
  for (const char *exchange : {"nccl", "host"})
    for (const What what : {What::sparse_run, What::other_calls}) {
      Options options = copy(few_steps);
      options.set("exchange", exchange);
      int64_t k = 0, refused = 0;
      for (bool failed = true; failed; k += what == What::sparse_run ? 2 : 4) {
        ASSERT_LT(k, 2000);
        SCOPED_TRACE("allocation " + std::to_string(k));
        Processes processes(3);
        std::vector<Ended> ended(3);
        fail(1, k);
        processes.run([&](int rank) {
          const Communicator c = processes.communicator(rank);
          ended[static_cast<std::size_t>(rank)] = scenario(what, c, rank, 3, options);
        });
        failed = fail(1, -1) < 0;
        ASSERT_EQ(processes.trouble(), "");
        expect_one_end(ended);
        if (ended.front().status != TD_OK) {                      // else a copy that is not kept passes through
          const bool own = workers_of(process_devices(), 3) == 3; // else several have that GPU
          expect_text(ended.front(), TD_ERR_DEVICE_MEMORY, own ? "process 1 of 3: " : " of 3: ");
          ++refused;
        }
      }
      EXPECT_GT(refused, 10);
    }
}

TEST(Communicator, RefusesWhatIsNone) {
  const auto reduce = [](double *, int64_t, int32_t, void *) -> int32_t { return 0; };
  const auto exchange = [](const void *, const int64_t *, void *, const int64_t *, void *) -> int32_t { return 0; };
  const auto copy = [](void *, int64_t, int32_t, void *) -> int32_t { return 0; };
  const auto end = [](td_status, void *) {};
  const auto never = [](void *) { ADD_FAILURE() << "released though it was refused"; };
  td_communicator *made = nullptr;
  EXPECT_EQ(td_communicator_create(0, 0, reduce, exchange, copy, end, never, nullptr, &made), TD_ERR_ARGUMENT);
  EXPECT_EQ(td_communicator_create(2, 2, reduce, exchange, copy, end, never, nullptr, &made), TD_ERR_ARGUMENT);
  EXPECT_EQ(td_communicator_create(-1, 2, reduce, exchange, copy, end, never, nullptr, &made), TD_ERR_ARGUMENT);
  EXPECT_EQ(td_communicator_create(0, 1, nullptr, exchange, copy, end, never, nullptr, &made), TD_ERR_ARGUMENT);
  EXPECT_EQ(td_communicator_create(0, 1, reduce, nullptr, copy, end, never, nullptr, &made), TD_ERR_ARGUMENT);
  EXPECT_EQ(td_communicator_create(0, 1, reduce, exchange, nullptr, end, never, nullptr, &made), TD_ERR_ARGUMENT);
  EXPECT_EQ(td_communicator_create(0, 1, reduce, exchange, copy, nullptr, never, nullptr, &made), TD_ERR_ARGUMENT);
  EXPECT_EQ(td_communicator_create(0, 1, reduce, exchange, copy, end, never, nullptr, nullptr), TD_ERR_ARGUMENT);
  EXPECT_EQ(made, nullptr);
  td_context *context = nullptr;
  EXPECT_EQ(td_context_create_distributed("cpu", nullptr, nullptr, &context), TD_ERR_HANDLE);
  Processes processes(1);
  const tdpp::Communicator c = processes.communicator(0);
  EXPECT_EQ(td_context_create_distributed("cpu:2", nullptr, c, &context), TD_ERR_UNSUPPORTED);
  EXPECT_NE(last_error().find("the workers are the processes"), std::string::npos) << last_error();
  EXPECT_EQ(context, nullptr);
}

} // namespace
