/* td_mpi.h - td over MPI: a td_communicator made of an MPI_Comm.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * It is compiled with a program, by its own mpicc, and so fits every MPI; libtd itself needs none. The communicator is
 * duplicated, so that td's messages never meet the program's. MPI_THREAD_FUNNELED is enough where the thread that
 * calls td is the one that calls MPI. A program becomes one of many processes in a few lines:
 *
 *     MPI_Init(&argc, &argv);
 *     td_mpi_communicator_create(MPI_COMM_WORLD, &communicator);
 *     td_context_create_distributed("cpu", NULL, communicator, &context);     instead of td_context_create
 *     td_communicator_destroy(communicator);                                  the context still has it
 *     td_tensor_create(context, ..., this process's entries, ...);  td_cpals(context, ...);      as before
 *     td_context_destroy(context);
 *     MPI_Finalize();
 *
 * Contexts and tensors are to end before MPI_Finalize, on all processes. It compiles as C99 and as C++17.
 */
#ifndef TD_TD_MPI_H
#define TD_TD_MPI_H

#include <stdlib.h>
#include <string.h>

#include <mpi.h>
#include <td/td.h>

#ifdef __cplusplus
extern "C" {
#endif

/** @cond */
/* MPI counts in int: more than this goes in parts. */
#define TD_MPI_PART ((int64_t)1 << 30)

typedef struct td_mpi_user {
  MPI_Comm comm;
  int rank, size;
} td_mpi_user;

static inline int td_mpi_part(int64_t left) { return (int)(left < TD_MPI_PART ? left : TD_MPI_PART); }

static inline int32_t td_mpi_all_reduce(double *data, int64_t count, int32_t operation, void *user) {
  const td_mpi_user *u = (const td_mpi_user *)user;
  int64_t at;
  for (at = 0; at < count; at += TD_MPI_PART) {
    const int code = MPI_Allreduce(MPI_IN_PLACE, data + at, td_mpi_part(count - at), MPI_DOUBLE,
                                   operation == 0 ? MPI_SUM : MPI_MAX, u->comm);
    if (code != MPI_SUCCESS)
      return code;
  }
  return MPI_SUCCESS;
}

static inline int64_t td_mpi_parts(int64_t bytes) { return bytes / TD_MPI_PART + (bytes % TD_MPI_PART > 0); }

/* Processes that exchange nothing send no message. */
static inline int32_t td_mpi_all_to_all_v(const void *sent, const int64_t *sent_bytes, void *received,
                                          const int64_t *received_bytes, void *user) {
  const td_mpi_user *u = (const td_mpi_user *)user;
  const char *from = (const char *)sent;
  char *to = (char *)received;
  const char *own = from;
  MPI_Request *requests;
  int64_t parts = 0, at;
  int p, n = 0, code = MPI_SUCCESS;
  for (p = 0; p < u->size; ++p)
    parts += td_mpi_parts(sent_bytes[p]) + td_mpi_parts(received_bytes[p]);
  if (parts == 0)
    return MPI_SUCCESS;
  if (parts > 0x7fffffff)
    return MPI_ERR_COUNT;
  requests = (MPI_Request *)malloc((size_t)parts * sizeof *requests);
  if (requests == NULL)
    return MPI_ERR_NO_MEM;
  for (p = 0; p < u->rank; ++p)
    own += sent_bytes[p];
  for (p = 0; p < u->size; to += received_bytes[p++])
    for (at = 0; at < received_bytes[p] && code == MPI_SUCCESS; at += TD_MPI_PART)
      if (p == u->rank)
        memcpy(to + at, own + at, (size_t)td_mpi_part(received_bytes[p] - at));
      else
        code = MPI_Irecv(to + at, td_mpi_part(received_bytes[p] - at), MPI_BYTE, p, 0, u->comm, &requests[n++]);
  for (p = 0; p < u->size; from += sent_bytes[p++])
    for (at = 0; p != u->rank && at < sent_bytes[p] && code == MPI_SUCCESS; at += TD_MPI_PART)
      code = MPI_Isend(from + at, td_mpi_part(sent_bytes[p] - at), MPI_BYTE, p, 0, u->comm, &requests[n++]);
  if (code == MPI_SUCCESS)
    code = MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
  free(requests);
  return code;
}

static inline int32_t td_mpi_broadcast(void *data, int64_t bytes, int32_t root, void *user) {
  const td_mpi_user *u = (const td_mpi_user *)user;
  int64_t at;
  for (at = 0; at < bytes; at += TD_MPI_PART) {
    const int code = MPI_Bcast((char *)data + at, td_mpi_part(bytes - at), MPI_BYTE, root, u->comm);
    if (code != MPI_SUCCESS)
      return code;
  }
  return MPI_SUCCESS;
}

static inline void td_mpi_abort(td_status status, void *user) { MPI_Abort(((const td_mpi_user *)user)->comm, -status); }

static inline void td_mpi_release(void *user) {
  td_mpi_user *u = (td_mpi_user *)user;
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (!finalized)
    MPI_Comm_free(&u->comm);
  free(u);
}

/** @endcond */

/** Makes a communicator for td of the processes of an MPI communicator, which is duplicated: all of them call it.
 *  Errors: TD_ERR_COMMUNICATION (MPI refused), TD_ERR_HOST_MEMORY; then td_last_error has no text of them. */
static inline td_status td_mpi_communicator_create(MPI_Comm comm, td_communicator **out) {
  td_mpi_user *u = (td_mpi_user *)malloc(sizeof *u);
  td_status status;
  if (u == NULL)
    return TD_ERR_HOST_MEMORY;
  if (MPI_Comm_dup(comm, &u->comm) != MPI_SUCCESS) {
    free(u);
    return TD_ERR_COMMUNICATION;
  }
  MPI_Comm_set_errhandler(u->comm, MPI_ERRORS_RETURN); /* td tells of errors */
  MPI_Comm_rank(u->comm, &u->rank);
  MPI_Comm_size(u->comm, &u->size);
  status = td_communicator_create(u->rank, u->size, td_mpi_all_reduce, td_mpi_all_to_all_v, td_mpi_broadcast,
                                  td_mpi_abort, td_mpi_release, u, out);
  if (status < 0)
    td_mpi_release(u);
  return status;
}

#ifdef __cplusplus
}
#endif
#endif
