/* MTTKRP of a sparse tensor given by coordinates: the matrix
 *     M[i, r] = sum over entries (i, j, k, v) of  v * B[j, r] * C[k, r]. */
#include <stdio.h>
#include <stdlib.h>
#include <td/td.h>

int main(void) {
  const int64_t dims[3] = {2, 3, 2};
  const int32_t i[4] = {0, 0, 1, 1}, j[4] = {0, 2, 1, 2}, k[4] = {0, 1, 1, 0};
  const double v[4] = {1, 2, 3, 4};
  const void *const indices[3] = {i, j, k};

  const double b[6] = {1, 2, 3, 10, 20, 30};   /* 3 x 2, column by column */
  const double c[4] = {1, 2, 1, 1};            /* 2 x 2 */
  const void *const factors[3] = {NULL, b, c}; /* the factor of the mode that is computed is not read */
  const int64_t ld[3] = {2, 3, 2};
  double m[4];

  td_context *context = NULL;
  td_tensor *x = NULL;
  const int ok = td_context_create("auto", NULL, &context) >= 0 &&
                 td_tensor_create(context, 3, dims, 4, TD_I32, indices, 0, TD_F64, v, TD_HOST, NULL, &x) >= 0 &&
                 td_mttkrp(context, x, 0, 2, factors, ld, m, 2, TD_HOST) >= 0;
  td_tensor_destroy(x);
  td_context_destroy(context);
  if (!ok) {
    char why[512];
    td_last_error(why, sizeof why);
    fprintf(stderr, "%s\n", why);
    return EXIT_FAILURE;
  }
  printf("%g %g\n%g %g\n", m[0], m[2], m[1], m[3]);
  /* Row 0: 1*1*1 + 2*3*2 = 13 and 1*10*1 + 2*30*1 = 70. Row 1: 3*2*2 + 4*3*1 = 24 and 3*20*1 + 4*30*1 = 180. */
  return m[0] == 13 && m[2] == 70 && m[1] == 24 && m[3] == 180 ? EXIT_SUCCESS : EXIT_FAILURE;
}
