/* A context on the second GPU alone takes nothing of the first one: no context of CUDA's is made there, by td's threads
 * or the caller's, and the caller's current GPU stays what it was. Skipped with fewer than two GPUs. */
#include "gpu_problem.h"

static int (*context_state)(int, unsigned *, int *);

static int has_context(int ordinal) {
  unsigned flags = 0;
  int active = -1;
  CHECK(context_state(ordinal, &flags, &active) == 0);
  return active;
}

int main(void) {
  td_context *context = NULL;
  td_tensor *x = NULL;
  td_status status = td_context_create("cuda:1", NULL, &context);
  double out[most_rows * columns], fit = 0;
  int current = -1;
  void *driver, *found;
  if (status < 0 || !find_cuda()) {
    char why[512];
    td_last_error(why, sizeof why);
    printf("skipped: no second GPU: %s\n", why);
    td_context_destroy(context);
    return exit_skipped;
  }
  driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  CHECK(driver != NULL);
  found = dlsym(driver, "cuDevicePrimaryCtxGetState");
  CHECK(found != NULL);
  if (check_failures > 0)
    return check_result();
  memcpy(&context_state, &found, sizeof found);
  CHECK(has_context(1) == 1);
  CHECK(has_context(0) == 0);
  DONE(make_sparse(context, "auto", &x));
  DONE(product(context, x, out));
  DONE(fit_of(context, x, NULL, NULL, &fit));
  CHECK(has_context(0) == 0);
  CHECK(cuda_device(&current) == 0 && current == 0);
  td_tensor_destroy(x);
  td_context_destroy(context);
  CHECK(has_context(0) == 0);
  printf("the first GPU has no context\n");
  return check_result();
}
