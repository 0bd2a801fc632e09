/* Two contexts in two threads on one GPU, alone and while a third takes nearly all of the GPU's memory and gives it
 * back, again and again; and an error of CUDA's that the caller has not read. Skipped without a GPU. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <time.h>

#include "gpu_problem.h"

enum { rounds = 40, most_blocks = 64 };

static double expected[most_rows * columns], expected_fit;
static volatile int at_work; /* whether the thread that takes memory goes on */
static int refused_for_memory;
static pthread_mutex_t counts = PTHREAD_MUTEX_INITIALIZER;

/* Whether a call was done. Else memory must have been what was short. */
static int done_or_short(td_status status, int may_be_short, const char *call) {
  char why[512] = "";
  if (status >= 0)
    return 1;
  td_last_error(why, sizeof why);
  pthread_mutex_lock(&counts);
  if (may_be_short && (status == TD_ERR_DEVICE_MEMORY || status == TD_ERR_DEVICE) && why[0] != '\0') {
    if (refused_for_memory++ < 5)
      printf("%s: %s: %s\n", call, td_status_name(status), why);
  } else {
    fprintf(stderr, "%s gave %s: %s\n", call, td_status_name(status), why);
    ++check_failures;
  }
  pthread_mutex_unlock(&counts);
  return 0;
}

/* Makes contexts and tensors anew, so that it allocates. What is done is done right. */
static void *works(void *may_be_short) {
  const int may = *(const int *)may_be_short;
  const char *formats[] = {"sorted", "blco", "coo"};
  int k;
  for (k = 0; k < rounds; ++k) {
    td_context *context = NULL;
    td_tensor *x = NULL;
    double out[most_rows * columns], fit = 0;
    if (done_or_short(td_context_create("cuda:0", NULL, &context), may, "td_context_create") &&
        done_or_short(make_sparse(context, formats[k % 3], &x), may, "td_tensor_create")) {
      if (done_or_short(product(context, x, out), may, "td_mttkrp"))
        CHECK(same_product(out, expected));
      if (done_or_short(fit_of(context, x, NULL, NULL, &fit), may, "td_cpals"))
        CHECK(fit - expected_fit < 1e-10 && expected_fit - fit < 1e-10); /* formats differ in the order of sums */
    }
    td_tensor_destroy(x);
    td_context_destroy(context);
  }
  return NULL;
}

static void *takes_memory(void *unused) {
  void *blocks[most_blocks];
  const struct timespec pause = {0, 5000000};
  CHECK(cuda_set_device(0) == 0);
  while (at_work) {
    size_t bytes = (size_t)1 << 37;
    int count = 0;
    while (bytes >= (size_t)1 << 20 && count < most_blocks) {
      if (cuda_malloc(&blocks[count], bytes) == 0)
        ++count;
      else
        bytes /= 2;
    }
    cuda_last_error();
    nanosleep(&pause, NULL);
    while (count > 0)
      cuda_free(blocks[--count]);
    nanosleep(&pause, NULL);
  }
  return unused;
}

static void two_at_once(int short_of_memory) {
  pthread_t threads[2], taker;
  int k;
  at_work = 1;
  if (short_of_memory)
    CHECK(pthread_create(&taker, NULL, takes_memory, NULL) == 0);
  for (k = 0; k < 2; ++k)
    CHECK(pthread_create(&threads[k], NULL, works, &short_of_memory) == 0);
  for (k = 0; k < 2; ++k)
    pthread_join(threads[k], NULL);
  at_work = 0;
  if (short_of_memory)
    pthread_join(taker, NULL);
}

/* The library's calls are done, whatever the thread's calls to CUDA came to before. */
static void after_an_error_of_the_callers(td_context *context, const td_tensor *x) {
  double out[most_rows * columns], fit = 0;
  void *memory = NULL;
  int left;
  CHECK(cuda_malloc(&memory, (size_t)1 << 60) != 0);
  DONE(product(context, x, out));
  CHECK(same_product(out, expected));
  CHECK(cuda_malloc(&memory, (size_t)1 << 60) != 0);
  DONE(fit_of(context, x, NULL, NULL, &fit));
  left = cuda_last_error();
  if (left != 0)
    printf("CUDA's last error is %d\n", left);
  CHECK(left == 0);
}

int main(void) {
  int no = 0;
  td_context *context = context_with_gpu();
  td_tensor *x = NULL;
  if (context == NULL)
    return exit_skipped;
  DONE(make_sparse(context, "sorted", &x));
  DONE(product(context, x, expected));
  DONE(fit_of(context, x, NULL, NULL, &expected_fit));
  after_an_error_of_the_callers(context, x);
  two_at_once(0);
  two_at_once(1);
  printf("%d calls were refused for memory that others had\n", refused_for_memory);
  works(&no); /* all of it is back */
  td_tensor_destroy(x);
  td_context_destroy(context);
  return check_result();
}
