/* td_context_set_stream: arrays on the GPU are read and written in the order of the caller's stream, and of no other.
 * Skipped without a GPU. */
#define _POSIX_C_SOURCE 199309L
#include <time.h>

#include "gpu.h"

enum { rows = 5, cols = 4, depth = 3, rank = 2 };

static td_context *context;
static const int64_t dims[3] = {rows, cols, depth};

static void sleep_for(long milliseconds) {
  struct timespec time = {0, 0};
  time.tv_nsec = milliseconds * 1000000;
  nanosleep(&time, NULL);
}

static void be_slow(void *unused) {
  (void)unused;
  sleep_for(100);
}

/* Keeps the stream busy until it is asked to end, or for ten seconds. */
static void be_busy(void *end) {
  int k;
  for (k = 0; k < 10000 && !*(volatile int *)end; ++k)
    sleep_for(1);
}

static void *pinned_memory(size_t bytes) {
  void *memory = NULL;
  CHECK(cuda_malloc_host(&memory, bytes) == 0);
  return memory;
}

static double *pinned(int count, double first) {
  double *numbers = pinned_memory((size_t)count * sizeof *numbers);
  int i;
  for (i = 0; i < count; ++i)
    numbers[i] = first + 0.5 * i;
  return numbers;
}

enum { tensor_size = rows * cols * depth, a_size = cols * rank, b_size = depth * rank, out_size = rows * rank };

/* Input arrives on a stream late, after the call was made, and what the stream still reads of the output is not yet
 * overwritten; a copy of the output on the stream after the call has the result. The stream does not wait for the
 * default stream, nor that for it. With `stream` not told to td, the call waits for all there is. */
static void follows(void *stream, int told) {
  double *x = pinned(tensor_size, -7), *a = pinned(a_size, -1), *b = pinned(b_size, 2), *got = pinned(out_size, 0),
         *before = pinned(out_size, 0);
  double zeros[tensor_size] = {0}, expected[out_size];
  void *on_gpu[4];
  const void *factors[3] = {NULL, NULL, NULL};
  td_tensor *tensor = NULL;
  int i;
  DONE(td_tensor_create_dense(context, 3, dims, NULL, TD_F64, x, TD_HOST, NULL, &tensor));
  factors[1] = a;
  factors[2] = b;
  DONE(td_mttkrp(context, tensor, 0, rank, factors, dims, expected, rows, TD_HOST));
  td_tensor_destroy(tensor);
  on_gpu[0] = on_device(zeros, tensor_size * sizeof *x);
  on_gpu[1] = on_device(zeros, a_size * sizeof *a);
  on_gpu[2] = on_device(zeros, b_size * sizeof *b);
  on_gpu[3] = on_device(zeros, out_size * sizeof *got);
  DONE(td_context_set_stream(context, 0, told ? stream : NULL));
  CHECK(cuda_call(stream, be_slow, NULL) == 0);
  CHECK(cuda_copy_async(on_gpu[0], x, tensor_size * sizeof *x, to_device, stream) == 0);
  DONE(td_tensor_create_dense(context, 3, dims, NULL, TD_F64, on_gpu[0], TD_DEVICE, NULL, &tensor));
  CHECK(cuda_call(stream, be_slow, NULL) == 0);
  CHECK(cuda_copy_async(on_gpu[1], a, a_size * sizeof *a, to_device, stream) == 0);
  CHECK(cuda_copy_async(on_gpu[2], b, b_size * sizeof *b, to_device, stream) == 0);
  CHECK(cuda_copy_async(before, on_gpu[3], out_size * sizeof *got, to_host, stream) == 0);
  factors[1] = on_gpu[1];
  factors[2] = on_gpu[2];
  DONE(td_mttkrp(context, tensor, 0, rank, factors, dims, on_gpu[3], rows, TD_DEVICE));
  CHECK(cuda_copy_async(got, on_gpu[3], out_size * sizeof *got, to_host, stream) == 0);
  CHECK(cuda_stream_wait(stream) == 0);
  for (i = 0; i < out_size; ++i) {
    CHECK(got[i] == expected[i]); /* half numbers: exact in any order */
    CHECK(before[i] == 0);
  }
  DONE(td_context_set_stream(context, 0, NULL));
  td_tensor_destroy(tensor);
  for (i = 0; i < 4; ++i)
    cuda_free(on_gpu[i]);
  cuda_free_host(x);
  cuda_free_host(a);
  cuda_free_host(b);
  cuda_free_host(got);
  cuda_free_host(before);
}

/* As above of coordinates: they arrive late, and what the stream overwrites after the call is not read any more. The
 * first tensor, of the same entries on the host, has CUDA load the kernels, which may wait for all streams. */
