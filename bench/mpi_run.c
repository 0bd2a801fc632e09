/* What a run of CP-ALS by the processes of mpirun takes and sends, as one line of JSON of all of them:
 *
 *     mpirun -n 2 mpi_run FILE RANK ITERATIONS
 *
 * The first iteration is left out of the times. "read" is what td_tensor_read takes, storing included, and "building"
 * what storing takes, both the second time: the first pays besides for memory that the system has to find, which on a
 * virtual machine may be most of it. Bytes are those of an iteration; "replicas" is what they would be if each process
 * had all rows: sums to owners, and rows from them. */
#include <stdio.h>
#include <stdlib.h>

#include <td/td_mpi.h>

enum { most_iterations = 1000, most_modes = 64 };

static void require(td_status status, const char *what) {
  char why[512] = "";
  if (status >= 0)
    return;
  td_last_error(why, sizeof why);
  fprintf(stderr, "mpi_run: %s: %s\n", what, why);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int argc, char **argv) {
  td_communicator *communicator = NULL;
  td_context *context = NULL;
  td_tensor *x = NULL;
  td_options *options = NULL;
  td_plan *plan = NULL;
  td_ktensor *model = NULL;
  td_report *report = NULL;
  double ended[most_iterations], building = 0, rows = 0, dims[most_modes];
  int64_t n = 0, order = 0, planned = 0, sent = 0, bytes[2], sums[2], m;
  int rank = 0, size = 1;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc != 4) {
    fprintf(stderr, "usage: mpi_run FILE RANK ITERATIONS\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  const int64_t components = atoll(argv[2]);
  if (size > 1) {
    require(td_mpi_communicator_create(MPI_COMM_WORLD, &communicator), "communicator");
    require(td_context_create_distributed("cpu", NULL, communicator, &context), "context");
  } else {
    require(td_context_create("cpu", NULL, &context), "context");
  }
  td_communicator_destroy(communicator);

  double read = 0;
  for (int k = 0; k < 2; ++k) {
    td_tensor_destroy(x);
    x = NULL;
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    require(td_tensor_read(context, argv[1], NULL, &x), "tensor");
    MPI_Barrier(MPI_COMM_WORLD);
    read = MPI_Wtime() - begin;
  }
  require(td_tensor_get_f64(x, "seconds.build", &building), "tensor");

  require(td_options_create(&options), "options");
  require(td_options_set_str(options, "max_iters", argv[3]), "ITERATIONS");
  require(td_options_set_f64(options, "tol", 0), "options");
  require(td_plan_create_for_tensor(context, x, components, options, &plan), "plan");
  require(td_plan_get_i64(plan, "host_bytes.exchanged", &planned), "plan");
  require(td_plan_get_series(plan, "dims", dims, most_modes, &order), "plan");
  for (m = 0; m < order; ++m)
    rows += dims[m];
  require(td_cpals(context, x, components, NULL, options, NULL, NULL, &model, &report), "cpals");
  require(td_report_get_series(report, "seconds", ended, most_iterations, &n), "report");
  require(td_report_get_i64(report, "exchanged_bytes", &sent), "report");
  bytes[0] = sent / (n > 0 ? n : 1);
  bytes[1] = planned;
  MPI_Reduce(bytes, sums, 2, MPI_INT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    printf("{\"processes\": %d, \"read\": %.4f, \"building\": %.4f, \"sent\": %lld, \"planned\": %lld, "
           "\"replicas\": %.0f, \"iterations\": [",
           size, read, building, (long long)sums[0], (long long)sums[1], (size - 1) * rows * (double)components * 16);
    for (m = 1; m < n; ++m)
      printf("%s%.6f", m > 1 ? ", " : "", ended[m] - ended[m - 1]);
    printf("]}\n");
  }
  td_report_destroy(report);
  td_ktensor_destroy(model);
  td_plan_destroy(plan);
  td_options_destroy(options);
  td_tensor_destroy(x);
  td_context_destroy(context);
  MPI_Finalize();
  return 0;
}
