/* Uses an installed td as a stranger would: is it the library that its header speaks of, and does it work? */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <td/td.h>

static int failures = 0;

static void expect(int holds, const char *what) {
  char why[512] = "";
  if (holds)
    return;
  td_last_error(why, sizeof why);
  fprintf(stderr, "does not hold: %s (%s)\n", what, why);
  ++failures;
}

/* X = 3 e_0 (.) e_0 (.) e_0 + 2 e_1 (.) e_1 (.) e_1 has rank 2, and its MTTKRP with factors of ones sums each slice. */
static void work(void) {
  const int64_t dims[3] = {2, 2, 2};
  const int64_t at[2] = {0, 1};
  const void *indices[3] = {at, at, at};
  const double values[2] = {3, 2};
  const double ones[2] = {1, 1};
  const void *factors[3] = {NULL, ones, ones};
  const int64_t ld[3] = {2, 2, 2};
  double sums[2] = {0, 0};
  double fit = 0;
  td_context *context = NULL;
  td_tensor *x = NULL;
  td_ktensor *model = NULL;
  td_report *report = NULL;

  expect(td_context_create("cpu", NULL, &context) == TD_OK, "a context is made");
  expect(td_tensor_create(context, 3, dims, 2, TD_I64, indices, 0, TD_F64, values, TD_HOST, NULL, &x) == TD_OK,
         "a tensor is made");
  expect(td_mttkrp(context, x, 0, 1, factors, ld, sums, 2, TD_HOST) == TD_OK, "MTTKRP works");
  expect(sums[0] == 3 && sums[1] == 2, "slice sums are 3 and 2");
  expect(td_cpals(context, x, 2, NULL, NULL, NULL, NULL, &model, &report) == TD_OK, "CP-ALS works");
  expect(td_report_get_f64(report, "fit", &fit) == TD_OK, "there is a fit");
  expect(isfinite(fit) && fit > 0.3 && fit <= 1, "the fit is better than that of the larger component alone");
  td_report_destroy(report);
  td_ktensor_destroy(model);
  td_tensor_destroy(x);
  td_context_destroy(context);
}

int main(void) {
  const int version = 10000 * TD_VERSION_MAJOR + 100 * TD_VERSION_MINOR + TD_VERSION_PATCH;
  expect(td_version() == version, "td_version() is the header's");
  expect(td_abi_version() == TD_ABI_VERSION, "td_abi_version() is the header's");
  expect(strcmp(td_status_name(TD_ERR_SHAPE), "TD_ERR_SHAPE") == 0, "a status has its name");
  work();
  printf("%d.%d.%d abi %d\n", TD_VERSION_MAJOR, TD_VERSION_MINOR, TD_VERSION_PATCH, TD_ABI_VERSION);
  return failures == 0 ? 0 : 1;
}
