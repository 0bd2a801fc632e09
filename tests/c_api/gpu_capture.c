/* Streams that the caller captures into a graph while he calls td, in each mode of capture, from the same thread and
 * from another: work on host arrays and on arrays ordered by a stream that is not captured is done and leaves the
 * capture whole; what would need the captured stream is refused. Skipped without a GPU. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>

#include "gpu_problem.h"

static td_context *context;
static td_tensor *x;
static double expected[most_rows * columns];
static void *stream, *other; /* the first is captured */
static double *a, *result;   /* on the GPU */

static int state_of(void *captured_stream) {
  int state = -1;
  CHECK(cuda_is_capturing(captured_stream, &state) == 0);
  return state;
}

static void end_capture(void) {
  void *graph = NULL;
  CHECK(cuda_end_capture(stream, &graph) == 0 && graph != NULL);
  cuda_graph_destroy(graph);
}

/* Makes the calls while the stream is being captured. */
static void calls(void) {
  double out[most_rows * columns], fit = 0;
  td_context *fresh = NULL;
  td_tensor *y = NULL;
  DONE(product(context, x, out));
  CHECK(same_product(out, expected));
  DONE(fit_of(context, x, NULL, NULL, &fit)); /* also solves, copies and allocates */
  DONE(td_context_create("cuda:0", NULL, &fresh));
  DONE(make_sparse(fresh, "sorted", &y)); /* builds */
  DONE(product(fresh, y, out));
  CHECK(same_product(out, expected));
  td_tensor_destroy(y); /* gives memory back */
  td_context_destroy(fresh);
  CHECK(state_of(stream) == captured);
  DONE(td_context_set_stream(context, 0, other));
  DONE(product_there(context, x, a, result));
  CHECK(state_of(stream) == captured);
  REFUSED(TD_ERR_ARGUMENT, "stream", "captured", td_context_set_stream(context, 0, stream));
  CHECK(state_of(stream) == captured);
}

static void on_one_thread(int mode) {
  CHECK(cuda_begin_capture(stream, mode) == 0);
  calls();
  end_capture();
  DONE(td_context_set_stream(context, 0, stream)); /* named before it is captured */
  CHECK(cuda_begin_capture(stream, mode) == 0);
  REFUSED(TD_ERR_ARGUMENT, "stream", "captured", product_there(context, x, a, result));
  CHECK(state_of(stream) == captured);
  end_capture();
  DONE(product_there(context, x, a, result));
}

/* Without a stream a call waits for all of the GPU. CUDA refuses that, and ends the capture: td.h says so. */
static void without_a_stream(void) {
  void *graph = NULL;
  DONE(td_context_set_stream(context, 0, NULL));
  CHECK(cuda_begin_capture(stream, capture_relaxed) == 0);
  REFUSED(TD_ERR_ARGUMENT, "captured", "td_context_set_stream", product_there(context, x, a, result));
  CHECK(state_of(stream) == capture_invalid);
  CHECK(cuda_end_capture(stream, &graph) != 0);
  cuda_last_error();
  DONE(product_there(context, x, a, result));
}

static pthread_barrier_t turn;

static void *captures(void *mode) {
  CHECK(cuda_set_device(0) == 0);
  CHECK(cuda_begin_capture(stream, *(const int *)mode) == 0);
  pthread_barrier_wait(&turn); /* td works now */
  pthread_barrier_wait(&turn);
  end_capture();
  return NULL;
}

static void on_two_threads(int mode) {
  pthread_t thread;
  pthread_barrier_init(&turn, NULL, 2);
  CHECK(pthread_create(&thread, NULL, captures, &mode) == 0);
  pthread_barrier_wait(&turn);
  calls();
  pthread_barrier_wait(&turn);
  pthread_join(thread, NULL);
  pthread_barrier_destroy(&turn);
}

int main(void) {
  double host[most_rows * columns], out[most_rows * columns];
  int k;
  context = context_with_gpu();
  if (context == NULL)
    return exit_skipped;
  DONE(make_sparse(context, "sorted", &x));
  DONE(product(context, x, expected));
  for (k = 0; k < most_rows * columns; ++k)
    host[k] = k % 5 - 2;
  a = on_device(host, sizeof host);
  result = on_device(host, sizeof host);
  CHECK(cuda_stream(&stream, not_blocking) == 0 && cuda_stream(&other, not_blocking) == 0);
  for (k = capture_global; k <= capture_relaxed; ++k) {
    on_one_thread(k);
    on_two_threads(k);
  }
  CHECK(cuda_copy(out, result, sizeof out, to_host) == 0);
  CHECK(same_product(out, expected));
  without_a_stream();
  DONE(td_context_set_stream(context, 0, NULL));
  CHECK(cuda_stream_destroy(stream) == 0 && cuda_stream_destroy(other) == 0);
  cuda_free(a);
  cuda_free(result);
  td_tensor_destroy(x);
  td_context_destroy(context);
  return check_result();
}
