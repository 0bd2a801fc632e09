/* Arrays given with space = TD_DEVICE that are not, or are no more, in the GPU's memory: refused before anything
 * touches them. Skipped without a GPU. */
#include "gpu_problem.h"

int main(void) {
  td_context *context = context_with_gpu();
  td_tensor *x = NULL, *y = NULL;
  double host[most_rows * columns] = {0}, *a, *gone, *result, *pinned = NULL;
  const void *indices[order] = {NULL, NULL, NULL};
  int devices = 0;
  if (context == NULL)
    return exit_skipped;
  DONE(make_sparse(context, "sorted", &x));
  a = on_device(host, sizeof host);
  result = on_device(host, sizeof host);
  gone = on_device(host, sizeof host);
  CHECK(cuda_free(gone) == 0);
  REFUSED(TD_ERR_ARGUMENT, "out", "cuda:0", product_there(context, x, a, gone));
  REFUSED(TD_ERR_ARGUMENT, "factor 1", "cuda:0", product_there(context, x, gone, result));
  REFUSED(TD_ERR_ARGUMENT, "factor 1", "cuda:0", product_there(context, x, host, result));
  REFUSED(TD_ERR_ARGUMENT, "factor 1", "cuda:0", product_there(context, x, (const double *)64, result));
  CHECK(cuda_malloc_host((void **)&pinned, sizeof host) == 0);
  REFUSED(TD_ERR_ARGUMENT, "out", "cuda:0", product_there(context, x, a, pinned));
  CHECK(cuda_free_host(pinned) == 0);
  REFUSED(TD_ERR_ARGUMENT, "values", "cuda:0",
          td_tensor_create_dense(context, order, shape, NULL, TD_F64, gone, TD_DEVICE, NULL, &y));
  indices[0] = indices[1] = indices[2] = gone;
  REFUSED(TD_ERR_ARGUMENT, "indices[0]", "cuda:0",
          td_tensor_create(context, order, shape, 3, TD_I64, indices, 0, TD_F64, a, TD_DEVICE, NULL, &y));
  CHECK(y == NULL);
  CHECK(cuda_device_count(&devices) == 0);
  if (devices > 1) {
    double *elsewhere;
    CHECK(cuda_set_device(1) == 0);
    elsewhere = on_device(host, sizeof host);
    REFUSED(TD_ERR_ARGUMENT, "factor 1", "cuda:0", product_there(context, x, elsewhere, result));
    cuda_free(elsewhere);
    CHECK(cuda_set_device(0) == 0);
  } else {
    puts("one GPU: arrays of another one are left out");
  }
  DONE(product_there(context, x, a, result));
  cuda_free(a);
  cuda_free(result);
  td_tensor_destroy(x);
  td_context_destroy(context);
  return check_result();
}
