/* With threads = 1 a context's calls start no thread, whatever they do: neither td nor a library behind it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include "work.h"

static int started = 0;

typedef int (*create_fn)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

/* Stands in for the C library's, also for calls from libtd and what it is linked with. */
__attribute__((visibility("default"))) int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                                                          void *(*body)(void *), void *argument) {
  create_fn next;
  *(void **)&next = dlsym(RTLD_NEXT, "pthread_create");
  ++started;
  return next(thread, attributes, body, argument);
}

static td_ktensor *model_by(td_context *context, td_tensor *x, const char *option, const char *value) {
  td_options *options = NULL;
  td_ktensor *model = NULL;
  DONE(td_options_create(&options));
  DONE(td_options_set_str(options, option, value));
  DONE(td_options_set_str(options, "max_iters", "3"));
  DONE(td_cpals(context, x, work_rank, NULL, options, NULL, NULL, &model, NULL));
  td_options_destroy(options);
  return model;
}

/* Starts, solves, the residual entry by entry, files, and what a context does with models. */
static void work_with(td_context *context, const char *file) {
  static const char *const settings[][2] = {
      {"init", "nvecs"}, {"init", "random"}, {"solve", "qr"}, {"exact_residual", "always"}, {"deterministic", "1"}};
  td_tensor *dense = tensor_of_ones(context), *x = NULL, *again = NULL;
  td_plan *plan = NULL;
  double fit = 0;
  size_t k;
  enum { entries = 30000 };
  static int64_t index[3][entries];
  static double values[entries];
  const int64_t dims[3] = {3000, 700, 60}; /* one mode too long for a full eigen-decomposition */
  const void *columns[3] = {index[0], index[1], index[2]};
  int64_t e;
  for (e = 0; e < entries; ++e) {
    index[0][e] = e * 7919 % dims[0];
    index[1][e] = e * e % dims[1];
    index[2][e] = e * 31 % dims[2];
    values[e] = (double)(1 + e % 5);
  }
  DONE(td_tensor_create(context, 3, dims, entries, TD_I64, columns, 0, TD_F64, values, TD_HOST, NULL, &x));
  for (k = 0; k < sizeof settings / sizeof *settings; ++k) {
    td_ktensor *model = model_by(context, x, settings[k][0], settings[k][1]);
    td_ktensor *other = model_by(context, dense, settings[k][0], settings[k][1]);
    DONE(td_ktensor_fit(context, model, x, &fit, NULL, NULL, NULL));
    td_ktensor_destroy(model);
    td_ktensor_destroy(other);
  }
  DONE(td_plan_create_for_tensor(context, x, work_rank, NULL, &plan));
  DONE(td_tensor_write(x, file, NULL));
  DONE(td_tensor_read(context, file, NULL, &again));
  td_tensor_destroy(again);
  td_plan_destroy(plan);
  td_tensor_destroy(x);
  td_tensor_destroy(dense);
}

int main(void) {
  char folder[] = "/tmp/td-one-thread-XXXXXX", file[64];
  td_context *context = context_of("cpu", 1);
  if (mkdtemp(folder) == NULL)
    return 1;
  snprintf(file, sizeof file, "%s/x.tns", folder);
  work_with(context, file);
  CHECK(started == 0);
  td_context_destroy(context);
  context = context_of("cpu", 2); /* the counter counts */
  work_with(context, file);
  CHECK(started >= 1);
  td_context_destroy(context);
  remove(file);
  rmdir(folder);
  return check_failures == 0 ? 0 : 1;
}
