/* cudaDeviceReset by the caller, between calls and within one: what td had on the GPU is lost, calls that need it fail
 * with a sentence, all handles can be ended, and a context made afterwards works. Skipped without a GPU. */
#include "gpu_problem.h"

static const char *const formats[] = {"sorted", "blco", "coo"}; /* the first two are built on the GPU */

static void between_calls(const char *format) {
  double expected[most_rows * columns], out[most_rows * columns], fit = 0, values[entries];
  td_context *before = NULL, *after = NULL;
  td_tensor *x = NULL, *fresh = NULL, *built = NULL;
  td_status there;
  DONE(td_context_create("cuda:0", NULL, &before));
  DONE(make_sparse(before, format, &x));
  DONE(make_sparse(before, format, &built)); /* nobody has asked for it: it may be on the GPU alone */
  DONE(product(before, x, expected));
  DONE(fit_of(before, x, NULL, NULL, &fit));
  CHECK(cuda_reset() == 0);
  FAILS(product(before, x, out));
  FAILS(fit_of(before, x, NULL, NULL, &fit));
  there = make_sparse(before, format, &fresh);
  CHECK((there < 0) == (fresh == NULL)); /* coordinates are not built on the GPU, so nothing may fail */
  td_tensor_destroy(fresh);
  fresh = NULL;
  DONE(td_context_create("cuda:0", NULL, &after));
  DONE(make_sparse(after, format, &fresh));
  DONE(product(after, fresh, out));
  CHECK(same_product(out, expected));
  FAILS(product(before, fresh, out)); /* the old one stays of no use */
  there = td_tensor_get_entries(built, TD_I64, NULL, 0, TD_F64, values);
  if (there < 0)
    FAILS(td_tensor_get_entries(built, TD_I64, NULL, 0, TD_F64, values));
  there = product(after, built, out); /* right or refused, never wrong */
  CHECK(there == TD_ERR_DEVICE || (there == TD_OK && same_product(out, expected)));
  td_tensor_destroy(built);
  td_tensor_destroy(x);
  td_context_destroy(before);
  DONE(product(after, fresh, out));
  CHECK(same_product(out, expected));
  CHECK(cuda_last_error() == 0); /* nothing that td leaves to the caller */
  td_tensor_destroy(fresh);
  td_context_destroy(after);
}

static int32_t reset_now(const td_report *so_far, void *count) {
  (void)so_far;
  if (++*(int *)count == 2)
    CHECK(cuda_reset() == 0);
  return 0;
}

static void within_a_call(void) {
  td_context *context = NULL;
  td_tensor *x = NULL;
  double fit = 0;
  int count = 0;
  DONE(td_context_create("cuda:0", NULL, &context));
  DONE(make_sparse(context, "sorted", &x));
  FAILS(fit_of(context, x, reset_now, &count, &fit));
  CHECK(count == 2);
  td_context_destroy(context);
  td_tensor_destroy(x);
}

/* As programs do at their end, for a profiler. */
static void before_the_end(void) {
  td_context *context = NULL;
  td_tensor *x = NULL;
  double out[most_rows * columns];
  DONE(td_context_create("cuda:0", NULL, &context));
  DONE(make_sparse(context, "sorted", &x));
  DONE(product(context, x, out));
  CHECK(cuda_reset() == 0);
  td_tensor_destroy(x);
  td_context_destroy(context);
}

/* Resets do not add up: what tensors took of the GPU's memory comes back. */
static void memory_comes_back(void) {
  size_t first = 0, last = 0, total = 0;
  int k;
  for (k = 0; k < 20; ++k) {
    before_the_end();
    CHECK(cuda_memory(k < 5 ? &first : &last, &total) == 0);
  }
  printf("free after resets: %lu MiB, then %lu MiB\n", (unsigned long)(first >> 20), (unsigned long)(last >> 20));
  CHECK(last + ((size_t)16 << 20) >= first); /* a pool grows by 32 MiB */
}

/* By a thread that has not worked on the GPU itself: whether that takes anything from td is CUDA's affair. */
static void by_a_stranger(void) {
  double expected[most_rows * columns], out[most_rows * columns];
  td_context *context = NULL;
  td_tensor *x = NULL;
  td_status there;
  DONE(td_context_create("cuda:0", NULL, &context));
  DONE(make_sparse(context, "sorted", &x));
  DONE(product(context, x, expected));
  CHECK(cuda_reset() == 0);
  there = product(context, x, out);
  printf("after a reset by a thread without a context: %s\n", td_status_name(there));
  CHECK(there == TD_ERR_DEVICE || (there == TD_OK && same_product(out, expected)));
  td_tensor_destroy(x);
  td_context_destroy(context);
}

int main(void) {
  td_context *context = context_with_gpu();
  size_t left = 0, total = 0;
  int k;
  if (context == NULL)
    return exit_skipped;
  td_context_destroy(context);
  by_a_stranger();
  CHECK(cuda_memory(&left, &total) == 0); /* from now on this thread has a context */
  for (k = 0; k < 3; ++k)
    between_calls(formats[k]);
  within_a_call();
  memory_comes_back();
  return check_result();
}
