/* fork by a process that has used td: the child and the parent both go on, with handles of before and with new ones;
 * also where other threads are inside td at that moment, of which the child has none. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "work.h"

static td_context *context;
static td_tensor *x;

/* The exit status of a child that runs `body`; one that hangs is ended by SIGALRM and gives another. */
static int status_of_child(int (*body)(void)) {
  int status = -1;
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    exit(body());
  }
  if (child < 0 || waitpid(child, &status, 0) != child)
    return -1;
  if (WIFSIGNALED(status))
    fprintf(stderr, "the child was ended by signal %d\n", WTERMSIG(status));
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int leaf(void) { return mttkrp_is_right(context, x) ? 0 : 4; }

static int uses_td(void) {
  if (!mttkrp_is_right(context, x) || !cpals_is_right(context, x))
    return 1;
  if (!work_is_right("cpu", 3) || !work_is_right("cpu:2", 4))
    return 2;
  return status_of_child(leaf) == 0 ? 0 : 3; /* a child of the child */
}

static int uses_new_handles(void) {
  /* Those of the threads that are not here may be in the middle of something. */
  td_context *own = context_of("cpu", 2);
  td_tensor *y = tensor_of_ones(own);
  const int good = mttkrp_is_right(own, y);
  td_tensor_destroy(y);
  td_context_destroy(own);
  return good ? 0 : 1;
}

static atomic_int enough;

static void *keeps_working(void *unused) {
  td_context *own = context_of("cpu", 2);
  td_tensor *y = tensor_of_ones(own);
  (void)unused;
  while (!atomic_load(&enough))
    CHECK(mttkrp_is_right(own, y) && cpals_is_right(own, y));
  td_tensor_destroy(y);
  td_context_destroy(own);
  return NULL;
}

int main(void) {
  pthread_t others[2];
  int k;
  if (sanitized) {
    printf("sanitizers end children of processes with threads, or wait for these\n");
    return exit_skipped;
  }
  context = context_of("cpu", 2);
  x = tensor_of_ones(context);
  CHECK(mttkrp_is_right(context, x) && cpals_is_right(context, x));
  CHECK(status_of_child(uses_td) == 0);
  CHECK(mttkrp_is_right(context, x) && cpals_is_right(context, x));
  CHECK(status_of_child(uses_td) == 0);

  for (k = 0; k < 2; ++k)
    pthread_create(&others[k], NULL, keeps_working, NULL);
  for (k = 0; k < 20; ++k)
    CHECK(status_of_child(uses_new_handles) == 0);
  atomic_store(&enough, 1);
  for (k = 0; k < 2; ++k)
    pthread_join(others[k], NULL);

  td_tensor_destroy(x);
  td_context_destroy(context);
  return check_result();
}
