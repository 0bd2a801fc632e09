/* libtd_mpi: how the command becomes one of the processes that mpirun started. The command loads it from beside libtd
 * and needs no MPI itself (cli/processes.cpp). */
#define _POSIX_C_SOURCE 199309L /* nanosleep */
#include <time.h>

#include <td/td_mpi.h>

#define PLUGIN_API __attribute__((visibility("default")))

/* Joins the other processes. *out is null where there are none. */
PLUGIN_API td_status td_mpi_plugin_start(int32_t *rank, int32_t *size, td_communicator **out);
/* Leaves them. A process that failed may be waited for in what it has not come to: it waits for a few seconds to be
 * told otherwise, and then ends all. */
PLUGIN_API void td_mpi_plugin_finish(int32_t exit_code);

td_status td_mpi_plugin_start(int32_t *rank, int32_t *size, td_communicator **out) {
  int provided = 0, r = 0, s = 1;
  *out = NULL;
  if (MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS)
    return TD_ERR_COMMUNICATION;
  MPI_Comm_rank(MPI_COMM_WORLD, &r);
  MPI_Comm_size(MPI_COMM_WORLD, &s);
  *rank = r;
  *size = s;
  return s > 1 ? td_mpi_communicator_create(MPI_COMM_WORLD, out) : TD_OK;
}

void td_mpi_plugin_finish(int32_t exit_code) {
  const struct timespec a_while = {0, 10000000};
  MPI_Request all;
  int done = 0, waits;
  MPI_Ibarrier(MPI_COMM_WORLD, &all);
  for (waits = 0; exit_code != 0 && !done && waits < 500; ++waits) {
    MPI_Test(&all, &done, MPI_STATUS_IGNORE);
    nanosleep(&a_while, NULL);
  }
  if (exit_code == 0)
    MPI_Wait(&all, MPI_STATUS_IGNORE);
  else if (!done)
    MPI_Abort(MPI_COMM_WORLD, exit_code);
  MPI_Finalize();
}
