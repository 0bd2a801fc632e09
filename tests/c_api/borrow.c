/* Option "borrow": what is refused, each by its sentence; that pages between the elements, which may not be touched,
 * are not; and, with a device as argument, arrays on a GPU. */
#define _GNU_SOURCE
#include <math.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "gpu.h"

static td_context *cpu = NULL;
static td_options *borrow = NULL;

static td_status dense_in(td_context *context, int32_t order, const int64_t *dims, const int64_t *strides,
                          const void *values, td_space space, const td_options *options) {
  td_tensor *x = NULL;
  const td_status status = td_tensor_create_dense(context, order, dims, strides, TD_F64, values, space, options, &x);
  CHECK((status < 0) == (x == NULL));
  td_tensor_destroy(x);
  return status;
}

static td_status dense(const int64_t *dims, const int64_t *strides, const void *values) {
  return dense_in(cpu, 3, dims, strides, values, TD_HOST, borrow);
}

static void refusals(void) {
  const int64_t dims[3] = {4, 3, 2};
  double values[64] = {0};
  int32_t index[1] = {0};
  const void *indices[3] = {index, index, index};
  td_tensor *x = NULL;
  td_options *named = NULL;
  {
    const int64_t negative[3] = {-1, 4, 12}, zero[3] = {0, 4, 12}, far[3] = {1, INT64_MAX / 2, INT64_MAX / 2};
    const int64_t overlapping[3] = {1, 3, 12}, between[3] = {2, 3, 30}, same[3] = {1, 1, 12};
    REFUSED(TD_ERR_SHAPE, "strides[0] = -1", "at least 1", dense(dims, negative, values + 3));
    REFUSED(TD_ERR_SHAPE, "strides[0] = 0", "at least 1", dense(dims, zero, values));
    REFUSED(TD_ERR_SHAPE, "strides[1] = 3", "reach over 4 places", dense(dims, overlapping, values));
    REFUSED(TD_ERR_SHAPE, "strides[1] = 3", "reach over 7 places", dense(dims, between, values));
    REFUSED(TD_ERR_SHAPE, "strides[1] = 1", "reach over 4 places", dense(dims, same, values));
    REFUSED(TD_ERR_SHAPE, "strides[", "2^63 - 1", dense(dims, far, values));
  }
  {
    const int64_t ones[3] = {4, 1, 2}, any[3] = {1, -7, 4}; /* the stride of a dim of 1 says nothing */
    CHECK(dense(ones, any, values) == TD_OK);
  }
  REFUSED(TD_ERR_ARGUMENT, "multiple of 8", "f64", dense(dims, NULL, (const char *)values + 4));
  REFUSED(TD_ERR_ARGUMENT, "values", "null", dense(dims, NULL, NULL));
  values[4 + 2 * 12 - 5] = NAN; /* at 3, 2, 1 */
  REFUSED(TD_ERR_ARGUMENT, "element (3, 2, 1)", "value nan", dense(dims, NULL, values));
  values[23] = 0;
  REFUSED(TD_ERR_UNSUPPORTED, "TD_DEVICE", "", dense_in(cpu, 3, dims, NULL, values, TD_DEVICE, borrow));
  REFUSED(TD_ERR_UNSUPPORTED, "'borrow' = 1", "sparse",
          td_tensor_create(cpu, 3, dims, 1, TD_I32, indices, 0, TD_F64, values, TD_HOST, borrow, &x));
  REFUSED(TD_ERR_UNSUPPORTED, "'borrow' = 1", "file", td_tensor_read(cpu, "any.tns", borrow, &x));
  DONE(td_options_copy(borrow, &named));
  DONE(td_options_set_str(named, "groups", "0,1|2"));
  {
    const int64_t last_fastest[3] = {6, 2, 1};
    CHECK(dense_in(cpu, 3, dims, NULL, values, TD_HOST, named) == TD_OK);
    REFUSED(TD_ERR_UNSUPPORTED, "'groups'", "borrowed", dense_in(cpu, 3, dims, last_fastest, values, TD_HOST, named));
  }
  td_options_destroy(named);
  REFUSED(TD_ERR_OPTION_RANGE, "borrow", "2", td_options_set_i64(borrow, "borrow", 2));
}

/* Columns of a page each; every other page lies in a gap and may not be touched. Elements are small whole numbers, so
 * that each sum is what it should be in any order. */
