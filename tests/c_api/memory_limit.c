/* Option "memory_limit" of a context: tensors and runs that need more are refused with the numbers, and the same work
 * goes on in a context without it. */
#include "check.h"

enum { cells = 20 * 20 * 20 };

static td_context *context_with(const char *limit) {
  td_options *options = NULL;
  td_context *context = NULL;
  DONE(td_options_create(&options));
  DONE(td_options_set_str(options, "memory_limit", limit));
  DONE(td_context_create("cpu:2", options, &context));
  td_options_destroy(options);
  return context;
}

int main(void) {
  static double values[cells];
  const int64_t dims[3] = {20, 20, 20};
  td_context *narrow = context_with("150000"), *wide = context_with("0");
  td_options *options = NULL;
  td_tensor *x = NULL;
  td_ktensor *model = NULL;
  int64_t bytes = 0;
  int i;
  for (i = 0; i < cells; ++i)
    values[i] = i % 7;

  DONE(td_tensor_create_dense(narrow, 3, dims, NULL, TD_F64, values, TD_HOST, NULL, &x));
  DONE(td_tensor_get_i64(x, "bytes", &bytes));
  CHECK(bytes >= cells * 8 && bytes < cells * 8 + 100);
  /* 86 kB are left. MTTKRP in the last mode has two workers with 400 rows of the Khatri-Rao product each: at rank 20
     that is 128 kB and more, at rank 2, in whole registers, 51 kB. */
  REFUSED(TD_ERR_HOST_MEMORY, "CP-ALS of rank 20 with 2 workers needs", "option 'memory_limit'",
          td_cpals(narrow, x, 20, NULL, NULL, NULL, NULL, &model, NULL));
  CHECK(model == NULL);
  DONE(td_cpals(narrow, x, 2, NULL, NULL, NULL, NULL, &model, NULL));
  td_ktensor_destroy(model);
  DONE(td_cpals(wide, x, 20, NULL, NULL, NULL, NULL, &model, NULL));
  td_ktensor_destroy(model);
  td_tensor_destroy(x);

  /* The limit is the context's: one in a set of options that is given to a tensor changes nothing. */
  DONE(td_options_create(&options));
  DONE(td_options_set_i64(options, "memory_limit", 10));
  DONE(td_tensor_create_dense(wide, 3, dims, NULL, TD_F64, values, TD_HOST, options, &x));
  td_tensor_destroy(x);
  td_options_destroy(options);

  td_context_destroy(narrow);
  narrow = context_with("60000");
  REFUSED(TD_ERR_HOST_MEMORY, "a dense tensor of 8000 elements needs 64024 bytes", "available are 60000 bytes",
          td_tensor_create_dense(narrow, 3, dims, NULL, TD_F64, values, TD_HOST, NULL, &x));
  CHECK(x == NULL);
  td_context_destroy(narrow);
  td_context_destroy(wide);
  return check_result();
}
