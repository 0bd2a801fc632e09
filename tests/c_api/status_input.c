/* Arrays, sizes and options that mean nothing: each is refused with what came and what was expected. */
#include <math.h>

#include "check.h"

static td_context *context;

static td_status sparse(int32_t order, const int64_t *dims, int64_t nnz, const int64_t *i, const int64_t *j,
                        int32_t base, const double *values, const td_options *options) {
  const void *indices[2] = {NULL, NULL};
  td_tensor *x = NULL;
  td_status s;
  indices[0] = i;
  indices[1] = j;
  s = td_tensor_create(context, order, dims, nnz, TD_I64, indices, base, TD_F64, values, TD_HOST, options, &x);
  CHECK((s < 0) == (x == NULL));
  td_tensor_destroy(x);
  return s;
}

static td_status dense(int32_t order, const int64_t *dims, const int64_t *strides, td_type type, const void *values) {
  td_tensor *x = NULL;
  const td_status s = td_tensor_create_dense(context, order, dims, strides, type, values, TD_HOST, NULL, &x);
  CHECK((s < 0) == (x == NULL));
  td_tensor_destroy(x);
  return s;
}

static void shapes(void) {
  const int64_t dims[2] = {3, 4}, zero[2] = {3, 0}, negative[2] = {-7, 4}, huge[3] = {4194304, 4194304, 4194304};
  const double cells[12] = {0};
  td_ktensor *k = NULL;
  td_tensor *x = NULL;
  REFUSED(TD_ERR_SHAPE, "order = 1", "2", sparse(1, dims, 0, NULL, NULL, 0, NULL, NULL));
  REFUSED(TD_ERR_SHAPE, "order = 65", "64", sparse(65, dims, 0, NULL, NULL, 0, NULL, NULL));
  REFUSED(TD_ERR_SHAPE, "order = 0", "2", dense(0, dims, NULL, TD_F64, cells));
  REFUSED(TD_ERR_SHAPE, "0", "1", sparse(2, zero, 0, NULL, NULL, 0, NULL, NULL));
  REFUSED(TD_ERR_SHAPE, "-7", "1", sparse(2, negative, 0, NULL, NULL, 0, NULL, NULL));
  REFUSED(TD_ERR_SHAPE, "0", "1", dense(2, zero, NULL, TD_F64, cells));
  REFUSED(TD_ERR_SHAPE, "-7", "1", dense(2, negative, NULL, TD_F64, cells));
  REFUSED(TD_ERR_SHAPE, "nnz = -1", ">= 0", sparse(2, dims, -1, NULL, NULL, 0, NULL, NULL));
  /* 2^66 elements: refused where all of them would be stored or written, allowed for a sparse tensor. */
  REFUSED(TD_ERR_SHAPE, "4194304", "", dense(3, huge, NULL, TD_F64, cells));
  DONE(td_tensor_create(context, 3, huge, 0, TD_I64, NULL, 0, TD_F64, NULL, TD_HOST, NULL, &x));
  {
    double one;
    REFUSED(TD_ERR_SHAPE, "4194304", "", td_tensor_get_dense(x, NULL, TD_F64, &one));
    DONE(td_ktensor_create(context, 3, huge, 1, TD_F32, &k));
    REFUSED(TD_ERR_SHAPE, "4194304", "", td_ktensor_full(k, NULL, TD_F64, &one));
    td_ktensor_destroy(k);
  }
  td_tensor_destroy(x);
  REFUSED(TD_ERR_SHAPE, "rank = 0", "1", td_ktensor_create(context, 2, dims, 0, TD_F64, &k));
  REFUSED(TD_ERR_SHAPE, "rank = -2", "1", td_ktensor_create(context, 2, dims, -2, TD_F64, &k));
  REFUSED(TD_ERR_SHAPE, "0", "1", td_ktensor_create(context, 2, zero, 1, TD_F64, &k));
}

