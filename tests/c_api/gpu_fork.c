/* A process that is forked from one with a context on a GPU: calls in that context fail with a sentence, handles can be
 * ended, and the parent goes on. Skipped without a GPU. */
#define _POSIX_C_SOURCE 200809L
#include <sys/wait.h>
#include <unistd.h>

#include "gpu_problem.h"

enum { longest = 60 }; /* seconds; a child that hangs is ended by its alarm */

static void fails(td_status status, const char *call) {
  char why[512] = "";
  td_last_error(why, sizeof why);
  printf("in the child, %s: %s: %s\n", call, td_status_name(status), why);
  CHECK(status < 0 && why[0] != '\0');
}

static int child(td_context *context, td_tensor *x) {
  double out[most_rows * columns], fit = 0;
  td_context *fresh = NULL;
  td_tensor *y = NULL;
  alarm(longest);
  check_failures = 0;
  fails(product(context, x, out), "td_mttkrp");
  fails(fit_of(context, x, NULL, NULL, &fit), "td_cpals");
  fails(make_sparse(context, "sorted", &y), "td_tensor_create");
  fails(td_context_create("cuda:0", NULL, &fresh), "td_context_create");
  CHECK(y == NULL && fresh == NULL);
  td_tensor_destroy(x);
  td_context_destroy(context);
  fflush(stdout);
  return check_failures == 0 ? 0 : 1;
}

int main(void) {
  td_context *context = context_with_gpu();
  td_tensor *x = NULL;
  double before[most_rows * columns], after[most_rows * columns];
  int status = -1, round;
  if (context == NULL)
    return exit_skipped;
  DONE(make_sparse(context, "sorted", &x));
  DONE(product(context, x, before));
  for (round = 0; round < 2; ++round) {
    pid_t id;
    fflush(stdout);
    id = fork();
    if (id == 0)
      _exit(child(context, x));
    CHECK(id > 0 && waitpid(id, &status, 0) == id);
    if (!(WIFEXITED(status) && WEXITSTATUS(status) == 0))
      fprintf(stderr, "the child ended with status %d, signal %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1,
              WIFSIGNALED(status) ? WTERMSIG(status) : 0);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    DONE(product(context, x, after));
    CHECK(same_product(before, after));
  }
  td_tensor_destroy(x);
  td_context_destroy(context);
  return check_result();
}