static void makes_tensors(void *stream, int told, const char *format) {
  enum { nnz = 12, modes = 3 };
  static const int64_t zeros[nnz] = {0}; /* coordinates and values */
  const double a[a_size] = {1, 2, -3, 4, 5, -6, 7, 8}, b[b_size] = {0.5, -2, 3, 1.5, -1, 2};
  const void *factors[modes] = {NULL, NULL, NULL}, *indices[modes];
  double expected[out_size], got[out_size], *values = pinned(nnz, -4);
  int64_t *index[modes];
  void *on_gpu[modes + 1];
  td_options *options = NULL;
  td_tensor *tensor = NULL;
  int m, k;
  factors[1] = a;
  factors[2] = b;
  for (m = 0; m < modes; ++m) {
    indices[m] = index[m] = pinned_memory(sizeof zeros);
    for (k = 0; k < nnz; ++k)
      index[m][k] = k % dims[m];
  }
  DONE(td_options_create(&options));
  DONE(td_options_set_str(options, "format", format));
  DONE(td_tensor_create(context, modes, dims, nnz, TD_I64, indices, 0, TD_F64, values, TD_HOST, options, &tensor));
  DONE(td_mttkrp(context, tensor, 0, rank, factors, dims, expected, rows, TD_HOST));
  td_tensor_destroy(tensor);
  for (m = 0; m <= modes; ++m)
    on_gpu[m] = on_device(zeros, sizeof zeros);
  for (m = 0; m < modes; ++m)
    indices[m] = on_gpu[m];
  DONE(td_context_set_stream(context, 0, told ? stream : NULL));
  CHECK(cuda_call(stream, be_slow, NULL) == 0);
  for (m = 0; m <= modes; ++m)
    CHECK(cuda_copy_async(on_gpu[m], m < modes ? (void *)index[m] : values, sizeof zeros, to_device, stream) == 0);
  DONE(td_tensor_create(context, modes, dims, nnz, TD_I64, indices, 0, TD_F64, on_gpu[modes], TD_DEVICE, options,
                        &tensor));
  for (m = 0; m <= modes; ++m)
    CHECK(cuda_copy_async(on_gpu[m], zeros, sizeof zeros, to_device, stream) == 0);
  DONE(td_mttkrp(context, tensor, 0, rank, factors, dims, got, rows, TD_HOST));
  for (k = 0; k < out_size; ++k)
    CHECK(got[k] == expected[k]); /* half numbers: exact in any order */
  CHECK(cuda_stream_wait(stream) == 0);
  DONE(td_context_set_stream(context, 0, NULL));
  td_tensor_destroy(tensor);
  td_options_destroy(options);
  for (m = 0; m <= modes; ++m)
    cuda_free(on_gpu[m]);
  for (m = 0; m < modes; ++m)
    cuda_free_host(index[m]);
  cuda_free_host(values);
}

/* Another stream is at work from before a call until after it. */
static void lets_others_work(void *stream, void *other) {
  double x[tensor_size], a[a_size] = {1, 2}, b[b_size] = {3, 4}, out[out_size] = {0};
  void *on_gpu[3];
  const void *factors[3] = {NULL, NULL, NULL};
  td_tensor *tensor = NULL;
  volatile int end = 0;
  int i;
  for (i = 0; i < tensor_size; ++i)
    x[i] = i;
  DONE(td_tensor_create_dense(context, 3, dims, NULL, TD_F64, x, TD_HOST, NULL, &tensor));
  factors[1] = on_gpu[0] = on_device(a, sizeof a);
  factors[2] = on_gpu[1] = on_device(b, sizeof b);
  on_gpu[2] = on_device(out, sizeof out);
  DONE(td_context_set_stream(context, 0, stream));
  DONE(td_mttkrp(context, tensor, 0, rank, factors, dims, on_gpu[2], rows, TD_DEVICE)); /* CUDA loads its kernels */
  CHECK(cuda_call(other, be_busy, (void *)&end) == 0);
  DONE(td_mttkrp(context, tensor, 0, rank, factors, dims, on_gpu[2], rows, TD_DEVICE));
  CHECK(cuda_stream_query(other) == not_ready);
  end = 1;
  CHECK(cuda_stream_wait(other) == 0);
  DONE(td_context_set_stream(context, 0, NULL));
  td_tensor_destroy(tensor);
  for (i = 0; i < 3; ++i)
    cuda_free(on_gpu[i]);
}

/* Also the current device stays as it was, here the last there is, in calls that succeed and in those that fail. */
static void refusals(void *stream) {
  double x[tensor_size] = {0};
  td_tensor *tensor = NULL;
  void *graph = NULL;
  int count = 0, device = -1;
  CHECK(cuda_begin_capture(stream, capture_relaxed) == 0);
  REFUSED(TD_ERR_ARGUMENT, "stream", "captured", td_context_set_stream(context, 0, stream));
  CHECK(cuda_end_capture(stream, &graph) == 0);
  cuda_graph_destroy(graph);
  REFUSED(TD_ERR_ARGUMENT, "slot = 1", "0 .. 0", td_context_set_stream(context, 1, stream));
  CHECK(cuda_device_count(&count) == 0 && cuda_set_device(count - 1) == 0);
  DONE(td_context_set_stream(context, 0, stream));
  REFUSED(TD_ERR_ARGUMENT, "values", "cuda:0",
          td_tensor_create_dense(context, 3, dims, NULL, TD_F64, x, TD_DEVICE, NULL, &tensor));
  DONE(td_context_set_stream(context, 0, NULL));
  CHECK(cuda_device(&device) == 0 && device == count - 1);
  CHECK(cuda_set_device(0) == 0);
}

static void streams(void) {
  const char *formats[] = {"sorted", "blco", "coo"}; /* the first two are built on the GPU */
  void *stream = NULL, *other = NULL;
  int f;
  CHECK(cuda_stream(&stream, not_blocking) == 0 && cuda_stream(&other, not_blocking) == 0);
  follows(stream, 1);
  follows(stream, 0);
  for (f = 0; f < 3; ++f) {
    makes_tensors(stream, 1, formats[f]);
    makes_tensors(stream, 0, formats[f]);
  }
  if (getenv("TD_TEST_LIGHT") == NULL)
    lets_others_work(stream, other);
  else
    puts("TD_TEST_LIGHT: left out that other streams go on working, as under a checker they do not");
  refusals(stream);
  CHECK(cuda_stream_destroy(stream) == 0 && cuda_stream_destroy(other) == 0);
}

int main(void) {
  context = context_with_gpu();
  if (context == NULL)
    return exit_skipped;
  streams();
  td_context_destroy(context);
  return check_result();
}