/* One process brings all of an array. */
static void blocks(void) {
  const int64_t dims[2] = {3, 4}, none[2] = {0, 0}, one[2] = {0, 1}, rows[2] = {3, 1}, part[2] = {3, 3};
  const double cells[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  double sum = 0;
  td_tensor *x = NULL;
  DONE(td_tensor_create_dense_block(context, 2, dims, none, dims, NULL, TD_F64, cells, TD_HOST, NULL, &x));
  DONE(td_tensor_get_f64(x, "sum", &sum));
  CHECK(sum == 78);
  td_tensor_destroy(x);
  REFUSED(TD_ERR_SHAPE, "mode 1: a block of dim 3 at offset 0", "dim 4",
          td_tensor_create_dense_block(context, 2, dims, none, part, NULL, TD_F64, cells, TD_HOST, NULL, &x));
  CHECK(x == NULL);
  REFUSED(TD_ERR_SHAPE, "mode 1: a block of dim 1 at offset 1", "dim 4",
          td_tensor_create_dense_block(context, 2, dims, one, rows, NULL, TD_F64, cells, TD_HOST, NULL, &x));
  REFUSED(TD_ERR_ARGUMENT, "offset", "",
          td_tensor_create_dense_block(context, 2, dims, NULL, dims, NULL, TD_F64, cells, TD_HOST, NULL, &x));
  REFUSED(TD_ERR_ARGUMENT, "block_dims", "",
          td_tensor_create_dense_block(context, 2, dims, none, NULL, NULL, TD_F64, cells, TD_HOST, NULL, &x));
  REFUSED(TD_ERR_ARGUMENT, "values", "",
          td_tensor_create_dense_block(context, 2, dims, none, dims, NULL, TD_F64, NULL, TD_HOST, NULL, &x));
  REFUSED(TD_ERR_TYPE, "9", "",
          td_tensor_create_dense_block(context, 2, dims, none, dims, NULL, 9, cells, TD_HOST, NULL, &x));
}

static void entries(void) {
  const int64_t dims[2] = {3, 4};
  const int64_t i[3] = {0, 2, 1}, j[3] = {0, 3, 1}, j_high[3] = {0, 3, 4}, i_negative[3] = {0, -1, 1};
  const int64_t i1[3] = {1, 3, 2}, j1[3] = {1, 5, 2}, j1_zero[3] = {1, 4, 0}, same_i[3] = {0, 2, 2},
                same_j[3] = {0, 3, 3};
  const double v[3] = {1, 2, 3}, v_nan[3] = {1, 2, NAN}, v_inf[3] = {1, -INFINITY, 3};
  td_options *o = NULL;
  DONE(sparse(2, dims, 3, i, j, 0, v, NULL));
  DONE(sparse(2, dims, 3, i1, i1, 1, v, NULL));
  REFUSED(TD_ERR_INDEX, "entry 2", "mode 1", sparse(2, dims, 3, i, j_high, 0, v, NULL));
  REFUSED(TD_ERR_INDEX, "4", "0..3", sparse(2, dims, 3, i, j_high, 0, v, NULL));
  REFUSED(TD_ERR_INDEX, "entry 1", "mode 0", sparse(2, dims, 3, i_negative, j, 0, v, NULL));
  REFUSED(TD_ERR_INDEX, "-1", "0..2", sparse(2, dims, 3, i_negative, j, 0, v, NULL));
  /* In the caller's base: 5 and 0 are outside 1 .. 4. */
  REFUSED(TD_ERR_INDEX, "5", "1..4", sparse(2, dims, 3, i1, j1, 1, v, NULL));
  REFUSED(TD_ERR_INDEX, "0", "1..4", sparse(2, dims, 3, i1, j1_zero, 1, v, NULL));
  REFUSED(TD_ERR_ARGUMENT, "index_base = 2", "0 or 1", sparse(2, dims, 3, i, j, 2, v, NULL));
  REFUSED(TD_ERR_ARGUMENT, "entry 2", "nan", sparse(2, dims, 3, i, j, 0, v_nan, NULL));
  REFUSED(TD_ERR_ARGUMENT, "entry 1", "inf", sparse(2, dims, 3, i, j, 0, v_inf, NULL));
  DONE(td_options_create(&o));
  DONE(td_options_set_str(o, "duplicates", "error"));
  REFUSED(TD_ERR_INDEX, "1", "2", sparse(2, dims, 3, same_i, same_j, 0, v, o));
  DONE(sparse(2, dims, 3, i, j, 0, v, o));
  DONE(sparse(2, dims, 3, same_i, same_j, 0, v, NULL));
  td_options_destroy(o);
}

static void dense_values(void) {
  const int64_t dims[2] = {2, 2};
  const double v_nan[4] = {1, 2, NAN, 4};
  const float v_inf[4] = {1, 2, 3, INFINITY};
  REFUSED(TD_ERR_ARGUMENT, "nan", "1", dense(2, dims, NULL, TD_F64, v_nan)); /* at (0, 1) */
  REFUSED(TD_ERR_ARGUMENT, "inf", "1", dense(2, dims, NULL, TD_F32, v_inf)); /* at (1, 1) */
}

static void types_and_spaces(void) {
  const int64_t dims[2] = {2, 2};
  const double v[4] = {1, 2, 3, 4};
  const void *indices[2] = {NULL, NULL};
  td_tensor *x = NULL;
  td_ktensor *k = NULL;
  REFUSED(TD_ERR_TYPE, "value_type = 99", "TD_F32", dense(2, dims, NULL, 99, v));
  REFUSED(TD_ERR_TYPE, "value_type = 11", "TD_F64", dense(2, dims, NULL, TD_I32, v));
  REFUSED(TD_ERR_TYPE, "index_type = 2", "TD_I64",
          td_tensor_create(context, 2, dims, 0, TD_F64, indices, 0, TD_F64, v, TD_HOST, NULL, &x));
  REFUSED(TD_ERR_TYPE, "7", "TD_F32", td_ktensor_create(context, 2, dims, 1, 7, &k));
  REFUSED(TD_ERR_UNSUPPORTED, "TD_DEVICE", "TD_HOST",
          td_tensor_create_dense(context, 2, dims, NULL, TD_F64, v, TD_DEVICE, NULL, &x));
  REFUSED(TD_ERR_ARGUMENT, "space = 5", "TD_HOST",
          td_tensor_create_dense(context, 2, dims, NULL, TD_F64, v, 5, NULL, &x));
  {
    const int64_t wide[2] = {((int64_t)1) << 40, 2};
    int32_t i = 0;
    void *out[2];
    double value;
    out[0] = &i;
    out[1] = NULL;
    DONE(td_tensor_create(context, 2, wide, 0, TD_I64, NULL, 0, TD_F64, NULL, TD_HOST, NULL, &x));
    REFUSED(TD_ERR_SHAPE, "1099511627776", "", td_tensor_get_entries(x, TD_I32, out, 0, TD_F64, &value));
    td_tensor_destroy(x);
  }
  DONE(td_tensor_create_dense(context, 2, dims, NULL, TD_F64, v, TD_HOST, NULL, &x));
  REFUSED(TD_ERR_UNSUPPORTED, "dense", "", td_tensor_get_entries(x, TD_I64, NULL, 0, TD_F64, NULL));
  REFUSED(TD_ERR_SHAPE, "mode = 2", "0 .. 1", td_tensor_slice_counts(x, 2, NULL));
  td_tensor_destroy(x);
}

static void matrices(void) {
  const int64_t dims[2] = {5, 3}, ld[2] = {5, 3}, ld_small[2] = {5, 2}, other_dims[2] = {5, 4};
  const double cells[15] = {1};
  double a[10], b[6], out[10], b_nan[6] = {1, 1, 1, 1, NAN, 1};
  const void *factors[2], *factors_nan[2];
  td_tensor *x = NULL;
  td_ktensor *k = NULL, *other = NULL, *single = NULL;
  int n;
  for (n = 0; n < 10; ++n)
    a[n] = 1;
  for (n = 0; n < 6; ++n)
    b[n] = 1;
  factors[0] = factors_nan[0] = a;
  factors[1] = b;
  factors_nan[1] = b_nan;
  DONE(td_tensor_create_dense(context, 2, dims, NULL, TD_F64, cells, TD_HOST, NULL, &x));
  DONE(td_ktensor_create(context, 2, dims, 2, TD_F64, &k));
  DONE(td_ktensor_create(context, 2, other_dims, 2, TD_F64, &other));
  DONE(td_ktensor_create(context, 2, dims, 2, TD_F32, &single));

  REFUSED(TD_ERR_SHAPE, "mode = -1", "0 .. 1", td_mttkrp(context, x, -1, 2, factors, ld, out, 5, TD_HOST));
  REFUSED(TD_ERR_SHAPE, "mode = 2", "0 .. 1", td_mttkrp(context, x, 2, 2, factors, ld, out, 5, TD_HOST));
  REFUSED(TD_ERR_SHAPE, "rank = 0", "1", td_mttkrp(context, x, 0, 0, factors, ld, out, 5, TD_HOST));
  REFUSED(TD_ERR_SHAPE, "factor 1", "ld = 2 < rows = 3",
          td_mttkrp(context, x, 0, 2, factors, ld_small, out, 5, TD_HOST));
  REFUSED(TD_ERR_SHAPE, "out", "ld = 4 < rows = 5", td_mttkrp(context, x, 0, 2, factors, ld, out, 4, TD_HOST));
  REFUSED(TD_ERR_ARGUMENT, "row 1", "column 1", td_mttkrp(context, x, 0, 2, factors_nan, ld, out, 5, TD_HOST));
  REFUSED(TD_ERR_UNSUPPORTED, "TD_DEVICE", "", td_mttkrp(context, x, 0, 2, factors, ld, out, 5, TD_DEVICE));
  REFUSED(TD_ERR_SHAPE, "5 x 4", "5 x 3", td_mttkrp_ktensor(context, x, 0, other, out, 5, TD_HOST));
  REFUSED(TD_ERR_TYPE, "f32", "f64", td_mttkrp_ktensor(context, x, 0, single, out, 5, TD_HOST));

  REFUSED(TD_ERR_SHAPE, "mode = 2", "0 .. 1", td_ktensor_set_factor(k, 2, b, 3, TD_HOST));
  REFUSED(TD_ERR_SHAPE, "ld = 2", "3", td_ktensor_set_factor(k, 1, b, 2, TD_HOST));
  REFUSED(TD_ERR_SHAPE, "ld = 2", "3", td_ktensor_get_factor(k, 1, b, 2, TD_HOST));
  REFUSED(TD_ERR_ARGUMENT, "row 1", "column 1", td_ktensor_set_factor(k, 1, b_nan, 3, TD_HOST));
  b_nan[4] = 1;
  b_nan[1] = -INFINITY;
  REFUSED(TD_ERR_ARGUMENT, "row 1", "column 0", td_ktensor_set_factor(k, 1, b_nan, 3, TD_HOST));
  REFUSED(TD_ERR_ARGUMENT, "1", "inf", td_ktensor_set_weights(k, b_nan));
  REFUSED(TD_ERR_SHAPE, "4", "3", td_ktensor_dot(k, other, out));
  REFUSED(TD_ERR_SHAPE, "4", "3", td_ktensor_dot_tensor(context, other, x, out));
  REFUSED(TD_ERR_SHAPE, "4", "3", td_ktensor_fit(context, other, x, out, NULL, NULL, NULL));
  REFUSED(TD_ERR_SHAPE, "4", "3", td_ktensor_score(k, other, 1, out, NULL));
  {
    const int64_t i[2] = {1, 5}, j[2] = {1, 6};
    const void *at[2];
    at[0] = i;
    at[1] = j;
    REFUSED(TD_ERR_INDEX, "entry 2", "mode 2", td_ktensor_values_at(k, 2, TD_I64, at, 1, out));
    out[0] = 7;
    REFUSED(TD_ERR_INDEX, "6", "1..3", td_ktensor_values_at(k, 2, TD_I64, at, 1, out));
    CHECK(out[0] == 7); /* nothing was changed, though the first coordinate is good */
  }
  {
    const int64_t overlapping[2] = {0, 1};
    REFUSED(TD_ERR_SHAPE, "strides[0] = 0", "5", td_ktensor_full(k, overlapping, TD_F64, out));
    REFUSED(TD_ERR_SHAPE, "strides[0] = 0", "5", td_tensor_get_dense(x, overlapping, TD_F64, out));
    REFUSED(TD_ERR_SHAPE, "-1", ">= 0", td_ktensor_values_at(k, -1, TD_I64, NULL, 0, out));
    REFUSED(TD_ERR_ARGUMENT, "indices", "null", td_ktensor_values_at(k, 1, TD_I64, NULL, 0, out));
    DONE(td_ktensor_values_at(k, 0, TD_I64, NULL, 0, out));
  }
  {
    td_ktensor *model = NULL;
    DONE(td_ktensor_set_factor(k, 0, a, 5, TD_HOST));
    REFUSED(TD_ERR_SHAPE, "rank = 0", "1", td_cpals(context, x, 0, NULL, NULL, NULL, NULL, &model, NULL));
    REFUSED(TD_ERR_SHAPE, "2", "3", td_cpals(context, x, 3, k, NULL, NULL, NULL, &model, NULL));
    REFUSED(TD_ERR_SHAPE, "4", "3", td_cpals(context, x, 2, other, NULL, NULL, NULL, &model, NULL));
    REFUSED(TD_ERR_ARGUMENT, "zero", "1", td_cpals(context, x, 2, k, NULL, NULL, NULL, &model, NULL));
    CHECK(model == NULL);
    /* Above every dim is allowed. */
    DONE(td_cpals(context, x, 11, NULL, NULL, NULL, NULL, &model, NULL));
    td_ktensor_destroy(model);
  }
  td_ktensor_destroy(k);
  td_ktensor_destroy(other);
  td_ktensor_destroy(single);
  td_tensor_destroy(x);
}

static void numbers_too_large(void) {
  const int64_t dims[2] = {2, 2}, ld[2] = {2, 2};
  const float cells[4] = {3e38f, 3e38f, 3e38f, 3e38f}, a[2] = {3e38f, 3e38f};
  const void *factors[2];
  float out[2];
  td_tensor *x = NULL;
  factors[0] = factors[1] = a;
  DONE(td_tensor_create_dense(context, 2, dims, NULL, TD_F32, cells, TD_HOST, NULL, &x));
  REFUSED(TD_ERR_NUMERICAL, "overflow", "f32", td_mttkrp(context, x, 0, 1, factors, ld, out, 2, TD_HOST));
  td_tensor_destroy(x);
  x = NULL;
  {
    const double near_the_end[4] = {1.5e308, 1.6e308, 1.7e308, 0},
                 both_signs[4] = {-1.5e308, -1.6e308, 1.7e308, 1.7e308};
    double norm = -1, d = -1;
    DONE(td_tensor_create_dense(context, 2, dims, NULL, TD_F64, near_the_end, TD_HOST, NULL, &x));
    REFUSED(TD_ERR_NUMERICAL, "the norm", "f64", td_tensor_norm(x, &norm));
    REFUSED(TD_ERR_NUMERICAL, "the norm", "f64", td_tensor_get_f64(x, "norm", &d));
    REFUSED(TD_ERR_NUMERICAL, "the sum", "f64", td_tensor_get_f64(x, "sum", &d));
    CHECK(norm == -1 && d == -1);
    DONE(td_tensor_get_f64(x, "max", &d));
    CHECK(d == 1.7e308);
    td_tensor_destroy(x);
    DONE(td_tensor_create_dense(context, 2, dims, NULL, TD_F64, both_signs, TD_HOST, NULL, &x));
    if (td_tensor_get_f64(x, "sum", &d) == TD_OK)
      CHECK(d <= 3e307 * 1.01 && d >= 3e307 * 0.99);
    td_tensor_destroy(x);
  }
}

static void options(void) {
  td_options *o = NULL;
  td_context *c = NULL;
  int64_t i = 0;
  double d = 0;
  char text[64];
  td_tensor *x = NULL;
  td_ktensor *model = NULL;
  td_report *report = NULL;
  const int64_t dims[2] = {2, 2};
  const double cells[4] = {1, 2, 3, 4};
  DONE(td_options_create(&o));
  REFUSED(TD_ERR_OPTION_UNKNOWN, "max_iter", "max_iters", td_options_set_i64(o, "max_iter", 3));
  REFUSED(TD_ERR_OPTION_UNKNOWN, "tolerance", "", td_options_set_f64(o, "tolerance", 1e-3));
  REFUSED(TD_ERR_OPTION_UNKNOWN, "formt", "format", td_options_set_str(o, "formt", "coo"));
  REFUSED(TD_ERR_OPTION_UNKNOWN, "sed", "seed", td_options_get_i64(NULL, "sed", &i));
  REFUSED(TD_ERR_OPTION_UNKNOWN, "", "", td_options_set_str(o, "", "coo"));
  REFUSED(TD_ERR_OPTION_RANGE, "max_iters", "0", td_options_set_i64(o, "max_iters", 0));
  REFUSED(TD_ERR_OPTION_RANGE, "max_iters", "whole", td_options_set_str(o, "max_iters", "1.5"));
  REFUSED(TD_ERR_OPTION_RANGE, "max_iters", "2.5", td_options_set_f64(o, "max_iters", 2.5));
  REFUSED(TD_ERR_OPTION_RANGE, "5, a real number", "a whole number", td_options_set_f64(o, "max_iters", 5));
  REFUSED(TD_ERR_OPTION_RANGE, "tol", "-1", td_options_set_f64(o, "tol", -1));
  REFUSED(TD_ERR_OPTION_RANGE, "tol", "nan", td_options_set_f64(o, "tol", NAN));
  REFUSED(TD_ERR_OPTION_RANGE, "tol", "inf", td_options_set_str(o, "tol", "inf"));
  REFUSED(TD_ERR_OPTION_RANGE, "tol", "1,5", td_options_set_str(o, "tol", "1,5"));
  REFUSED(TD_ERR_OPTION_RANGE, "init", "nvecs", td_options_set_str(o, "init", "svd"));
  REFUSED(TD_ERR_OPTION_RANGE, "init", "3", td_options_set_i64(o, "init", 3));
  REFUSED(TD_ERR_OPTION_RANGE, "init", "", td_options_get_i64(o, "init", &i));
  REFUSED(TD_ERR_OPTION_RANGE, "arrange", "2", td_options_set_i64(o, "arrange", 2));
  REFUSED(TD_ERR_ARGUMENT, "-1", "", td_option_describe(-1, NULL, 0, NULL));
  REFUSED(TD_ERR_ARGUMENT, "", "", td_option_describe(td_option_count(), NULL, 0, NULL));
  REFUSED(TD_ERR_ARGUMENT, "cap = -1", "", td_options_get_str(o, "init", text, -1, NULL));
  /* A refused value changes nothing. */
  DONE(td_options_get_i64(o, "max_iters", &i));
  CHECK(i == 50);
  DONE(td_options_set_i64(o, "tol", 2)); /* a whole number is a real one */
  DONE(td_options_get_f64(o, "tol", &d));
  CHECK(d == 2);
  DONE(td_options_set_str(o, "tol", "1e-4"));

  REFUSED(TD_ERR_ARGUMENT, "warp", "", td_context_create("warp", NULL, &c));
  REFUSED(TD_ERR_ARGUMENT, "cpu:0", "", td_context_create("cpu:0", NULL, &c));
  REFUSED(TD_ERR_ARGUMENT, "cpu:-3", "", td_context_create("cpu:-3", NULL, &c));
  REFUSED(TD_ERR_ARGUMENT, "cpu:2x", "", td_context_create("cpu:2x", NULL, &c));
  REFUSED(TD_ERR_ARGUMENT, "", "", td_context_create("", NULL, &c));
  if (td_context_create("cuda", NULL, &c) == TD_OK) {
    printf("not checked: there is a GPU, so that asking for one is no error\n");
    td_context_destroy(c);
    c = NULL;
  } else {
    REFUSED(TD_ERR_BACKEND_UNAVAILABLE, "cuda", "", td_context_create("cuda", NULL, &c));
    REFUSED(TD_ERR_BACKEND_UNAVAILABLE, "cuda", "", td_context_create("cuda:0,2", NULL, &c));
    REFUSED(TD_ERR_BACKEND_UNAVAILABLE, "cuda", "", td_context_create("cuda:all", NULL, &c));
    DONE(td_context_create("auto", NULL, &c));
    td_context_destroy(c);
  }

  DONE(td_tensor_create_dense(context, 2, dims, NULL, TD_F64, cells, TD_HOST, NULL, &x));
  REFUSED(TD_ERR_OPTION_UNKNOWN, "nrm", "norm", td_tensor_get_f64(x, "nrm", &d));
  REFUSED(TD_ERR_OPTION_UNKNOWN, "byte", "bytes", td_tensor_get_i64(x, "byte", &i));
  REFUSED(TD_ERR_OPTION_UNKNOWN, "formats", "format", td_tensor_get_str(x, "formats", text, sizeof text, NULL));
  DONE(td_cpals(context, x, 1, NULL, NULL, NULL, NULL, &model, &report));
  REFUSED(TD_ERR_OPTION_UNKNOWN, "iteration", "iterations", td_report_get_i64(report, "iteration", &i));
  REFUSED(TD_ERR_OPTION_UNKNOWN, "fits", "fit", td_report_get_f64(report, "fits", &d));
  REFUSED(TD_ERR_OPTION_UNKNOWN, "stop", "", td_report_get_str(report, "stop", text, sizeof text, NULL));
  REFUSED(TD_ERR_OPTION_UNKNOWN, "fitt", "fit", td_report_get_series(report, "fitt", &d, 1, &i));
  td_report_destroy(report);
  td_ktensor_destroy(model);

  DONE(td_options_set_str(o, "mode_order", "0,0"));
  REFUSED(TD_ERR_OPTION_RANGE, "mode_order", "0,0", td_cpals(context, x, 1, NULL, o, NULL, NULL, &model, NULL));
  DONE(td_options_set_str(o, "mode_order", "1,0,2"));
  REFUSED(TD_ERR_OPTION_RANGE, "mode_order", "2", td_cpals(context, x, 1, NULL, o, NULL, NULL, &model, NULL));
  DONE(td_options_set_str(o, "mode_order", "one"));
  REFUSED(TD_ERR_OPTION_RANGE, "mode_order", "one", td_cpals(context, x, 1, NULL, o, NULL, NULL, &model, NULL));
  DONE(td_options_set_str(o, "mode_order", ""));
  DONE(td_options_set_str(o, "fixed_modes", "7"));
  REFUSED(TD_ERR_OPTION_RANGE, "fixed_modes", "7", td_cpals(context, x, 1, NULL, o, NULL, NULL, &model, NULL));
  CHECK(model == NULL);
  td_tensor_destroy(x);
  td_options_destroy(o);
}

int main(void) {
  int s;
  for (s = -120; s < 10; ++s)
    CHECK(strncmp(td_status_name(s), "TD_", 3) == 0);
  CHECK(strcmp(td_status_name(TD_ERR_SHAPE), "TD_ERR_SHAPE") == 0);
  CHECK(strcmp(td_status_name(12345), "TD_STATUS_UNKNOWN") == 0);
  CHECK(td_last_error(NULL, 0) == 1); /* nothing has failed yet */
  DONE(td_context_create("cpu", NULL, &context));
  shapes();
  blocks();
  entries();
  dense_values();
  types_and_spaces();
  matrices();
  numbers_too_large();
  options();
  td_context_destroy(context);
  return check_result();
}
