/* A small sparse tensor and what is done with it, for clients whose GPU is taken from them in some way. */
#ifndef TD_TEST_GPU_PROBLEM_H
#define TD_TEST_GPU_PROBLEM_H

#include "gpu.h"

enum { order = 3, entries = 500, columns = 3, most_rows = 16 };

static const int64_t shape[order] = {16, 12, 9};

/* Values are whole numbers, so that products of whole numbers are exact in any order. */
static inline td_status make_sparse(td_context *context, const char *format, td_tensor **out) {
  int64_t index[order][entries];
  double values[entries];
  const void *indices[order];
  td_options *options = NULL;
  td_status status;
  uint32_t state = 1;
  int k, m;
  for (k = 0; k < entries; ++k) {
    for (m = 0; m < order; ++m) {
      state = state * 1664525u + 1013904223u;
      index[m][k] = (int64_t)(state >> 16) % shape[m];
    }
    values[k] = k % 9 - 4;
  }
  for (m = 0; m < order; ++m)
    indices[m] = index[m];
  DONE(td_options_create(&options));
  DONE(td_options_set_str(options, "format", format));
  status = td_tensor_create(context, order, shape, entries, TD_I64, indices, 0, TD_F64, values, TD_HOST, options, out);
  td_options_destroy(options);
  return status;
}

/* MTTKRP in mode 0 with factors on the host. */
static inline td_status product(td_context *context, const td_tensor *x, double *out) {
  double a[most_rows * columns];
  const void *factors[order] = {NULL, NULL, NULL};
  int k;
  for (k = 0; k < most_rows * columns; ++k)
    a[k] = k % 5 - 2;
  factors[1] = factors[2] = a;
  return td_mttkrp(context, x, 0, columns, factors, shape, out, shape[0], TD_HOST);
}

/* The same with arrays of the caller's on the GPU; the result stays there. */
static inline td_status product_there(td_context *context, const td_tensor *x, const double *a, double *out) {
  const void *factors[order] = {NULL, NULL, NULL};
  factors[1] = factors[2] = a;
  return td_mttkrp(context, x, 0, columns, factors, shape, out, shape[0], TD_DEVICE);
}

static inline int same_product(const double *a, const double *b) {
  return memcmp(a, b, (size_t)shape[0] * columns * sizeof *a) == 0;
}

static inline td_status fit_of(td_context *context, const td_tensor *x, td_progress_fn progress, void *user,
                               double *fit) {
  td_ktensor *model = NULL;
  td_report *report = NULL;
  td_options *options = NULL;
  td_status status;
  DONE(td_options_create(&options));
  DONE(td_options_set_i64(options, "max_iters", 5));
  DONE(td_options_set_f64(options, "tol", 0));
  DONE(td_options_set_i64(options, "deterministic", 1));
  status = td_cpals(context, x, columns, NULL, options, progress, user, &model, &report);
  if (status >= 0)
    DONE(td_report_get_f64(report, "fit", fit));
  else
    CHECK(model == NULL && report == NULL);
  td_options_destroy(options);
  td_ktensor_destroy(model);
  td_report_destroy(report);
  return status;
}

#endif
