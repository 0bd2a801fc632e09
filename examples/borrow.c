/* A simulation's field is decomposed where it lies, without a copy: with "cuda" as argument in the memory of a GPU,
 * else on the host, which stands in for one. The field has a halo of one cell, as a simulation keeps it, that is no
 * part of the tensor: td neither reads nor copies it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <td/td.h>

enum { nx = 40, ny = 30, nt = 50, halo = 1, px = nx + 2 * halo, py = ny + 2 * halo };
enum { to_device = 1 };

/* What a simulation calls of CUDA anyway; looked for when the program runs, so that it builds without. */
static int (*cuda_malloc)(void **, size_t);
static int (*cuda_free)(void *);
static int (*cuda_copy)(void *, const void *, size_t, int);

static int find(void *library, const char *name, void *function) {
  void *found = library == NULL ? NULL : dlsym(library, name);
  memcpy(function, &found, sizeof found);
  return found != NULL;
}

static int find_cuda(void) {
  const char *names[] = {"libcudart.so.13", "libcudart.so.12"};
  void *library = NULL;
  size_t k;
  for (k = 0; k < sizeof names / sizeof *names && library == NULL; ++k)
    library = dlopen(names[k], RTLD_NOW);
  return find(library, "cudaMalloc", &cuda_malloc) && find(library, "cudaFree", &cuda_free) &&
         find(library, "cudaMemcpy", &cuda_copy);
}

/* Three patterns in space, each with its own course in time; what is in the halo is none of it. */
static void simulate(double *field) {
  const double pi = acos(-1.0);
  int i, j, k;
  for (i = 0; i < px * py * nt; ++i)
    field[i] = NAN;
  for (k = 0; k < nt; ++k)
    for (j = 0; j < ny; ++j)
      for (i = 0; i < nx; ++i) {
        const double x = (i + 1.0) / nx, y = (j + 1.0) / ny, t = (k + 1.0) / nt;
        field[i + halo + px * (j + halo + py * k)] = sin(pi * x) * sin(pi * y) * exp(-t) +
                                                     0.5 * sin(2 * pi * x) * sin(3 * pi * y) * cos(3 * t) +
                                                     0.3 * sin(3 * pi * x) * sin(2 * pi * y) * t;
      }
}

/* Bytes that the model's tensor has on the host and on the GPU, by what td says. */
static td_status bytes_of(td_context *context, const td_tensor *x, int64_t *host, int64_t *device) {
  td_plan *plan = NULL;
  td_status status = td_plan_create_for_tensor(context, x, 3, NULL, &plan);
  if (status >= 0)
    status = td_tensor_get_i64(x, "bytes", host);
  if (status >= 0)
    status = td_plan_get_i64(plan, "device_bytes.tensor", device);
  td_plan_destroy(plan);
  return status;
}

int main(int argc, char **argv) {
  const int on_gpu = argc > 1 && strncmp(argv[1], "cuda", 4) == 0;
  const int64_t dims[3] = {nx, ny, nt}, strides[3] = {1, px, px * py};
  const size_t bytes = sizeof(double) * px * py * nt;
  double *host = malloc(bytes), *field = host, fit = 0;
  void *device = NULL;
  td_context *context = NULL;
  td_options *options = NULL, *run = NULL;
  td_tensor *x = NULL;
  td_ktensor *model = NULL;
  td_report *report = NULL;
  int64_t host_bytes = -1, device_bytes = -1;
  int ok;
  if (host == NULL)
    return EXIT_FAILURE;
  simulate(host);
  if (on_gpu) {
    if (!find_cuda() || cuda_malloc(&device, bytes) != 0 || cuda_copy(device, host, bytes, to_device) != 0) {
      printf("skipped: no GPU, or no libcudart\n");
      free(host);
      return 77;
    }
    field = device; /* where a simulation on the GPU would have it */
  }

  ok = td_context_create(on_gpu ? argv[1] : "cpu", NULL, &context) >= 0 && td_options_create(&options) >= 0 &&
       td_options_set_i64(options, "borrow", 1) >= 0 &&
       td_tensor_create_dense(context, 3, dims, strides, TD_F64, field + halo * (1 + px), on_gpu ? TD_DEVICE : TD_HOST,
                              options, &x) >= 0 &&
       bytes_of(context, x, &host_bytes, &device_bytes) >= 0 && td_options_create(&run) >= 0 &&
       td_options_set_str(run, "tol", "1e-9") >= 0 && td_options_set_str(run, "init", "nvecs") >= 0 &&
       td_options_set_i64(run, "max_iters", 200) >= 0 &&
       td_cpals(context, x, 3, NULL, run, NULL, NULL, &model, &report) >= 0 &&
       td_report_get_f64(report, "fit", &fit) >= 0;
  if (ok) {
    char text[256];
    td_tensor_describe(x, text, sizeof text, NULL);
    printf("%s\n", text);
    printf("the field: %lld bytes; of its own the tensor has %lld on the host and %lld on a GPU; fit %.6f\n",
           (long long)(sizeof(double) * nx * ny * nt), (long long)host_bytes, (long long)device_bytes, fit);
  } else {
    char why[512];
    td_last_error(why, sizeof why);
    fprintf(stderr, "%s\n", why);
  }
  td_report_destroy(report);
  td_ktensor_destroy(model);
  td_tensor_destroy(x); /* from here on the field may change, or go */
  td_options_destroy(run);
  td_options_destroy(options);
  td_context_destroy(context);
  if (on_gpu)
    cuda_free(device);
  free(host);
  return ok && fit > 0.999 && host_bytes < 1000 && device_bytes == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
