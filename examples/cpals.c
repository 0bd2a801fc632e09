/* Decomposes the tensor in a file: cpals FILE RANK. The start is nvecs and the tolerance 1e-4, so that the
 * amino-acid tensor at rank 3 shows the fits of Tensor Toolbox's documentation of cp_als. */
#include <stdio.h>
#include <stdlib.h>
#include <td/td.h>

static int32_t show(const td_report *so_far, void *every) {
  int64_t iteration = 0;
  double fit = 0;
  td_report_get_i64(so_far, "iterations", &iteration);
  td_report_get_f64(so_far, "fit", &fit);
  if (every == NULL || iteration % *(int *)every == 0)
    printf("iteration %3lld  fit %.6e\n", (long long)iteration, fit);
  return 0; /* anything else would stop the run */
}

int main(int argc, char **argv) {
  td_context *context = NULL;
  td_tensor *x = NULL;
  td_options *options = NULL;
  td_ktensor *model = NULL;
  td_report *report = NULL;
  int every = 10;
  if (argc == 3 && td_context_create("auto", NULL, &context) >= 0 && td_options_create(&options) >= 0 &&
      td_options_set_str(options, "init", "nvecs") >= 0 && td_options_set_f64(options, "tol", 1e-4) >= 0 &&
      td_tensor_read(context, argv[1], NULL, &x) >= 0 &&
      td_cpals(context, x, atoll(argv[2]), NULL, options, show, &every, &model, &report) >= 0) {
    show(report, NULL); /* the last iteration */
  } else {
    char why[512] = "usage: cpals FILE RANK";
    if (argc == 3)
      td_last_error(why, sizeof why);
    fprintf(stderr, "%s\n", why);
  }
  const int code = model == NULL ? EXIT_FAILURE : EXIT_SUCCESS;
  td_ktensor_destroy(model);
  td_tensor_destroy(x);
  td_options_destroy(options);
  td_context_destroy(context);
  td_report_destroy(report);
  return code;
}
