/* A thread that is cancelled while it is in td, and callbacks that end their thread with pthread_exit: the process goes
 * on, what the call held is given back, and the same context works for other threads. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "work.h"

static atomic_int stage;
static td_context *context;
static td_tensor *x;

static void on_cleanup(void *unused) {
  (void)unused;
  atomic_store(&stage, 3);
}

static int32_t wait_for_cancel(const td_report *so_far, void *user) {
  (void)so_far;
  (void)user;
  if (atomic_load(&stage) == 0) {
    const struct timespec a_moment = {0, 1000000};
    atomic_store(&stage, 1);
    while (atomic_load(&stage) != 2)
      nanosleep(&a_moment, NULL); /* a cancellation point, inside td */
  }
  return 0;
}

static void *fits_and_is_cancelled(void *unused) {
  td_ktensor *model = NULL;
  int before = 0;
  (void)unused;
  pthread_cleanup_push(on_cleanup, NULL);
  CHECK(td_cpals(context, x, 2, NULL, NULL, wait_for_cancel, NULL, &model, NULL) == TD_OK);
  td_ktensor_destroy(model);
  CHECK(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &before) == 0 && before == PTHREAD_CANCEL_ENABLE);
  pthread_testcancel();
  CHECK(0 && "the thread went on after it was cancelled");
  pthread_cleanup_pop(0);
  return NULL;
}

static void cancel(const char *devices) {
  const struct timespec a_moment = {0, 1000000};
  pthread_t thread;
  void *result = NULL;
  context = context_of(devices, 2);
  x = tensor_of_ones(context);
  atomic_store(&stage, 0);
  CHECK(pthread_create(&thread, NULL, fits_and_is_cancelled, NULL) == 0);
  while (atomic_load(&stage) != 1)
    nanosleep(&a_moment, NULL);
  CHECK(pthread_cancel(thread) == 0);
  atomic_store(&stage, 2);
  CHECK(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
  CHECK(atomic_load(&stage) == 3);
  CHECK(mttkrp_is_right(context, x) && cpals_is_right(context, x));
  td_tensor_destroy(x);
  td_context_destroy(context);
}

static td_report *lent_report;

static int32_t leave(const td_report *so_far, void *user) {
  (void)user;
  CHECK(td_report_copy(so_far, &lent_report) == TD_OK);
  pthread_exit((void *)&stage);
}

static void leave_by_log(int32_t level, const char *text, void *user) {
  (void)level;
  (void)text;
  (void)user;
  pthread_exit((void *)&stage);
}

static void *fits_and_leaves(void *unused) {
  td_ktensor *model = NULL;
  (void)unused;
  td_cpals(context, x, 2, NULL, NULL, leave, NULL, &model, NULL);
  CHECK(0 && "td_cpals came back from pthread_exit");
  return NULL;
}

static void *reads_and_leaves(void *path) {
  td_tensor *read = NULL;
  td_tensor_read(context, path, NULL, &read);
  CHECK(0 && "td_tensor_read came back from pthread_exit");
  return NULL;
}

static void leave_from(void *(*body)(void *), void *argument) {
  pthread_t thread;
  void *result = NULL;
  CHECK(pthread_create(&thread, NULL, body, argument) == 0);
  CHECK(pthread_join(thread, &result) == 0 && result == (void *)&stage);
}

static void exit_in_callbacks(const char *devices) {
  char path[] = "/tmp/td_cancelled_XXXXXX";
  FILE *file;
  context = context_of(devices, 2);
  x = tensor_of_ones(context);
  leave_from(fits_and_leaves, NULL);
  td_report_destroy(lent_report);
  CHECK(mttkrp_is_right(context, x) && cpals_is_right(context, x));

  file = fdopen(mkstemp(path), "w");
  CHECK(file != NULL && fputs("1 1 1.5\n2 2 2.5\n", file) >= 0 && fclose(file) == 0);
  DONE(td_context_set_log(context, leave_by_log, NULL));
  leave_from(reads_and_leaves, path);
  DONE(td_context_set_log(context, NULL, NULL));
  remove(path);
  CHECK(mttkrp_is_right(context, x) && cpals_is_right(context, x));
  td_tensor_destroy(x);
  td_context_destroy(context);
}

int main(void) {
  cancel("cpu");
  cancel("cpu:2");
  exit_in_callbacks("cpu");
  exit_in_callbacks("cpu:2");
  exit_in_callbacks("reference");
  return check_result();
}