static void gaps_that_may_not_be_touched(td_context *context) {
  const int64_t page = sysconf(_SC_PAGESIZE), row = page / (int64_t)sizeof(double);
  const int64_t dims[3] = {row, 3, 2}, strides[3] = {1, 2 * row, 8 * row}, ld[3] = {row, 3, 2};
  const size_t bytes = (size_t)(14 * page);
  double *values = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  double ones[1024], out[1024];
  const void *factors[3] = {ones, ones, ones};
  double squares = 0, norm = 0;
  td_tensor *x = NULL;
  td_ktensor *model = NULL;
  int64_t i, j, k;
  CHECK(values != MAP_FAILED && row <= 1024);
  for (i = 0; i < 1024; ++i)
    ones[i] = 1;
  for (k = 0; k < 2; ++k)
    for (j = 0; j < 3; ++j)
      for (i = 0; i < row; ++i) {
        const double v = (double)((i + 3 * j + 5 * k) % 7);
        values[i + 2 * row * j + 8 * row * k] = v;
        squares += v * v;
      }
  for (i = 1; i < 14; i += 2)
    CHECK(mprotect((char *)values + i * page, (size_t)page, PROT_NONE) == 0);
  CHECK(mprotect((char *)values + 6 * page, (size_t)page, PROT_NONE) == 0);
  DONE(td_tensor_create_dense(context, 3, dims, strides, TD_F64, values, TD_HOST, borrow, &x));
  DONE(td_tensor_norm(x, &norm));
  CHECK(norm == sqrt(squares));
  DONE(td_mttkrp(context, x, 0, 1, factors, ld, out, row, TD_HOST));
  for (i = 0; i < row; ++i) {
    double sum = 0;
    for (k = 0; k < 2; ++k)
      for (j = 0; j < 3; ++j)
        sum += (double)((i + 3 * j + 5 * k) % 7);
    CHECK(out[i] == sum);
  }
  for (j = 1; j < 3; ++j) {
    double sum = 0, all = 0;
    DONE(td_mttkrp(context, x, (int32_t)j, 1, factors, ld, out, dims[j], TD_HOST));
    for (i = 0; i < dims[j]; ++i)
      sum += out[i];
    for (k = 0; k < 6 * row; ++k)
      all += (double)((k % row + 3 * (k / row % 3) + 5 * (k / row / 3)) % 7);
    CHECK(sum == all);
  }
  DONE(td_cpals(context, x, 2, NULL, NULL, NULL, NULL, &model, NULL));
  td_ktensor_destroy(model);
  td_tensor_destroy(x);
  munmap(values, bytes);
}

/* CUDA's runtime, or that of the GPUs in software, which are in a libtd_cuda of their own. */
static int find_runtime(void) {
  void *library = dlopen("libtd_cuda.so.0", RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  void *functions[3];
  if (find_cuda())
    return 1;
  if (library == NULL)
    return 0;
  functions[0] = dlsym(library, "cudaMalloc");
  functions[1] = dlsym(library, "cudaMemcpy");
  functions[2] = dlsym(library, "cudaFree");
  memcpy(&cuda_malloc, &functions[0], sizeof(void *));
  memcpy(&cuda_copy, &functions[1], sizeof(void *));
  memcpy(&cuda_free, &functions[2], sizeof(void *));
  return functions[0] != NULL && functions[1] != NULL && functions[2] != NULL;
}

/* An array on the first GPU: only a context of that GPU alone takes it. */
static void on_a_gpu(const char *device) {
  const int64_t dims[3] = {4, 3, 2}, ld[3] = {4, 3, 2};
  double values[24], ones[8] = {1, 1, 1, 1, 1, 1, 1, 1}, out[4], back[24];
  const void *factors[3] = {ones, ones, ones};
  void *there = NULL;
  td_context *gpu = NULL;
  td_tensor *x = NULL;
  td_ktensor *model = NULL;
  td_plan *plan = NULL;
  int i;
  DONE(td_context_create(device, NULL, &gpu));
  if (!find_runtime()) {
    printf("no runtime to have arrays on %s by\n", device);
    exit(1);
  }
  for (i = 0; i < 24; ++i)
    values[i] = i;
  there = on_device(values, sizeof values);
  REFUSED(TD_ERR_ARGUMENT, "values", "TD_DEVICE", dense_in(gpu, 3, dims, NULL, values, TD_DEVICE, borrow));
  REFUSED(TD_ERR_ARGUMENT, "values", "TD_HOST", dense_in(gpu, 3, dims, NULL, there, TD_HOST, borrow));
  DONE(td_tensor_create_dense(gpu, 3, dims, NULL, TD_F64, there, TD_DEVICE, borrow, &x));
  REFUSED(TD_ERR_UNSUPPORTED, "borrowed in the memory of cuda:0", "alone",
          td_mttkrp(cpu, x, 0, 1, factors, ld, out, 4, TD_HOST));
  REFUSED(TD_ERR_UNSUPPORTED, "borrowed in the memory of cuda:0", "alone",
          td_cpals(cpu, x, 2, NULL, NULL, NULL, NULL, &model, NULL));
  REFUSED(TD_ERR_UNSUPPORTED, "borrowed in the memory of cuda:0", "alone",
          td_plan_create_for_tensor(cpu, x, 2, NULL, &plan));
  DONE(td_mttkrp(gpu, x, 0, 1, factors, ld, out, 4, TD_HOST));
  CHECK(out[0] == 60 && out[3] == 78);
  td_context_destroy(gpu); /* the tensor outlives it */
  DONE(td_tensor_get_dense(x, NULL, TD_F64, back));
  for (i = 0; i < 24; ++i)
    CHECK(back[i] == i);
  td_tensor_destroy(x);
  cuda_free(there);
}

int main(int argc, char **argv) {
  td_context *several = NULL;
  DONE(td_context_create("cpu", NULL, &cpu));
  DONE(td_context_create("cpu:2", NULL, &several));
  DONE(td_options_create(&borrow));
  DONE(td_options_set_i64(borrow, "borrow", 1));
  refusals();
  gaps_that_may_not_be_touched(cpu);
  gaps_that_may_not_be_touched(several);
  if (argc > 1) {
    td_context *gpu = NULL;
    DONE(td_context_create(argv[1], NULL, &gpu));
    gaps_that_may_not_be_touched(gpu);
    td_context_destroy(gpu);
    on_a_gpu(argv[1]);
  }
  td_options_destroy(borrow);
  td_context_destroy(several);
  td_context_destroy(cpu);
  return check_failures == 0 ? 0 : 1;
}
