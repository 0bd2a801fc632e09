/* More memory than there is: asked for at once, and under a limit on the address space. */
#define _XOPEN_SOURCE 700
#include <sys/resource.h>

#include "check.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { sanitized = 1 };
#else
enum { sanitized = 0 };
#endif

static td_context *context;

static void impossible_sizes(void) {
  const int64_t dims[3] = {1000000, 1000000, 1000000};
  const int64_t ld[3] = {1000000, 1000000, 1000000};
  const double one = 1;
  const void *factors[3];
  double out;
  td_tensor *x = NULL;
  td_ktensor *k = NULL;
  factors[0] = factors[1] = factors[2] = &one;
  DONE(td_tensor_create(context, 3, dims, 0, TD_I64, NULL, 0, TD_F64, NULL, TD_HOST, NULL, &x));
  /* 8e6 bytes a column: 2^40 columns are 8e18 bytes and fit no machine; 2^62 overflow the count itself. */
  REFUSED(TD_ERR_HOST_MEMORY, "bytes", "", td_ktensor_create(context, 3, dims, ((int64_t)1) << 40, TD_F64, &k));
  REFUSED(TD_ERR_HOST_MEMORY, "memory", "", td_ktensor_create(context, 3, dims, ((int64_t)1) << 62, TD_F64, &k));
  REFUSED(TD_ERR_HOST_MEMORY, "memory", "",
          td_mttkrp(context, x, 0, ((int64_t)1) << 40, factors, ld, &out, 1000000, TD_HOST));
  REFUSED(TD_ERR_HOST_MEMORY, "memory", "", td_cpals(context, x, ((int64_t)1) << 40, NULL, NULL, NULL, NULL, &k, NULL));
  CHECK(k == NULL);
  td_tensor_destroy(x);
}

/* 2^27 doubles are 1 GiB, above a limit that leaves 512 MiB more than is in use. */
static void limited_address_space(void) {
  struct rlimit whole, small;
  const int64_t dims[2] = {((int64_t)1) << 27, 2};
  const int64_t zero_strides[2] = {0, 0};
  const double cell = 1;
  long pages = 0;
  td_ktensor *k = NULL;
  td_tensor *x = NULL;
  FILE *statm = fopen("/proc/self/statm", "r");
  if (statm == NULL || fscanf(statm, "%ld", &pages) != 1) {
    printf("not checked: /proc/self/statm says nothing of the address space in use\n");
    return;
  }
  fclose(statm);
  CHECK(getrlimit(RLIMIT_AS, &whole) == 0);
  small = whole;
  small.rlim_cur = (rlim_t)pages * 4096 + ((rlim_t)512 << 20);
  CHECK(setrlimit(RLIMIT_AS, &small) == 0);
  REFUSED(TD_ERR_HOST_MEMORY, "memory", "", td_ktensor_create(context, 2, dims, 1, TD_F64, &k));
  REFUSED(TD_ERR_HOST_MEMORY, "memory", "",
          td_tensor_create_dense(context, 2, dims, zero_strides, TD_F64, &cell, TD_HOST, NULL, &x));
  CHECK(setrlimit(RLIMIT_AS, &whole) == 0);
  CHECK(k == NULL && x == NULL);
}

int main(void) {
  if (sanitized) {
    printf("skipped: sanitizers end the program where malloc would give NULL, and need the address space\n");
    return exit_skipped;
  }
  DONE(td_context_create("cpu", NULL, &context));
  CHECK(library_works()); /* threads are there before the address space is limited */
  impossible_sizes();
  limited_address_space();
  td_context_destroy(context);
  return check_result();
}
