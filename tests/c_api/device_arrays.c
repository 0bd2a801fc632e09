/* space = TD_DEVICE: arrays on the GPU give what the same arrays on the host give. Skipped without a GPU. */
#include "gpu.h"

enum { rows = 5, cols = 4, depth = 3, rank = 2, nnz = 12 };

static td_context *context;
static const int64_t dims[3] = {rows, cols, depth};
static const int64_t ld[3] = {rows + 1, cols, depth};

/* out (with one row of padding, which must stay) := MTTKRP in mode 0, from and to `space`. */
static void product(const td_tensor *x, td_space space, double *out) {
  double a[cols * rank], b[depth * rank];
  const void *factors[3] = {NULL, NULL, NULL};
  void *result = out;
  int i;
  for (i = 0; i < cols * rank; ++i)
    a[i] = 0.5 * i - 1;
  for (i = 0; i < depth * rank; ++i)
    b[i] = 2 - 0.25 * i;
  for (i = 0; i < (rows + 1) * rank; ++i)
    out[i] = -7;
  factors[1] = a;
  factors[2] = b;
  if (space == TD_DEVICE) {
    factors[1] = on_device(a, sizeof a);
    factors[2] = on_device(b, sizeof b);
    result = on_device(out, (rows + 1) * rank * sizeof *out);
  }
  DONE(td_mttkrp(context, x, 0, rank, factors, ld, result, rows + 1, space));
  if (space == TD_DEVICE) {
    CHECK(cuda_copy(out, result, (rows + 1) * rank * sizeof *out, to_host) == 0);
    cuda_free((void *)factors[1]);
    cuda_free((void *)factors[2]);
    cuda_free(result);
  }
}

static void same_products(const td_tensor *x, const td_tensor *y) {
  double expected[(rows + 1) * rank], got[(rows + 1) * rank];
  int i;
  product(x, TD_HOST, expected);
  CHECK(expected[rows] == -7 && expected[2 * rows + 1] == -7);
  for (i = 0; i < 2; ++i) {
    int k;
    product(y, i == 0 ? TD_HOST : TD_DEVICE, got);
    for (k = 0; k < (rows + 1) * rank; ++k)
      CHECK(got[k] == expected[k]); /* whole and half numbers: exact in any order */
  }
}

static void sparse(void) {
  int32_t index[3][nnz];
  double values[nnz];
  const void *indices[3], *device_indices[3];
  void *device_values;
  const char *formats[] = {"blco", "sorted", "coo"};
  td_options *options = NULL;
  td_tensor *x = NULL, *y = NULL;
  int k;
  for (k = 0; k < nnz; ++k) {
    index[0][k] = 1 + k % rows;
    index[1][k] = 1 + k % cols;
    index[2][k] = 1 + k % depth;
    values[k] = k - 4;
  }
  for (k = 0; k < 3; ++k) {
    indices[k] = index[k];
    device_indices[k] = on_device(index[k], sizeof index[k]);
  }
  device_values = on_device(values, sizeof values);
  DONE(td_options_create(&options));
  DONE(td_options_set_str(options, "format", "blco"));
  DONE(td_tensor_create(context, 3, dims, nnz, TD_I32, indices, 1, TD_F64, values, TD_HOST, options, &x));
  for (k = 0; k < 3; ++k) {
    DONE(td_options_set_str(options, "format", formats[k]));
    DONE(td_tensor_create(context, 3, dims, nnz, TD_I32, device_indices, 1, TD_F64, device_values, TD_DEVICE, options,
                          &y));
    same_products(x, y);
    td_tensor_destroy(y);
  }
  for (k = 0; k < 3; ++k) { /* the caller's arrays are as they were */
    int32_t after[nnz];
    CHECK(cuda_copy(after, device_indices[k], sizeof after, to_host) == 0);
    CHECK(memcmp(after, index[k], sizeof after) == 0);
  }
  {
    double after[nnz];
    CHECK(cuda_copy(after, device_values, sizeof after, to_host) == 0);
    CHECK(memcmp(after, values, sizeof after) == 0);
  }
  index[1][3] = cols + 1;
  CHECK(cuda_copy((void *)device_indices[1], index[1], sizeof index[1], to_device) == 0);
  REFUSED(
      TD_ERR_INDEX, "entry 4, mode 2", "index 5",
      td_tensor_create(context, 3, dims, nnz, TD_I32, device_indices, 1, TD_F64, device_values, TD_DEVICE, NULL, &y));
  REFUSED(TD_ERR_ARGUMENT, "indices[0]", "cuda:0",
          td_tensor_create(context, 3, dims, nnz, TD_I32, indices, 1, TD_F64, device_values, TD_DEVICE, NULL, &y));
  for (k = 0; k < 3; ++k)
    cuda_free((void *)device_indices[k]);
  cuda_free(device_values);
  td_options_destroy(options);
  td_tensor_destroy(x);
}

/* Rows without an entry, which a tensor may leave out: factors are read and the result is written around them. */
static void dropped_rows(void) {
  const int32_t index[3][nnz] = {{0, 2, 4, 0, 2, 4, 0, 2, 4, 0, 2, 4},  /* not 1 and 3 */
                                 {1, 1, 3, 3, 1, 1, 3, 3, 3, 1, 1, 3},  /* not 0 and 2 */
                                 {0, 2, 0, 2, 2, 0, 2, 0, 2, 0, 2, 0}}; /* not 1 */
  const void *indices[3] = {index[0], index[1], index[2]};
  const char *formats[] = {"blco", "sorted"};
  const char *rules[] = {"keep", "drop"};
  double values[nnz];
  td_options *options = NULL;
  td_tensor *x = NULL, *y = NULL;
  int k, rule;
  for (k = 0; k < nnz; ++k)
    values[k] = 1 + k;
  DONE(td_options_create(&options));
  for (k = 0; k < 2; ++k) {
    DONE(td_options_set_str(options, "format", formats[k]));
    for (rule = 0; rule < 2; ++rule) {
      DONE(td_options_set_str(options, "empty_rows", rules[rule]));
      DONE(td_tensor_create(context, 3, dims, nnz, TD_I32, indices, 0, TD_F64, values, TD_HOST, options,
                            rule == 0 ? &x : &y));
    }
    same_products(x, y);
    td_tensor_destroy(x);
    td_tensor_destroy(y);
  }
  td_options_destroy(options);
}

/* A part of a larger array, its second mode backwards. */
static void dense(void) {
  const int64_t strides[3] = {1, -(rows + 1), (rows + 1) * cols};
  double all[(rows + 1) * cols * depth];
  const int origin = (rows + 1) * (cols - 1);
  double *device;
  td_tensor *x = NULL, *y = NULL;
  int k;
  for (k = 0; k < (rows + 1) * cols * depth; ++k)
    all[k] = k % 17 - 8;
  device = on_device(all, sizeof all);
  DONE(td_tensor_create_dense(context, 3, dims, strides, TD_F64, all + origin, TD_HOST, NULL, &x));
  DONE(td_tensor_create_dense(context, 3, dims, strides, TD_F64, device + origin, TD_DEVICE, NULL, &y));
  same_products(x, y);
  cuda_free(device);
  td_tensor_destroy(x);
  td_tensor_destroy(y);
}

int main(void) {
  context = context_with_gpu();
  if (context == NULL)
    return exit_skipped;
  sparse();
  dropped_rows();
  dense();
  td_context_destroy(context);
  return check_result();
}
