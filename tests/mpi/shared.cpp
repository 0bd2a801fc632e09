// A tensor that the processes of an MPI program share, beside the same tensor on each of them alone: the same facts,
// the same products, the same run; what one process does wrong is told on all; and the program's own messages are its
// own.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <td/td.hpp>
#include <td/td_mpi.h>

namespace {

using namespace tdpp;

int rank = 0, size = 1;

void expect(bool right, const std::string &what) {
  if (right)
    return;
  std::fprintf(stderr, "process %d of %d: %s\n", rank, size, what.c_str());
  MPI_Abort(MPI_COMM_WORLD, 1);
}

struct Entries {
  std::vector<std::int64_t> i, j, k;
  std::vector<double> values;
};

const std::vector<std::int64_t> dims{50, 40, 3000};

/// Entry e goes to process e mod `of`, if that is `which`; some coordinates come twice.
Entries entries(int which, int of) {
  Entries mine;
  for (std::int64_t e = 0; e < 6000; ++e) {
    if (e % of != which)
      continue;
    const std::int64_t n = e % 5500;
    mine.i.push_back(n % 50);
    mine.j.push_back(n / 50 % 40);
    mine.k.push_back(n * n % 2900);
    mine.values.push_back(std::sin(static_cast<double>(n % 50)) + 2 + static_cast<double>(e % 7));
  }
  return mine;
}

td_status create(td_context *context, const Entries &e, td_tensor **out, const td_options *options = nullptr) {
  const void *indices[] = {e.i.data(), e.j.data(), e.k.data()};
  return td_tensor_create(context, 3, dims.data(), static_cast<std::int64_t>(e.values.size()), TD_I64, indices, 0,
                          TD_F64, e.values.data(), TD_HOST, options, out);
}

void expect_near(const std::vector<double> &a, const std::vector<double> &b, double most, const char *what) {
  expect(a.size() == b.size(), what);
  for (std::size_t n = 0; n < a.size(); ++n)
    expect(std::abs(a[n] - b[n]) <= most * std::max(1.0, std::abs(b[n])), std::string(what) + " " + std::to_string(n) +
                                                                              ": " + std::to_string(a[n]) + ", alone " +
                                                                              std::to_string(b[n]));
}

std::vector<double> product(td_context *context, const td_tensor *x, std::int32_t mode) {
  std::vector<std::vector<double>> factors;
  std::vector<const void *> addresses;
  for (const std::int64_t dim : dims) {
    factors.emplace_back();
    for (std::int64_t n = 0; n < dim * 3; ++n)
      factors.back().push_back(std::cos(static_cast<double>(n)));
    addresses.push_back(factors.back().data());
  }
  std::vector<double> out(static_cast<std::size_t>(dims[static_cast<std::size_t>(mode)] * 3));
  check(td_mttkrp(context, x, mode, 3, addresses.data(), dims.data(), out.data(), dims[static_cast<std::size_t>(mode)],
                  TD_HOST));
  return out;
}

void compare_with_one(td_context *shared) {
  Context alone = make<Context>(td_context_create, "cpu", nullptr);
  Tensor x, whole;
  check(create(shared, entries(rank, size), x.out()));
  check(create(alone, entries(0, 1), whole.out()));
  expect(get<std::int64_t>(td_tensor_nnz, x) == get<std::int64_t>(td_tensor_nnz, whole), "nnz");
  for (std::int32_t mode = 0; mode < 3; ++mode)
    expect_near(product(shared, x, mode), product(alone, whole, mode), 1e-11, "product");
  const Options options{{"tol", "0"}, {"max_iters", "10"}};
  const Fitted run = cpals(shared, x, 3, options);
  const Fitted expected = cpals(alone, whole, 3, options);
  expect_near(series(td_report_get_series, run.report, "fit"), series(td_report_get_series, expected.report, "fit"),
              1e-9, "fit");
  expect_near(weights_of(run.model), weights_of(expected.model), 1e-6, "weight");
}

// A dense tensor of slabs of the first mode, whose processes count down.
void compare_dense_with_one(td_context *shared) {
  Context alone = make<Context>(td_context_create, "cpu", nullptr);
  const std::int64_t shape[] = {12, 11, 10}, none[] = {0, 0, 0};
  const std::int64_t begin = 12 * (size - 1 - rank) / size, end = 12 * (size - rank) / size;
  const std::int64_t offset[] = {begin, 0, 0}, block[] = {end - begin, 11, 10}, strides[] = {1, 12, 132};
  std::vector<double> values;
  for (int n = 0; n < 1320; ++n)
    values.push_back(std::cos(static_cast<double>(n % 12)) * (n / 12 % 11) + (n / 132) * (n % 12) + n % 7);
  Tensor x, whole;
  check(td_tensor_create_dense_block(shared, 3, shape, offset, block, strides, TD_F64, values.data() + begin, TD_HOST,
                                     nullptr, x.out()));
  check(td_tensor_create_dense_block(alone, 3, shape, none, shape, nullptr, TD_F64, values.data(), TD_HOST, nullptr,
                                     whole.out()));
  const Options options{{"tol", "0"}, {"max_iters", "10"}};
  const Fitted run = cpals(shared, x, 3, options);
  const Fitted expected = cpals(alone, whole, 3, options);
  expect_near(series(td_report_get_series, run.report, "fit"), series(td_report_get_series, expected.report, "fit"),
              1e-9, "dense fit");
}

// A run in order gives the bits of one worker: of a CPU, or of the first GPU that is there. The last process brings all
// entries, so that those at the same coordinates are summed in one order.
void compare_bits_with_one(td_context *shared, const std::string &devices) {
  Context alone = make<Context>(td_context_create, devices == "cpu" ? "cpu" : "cuda:0", nullptr);
  Tensor x, whole;
  check(create(shared, entries(rank == size - 1 ? 0 : 1, 1), x.out()));
  check(create(alone, entries(0, 1), whole.out(), Options{{"groups", "none"}}));
  const Options options{{"tol", "0"}, {"max_iters", "5"}, {"deterministic", "1"}};
  const Fitted run = cpals(shared, x, 3, options);
  const Fitted expected = cpals(alone, whole, 3, options);
  expect_near(series(td_report_get_series, run.report, "fit"), series(td_report_get_series, expected.report, "fit"), 0,
              "fit of a run in order");
  expect_near(weights_of(run.model), weights_of(expected.model), 0, "weight of a run in order");
}

// Messages of the program's own are under way while td works, with the same tags and from any source.
void send_beside(td_context *shared) {
  const int to = (rank + 1) % size;
  const int from = (rank + size - 1) % size;
  int sent = 100 + rank, came = -1;
  MPI_Request request;
  MPI_Irecv(&came, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &request);
  MPI_Barrier(MPI_COMM_WORLD);
  Tensor x;
  check(create(shared, entries(rank, size), x.out()));
  MPI_Send(&sent, 1, MPI_INT, to, 0, MPI_COMM_WORLD);
  cpals(shared, x, 2, Options{{"max_iters", "3"}});
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  expect(came == 100 + from, "a message of the program's own");
}

void fail_together(td_context *shared) {
  Entries mine = entries(rank, size);
  if (rank == size - 1)
    mine.j[3] = 40;
  Tensor x;
  expect(create(shared, mine, x.out()) == TD_ERR_INDEX, "a status of all");
  const std::string process =
      "process " + std::to_string(size - 1) + " of " + std::to_string(size) + ": entry 3, mode 1";
  expect(last_error().find(process) == 0, last_error());
}

} // namespace

// The arguments are the devices of one process after the other, and then from the first one again; without any it is
// the CPU.
int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  try {
    Communicator communicator;
    check(td_mpi_communicator_create(MPI_COMM_WORLD, communicator.out()));
    const Options options{{"threads", "1"}};
    const std::string devices = argc > 1 ? argv[1 + rank % (argc - 1)] : "cpu";
    const Context shared =
        make<Context>(td_context_create_distributed, devices.c_str(), static_cast<const td_options *>(options),
                      static_cast<td_communicator *>(communicator));
    compare_with_one(shared);
    compare_dense_with_one(shared);
    compare_bits_with_one(shared, devices);
    send_beside(shared);
    fail_together(shared);
    compare_with_one(shared); // and goes on
  } catch (const std::exception &e) {
    expect(false, e.what());
  }
  MPI_Finalize();
  return EXIT_SUCCESS;
}
