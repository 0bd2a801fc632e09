/* Work with a known result for tests of the process around td: MTTKRP of a dense tensor of ones, for which every entry
 * of the result is the number of elements of a slice, and CP-ALS of it, which fits it exactly with one component. */
#ifndef TD_TEST_WORK_H
#define TD_TEST_WORK_H

#include "check.h"

enum { work_dim = 96, work_rank = 4 };

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { sanitized = 1 };
#else
enum { sanitized = 0 };
#endif

static inline td_context *context_of(const char *devices, int64_t threads) {
  td_options *options = NULL;
  td_context *context = NULL;
  DONE(td_options_create(&options));
  DONE(td_options_set_i64(options, "threads", threads));
  DONE(td_context_create(devices, options, &context));
  td_options_destroy(options);
  return context;
}

static inline td_tensor *tensor_of_ones(td_context *context) {
  const int64_t dims[3] = {work_dim, work_dim, work_dim}, strides[3] = {0, 0, 0};
  const double one = 1;
  td_tensor *x = NULL;
  DONE(td_tensor_create_dense(context, 3, dims, strides, TD_F64, &one, TD_HOST, NULL, &x));
  return x;
}

/* 1 if a call gives what it should; 0, with its text, if it does not. */
static inline int good_call(td_status came, const char *call) {
  char why[512];
  if (came == TD_OK)
    return 1;
  td_last_error(why, sizeof why);
  fprintf(stderr, "%s gave %s: %s\n", call, td_status_name(came), why);
  return 0;
}

static inline int mttkrp_is_right(td_context *context, td_tensor *x) {
  double factor[work_dim * work_rank], out[work_dim * work_rank];
  const int64_t ld[3] = {work_dim, work_dim, work_dim};
  const void *factors[3];
  int i;
  for (i = 0; i < work_dim * work_rank; ++i)
    factor[i] = 1;
  factors[0] = factors[1] = factors[2] = factor;
  if (!good_call(td_mttkrp(context, x, 1, work_rank, factors, ld, out, work_dim, TD_HOST), "td_mttkrp"))
    return 0;
  for (i = 0; i < work_dim * work_rank; ++i)
    if (out[i] != work_dim * work_dim)
      return 0;
  return 1;
}

static inline int cpals_is_right(td_context *context, td_tensor *x) {
  td_ktensor *model = NULL;
  td_report *report = NULL;
  double fit = 0;
  const int good = good_call(td_cpals(context, x, 1, NULL, NULL, NULL, NULL, &model, &report), "td_cpals") &&
                   td_report_get_f64(report, "fit", &fit) == TD_OK && fit > 0.999999;
  td_ktensor_destroy(model);
  td_report_destroy(report);
  return good;
}

/* All of it in a context of its own. */
static inline int work_is_right(const char *devices, int64_t threads) {
  td_context *context = context_of(devices, threads);
  td_tensor *x = tensor_of_ones(context);
  const int good = mttkrp_is_right(context, x) && cpals_is_right(context, x);
  td_tensor_destroy(x);
  td_context_destroy(context);
  return good;
}

#endif
