/* The processes of an MPI program decompose one tensor, of which each makes its own entries:
 *
 *     mpicc mpi.c -ltd -lm -o mpi && mpirun -n 4 ./mpi
 *
 * The five lines with "MPI" or "distributed" in them are all that makes it more than one process. Afterwards two
 * numbers that the program sends itself between td's calls show that its messages and td's never meet. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <td/td_mpi.h>

enum { dim = 60, entries = 20000 };

static void fail(const char *what) {
  char why[512];
  td_last_error(why, sizeof why);
  fprintf(stderr, "%s: %s\n", what, why);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);

  td_communicator *communicator = NULL;
  td_context *context = NULL;
  if (td_mpi_communicator_create(MPI_COMM_WORLD, &communicator) < 0 ||
      td_context_create_distributed("cpu", NULL, communicator, &context) < 0)
    fail("context");
  td_communicator_destroy(communicator); /* the context still has it */

  /* A tensor of rank 1, in cells that are spread by a quadratic: process r makes every size-th of them. */
  static int32_t i[entries], j[entries], k[entries];
  static double values[entries];
  int64_t n = 0;
  for (int64_t e = rank; e < entries; e += size, ++n) {
    i[n] = (int32_t)(e % dim);
    j[n] = (int32_t)(e / dim % dim);
    k[n] = (int32_t)(e * e % dim);
    values[n] = (1 + i[n]) * sin(1 + j[n]) / (2 + k[n]);
  }
  int next = -1;
  MPI_Request request; /* a message of the program's own is under way while td works */
  MPI_Irecv(&next, 1, MPI_INT, (rank + size - 1) % size, 0, MPI_COMM_WORLD, &request);

  const int64_t dims[3] = {dim, dim, dim};
  const void *indices[3] = {i, j, k};
  td_tensor *x = NULL;
  td_ktensor *model = NULL;
  td_report *report = NULL;
  if (td_tensor_create(context, 3, dims, n, TD_I32, indices, 0, TD_F64, values, TD_HOST, NULL, &x) < 0)
    fail("tensor");
  MPI_Send(&rank, 1, MPI_INT, (rank + 1) % size, 0, MPI_COMM_WORLD);
  if (td_cpals(context, x, 4, NULL, NULL, NULL, NULL, &model, &report) < 0)
    fail("cpals");
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (next != (rank + size - 1) % size)
    fail("a message of the program's own");

  int64_t nnz = 0, here = 0, iterations = 0;
  double fit = 0;
  td_tensor_nnz(x, &nnz);
  td_tensor_get_i64(x, "stored_here", &here);
  td_report_get_i64(report, "iterations", &iterations);
  td_report_get_f64(report, "fit", &fit);
  for (int turn = 0; turn < size; ++turn) { /* every process has the whole model, and prints in its turn */
    MPI_Barrier(MPI_COMM_WORLD);
    if (turn == rank)
      printf("process %d of %d: %lld of %lld entries, fit %.6f after %lld iterations\n", rank, size, (long long)here,
             (long long)nnz, fit, (long long)iterations);
    fflush(stdout);
  }
  td_ktensor_destroy(model);
  td_report_destroy(report);
  td_tensor_destroy(x);
  td_context_destroy(context);
  MPI_Finalize();
  return EXIT_SUCCESS;
}
