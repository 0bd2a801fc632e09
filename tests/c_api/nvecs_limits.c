/* The start by leading eigenvectors keeps to the limits of a run: option "max_seconds", and "memory_limit", of which
 * its plan says beforehand what it takes. */
#define _XOPEN_SOURCE 700
#include <math.h>
#include <time.h>

#include "check.h"

enum { entries = 20000, length = 2000, rank = 6 };

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static td_tensor *tensor_in(td_context *context, const int64_t dims[3]) {
  static int32_t index[3][entries];
  static double values[entries];
  const void *columns[3];
  uint64_t state = 1;
  td_tensor *x = NULL;
  int e, m;
  for (e = 0; e < entries; ++e) {
    for (m = 0; m < 3; ++m) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      index[m][e] = (int32_t)((int64_t)(state >> 33) % dims[m]);
    }
    values[e] = 1 + e % 5;
  }
  for (m = 0; m < 3; ++m)
    columns[m] = index[m];
  DONE(td_tensor_create(context, 3, dims, entries, TD_I32, columns, 0, TD_F64, values, TD_HOST, NULL, &x));
  return x;
}

static td_options *options_of(const char *seconds) {
  td_options *options = NULL;
  DONE(td_options_create(&options));
  DONE(td_options_set_str(options, "init", "nvecs"));
  DONE(td_options_set_str(options, "max_seconds", seconds));
  DONE(td_options_set_str(options, "max_iters", "2"));
  return options;
}

static void a_run_without_time(td_context *context, const int64_t dims[3]) {
  td_tensor *x = tensor_in(context, dims);
  td_options *options = options_of("0.01");
  td_ktensor *model = NULL;
  td_report *report = NULL;
  char reason[32];
  int64_t iterations = 0;
  double seconds = 0, fit = 0, told = 0, norm = 0;
  const double begin = now();
  DONE(td_cpals(context, x, rank, NULL, options, NULL, NULL, &model, &report));
  seconds = now() - begin;
  DONE(td_report_get_str(report, "stop_reason", reason, sizeof reason, NULL));
  DONE(td_report_get_i64(report, "iterations", &iterations));
  DONE(td_report_get_f64(report, "fit", &told));
  CHECK(strcmp(reason, "max_seconds") == 0);
  CHECK(iterations == 1); /* the first, which makes a model of whatever start there was time for */
  DONE(td_ktensor_fit(context, model, x, &fit, NULL, NULL, NULL));
  CHECK(fabs(fit - told) < 1e-9);
  DONE(td_ktensor_norm(model, &norm));
  CHECK(isfinite(norm) && norm > 0);
  printf("dims[0] = %lld: %.2f s of 0.01\n", (long long)dims[0], seconds);
  td_ktensor_destroy(model);
  td_report_destroy(report);
  td_options_destroy(options);

  /* As long as the start by itself takes without a limit, a run with one must not be. */
  {
    double whole = 0;
    options = options_of("0");
    DONE(td_options_set_str(options, "max_iters", "1"));
    DONE(td_cpals(context, x, rank, NULL, options, NULL, NULL, &model, &report));
    DONE(td_report_get_f64(report, "seconds.init", &whole));
    printf("the whole start: %.2f s\n", whole);
    CHECK(seconds < whole / 2);
    td_ktensor_destroy(model);
    td_report_destroy(report);
    td_options_destroy(options);
  }
  td_tensor_destroy(x);
}

static int64_t solver_bytes(td_context *context, const td_tensor *x, const char *init) {
  td_options *options = options_of("0");
  td_plan *plan = NULL;
  int64_t bytes = 0;
  DONE(td_options_set_str(options, "init", init));
  DONE(td_plan_create_for_tensor(context, x, rank, options, &plan));
  DONE(td_plan_get_i64(plan, "host_bytes.solver", &bytes));
  td_plan_destroy(plan);
  td_options_destroy(options);
  return bytes;
}

static void a_run_without_room(td_context *wide, const int64_t dims[3]) {
  td_tensor *x = tensor_in(wide, dims);
  td_options *options = NULL, *nvecs = options_of("0.01");
  td_context *narrow = NULL;
  td_ktensor *model = NULL;
  int64_t stored = 0;
  const int64_t random_bytes = solver_bytes(wide, x, "random"), nvecs_bytes = solver_bytes(wide, x, "nvecs");
  DONE(td_tensor_get_i64(x, "bytes", &stored));
  CHECK(nvecs_bytes > 2 * random_bytes);
  DONE(td_options_create(&options));
  DONE(td_options_set_i64(options, "threads", 1));
  DONE(td_options_set_i64(options, "memory_limit", stored + nvecs_bytes - 1));
  DONE(td_context_create("cpu", options, &narrow));
  REFUSED(TD_ERR_HOST_MEMORY, "for making the start", "option 'memory_limit'",
          td_cpals(narrow, x, rank, NULL, nvecs, NULL, NULL, &model, NULL));
  DONE(td_options_set_str(nvecs, "init", "random"));
  DONE(td_cpals(narrow, x, rank, NULL, nvecs, NULL, NULL, &model, NULL));
  td_ktensor_destroy(model);
  td_context_destroy(narrow);
  DONE(td_options_set_i64(options, "memory_limit", stored + nvecs_bytes));
  DONE(td_context_create("cpu", options, &narrow));
  DONE(td_options_set_str(nvecs, "init", "nvecs"));
  DONE(td_cpals(narrow, x, rank, NULL, nvecs, NULL, NULL, &model, NULL));
  td_ktensor_destroy(model);
  td_context_destroy(narrow);
  td_options_destroy(options);
  td_options_destroy(nvecs);
  td_tensor_destroy(x);
}

int main(void) {
  const int64_t long_modes[3] = {length, length, length};
  td_context *context = NULL;
  td_options *options = NULL;
  DONE(td_options_create(&options));
  DONE(td_options_set_i64(options, "threads", 1)); /* however busy the machine is */
  DONE(td_context_create("cpu", options, &context));
  td_options_destroy(options);
  a_run_without_time(context, long_modes);
  a_run_without_room(context, long_modes);
  td_context_destroy(context);
  return check_result();
}
