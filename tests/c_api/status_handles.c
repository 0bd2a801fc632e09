/* Null, destroyed and wrong-kind handles in every function that takes one, and null pointers. */
#include "check.h"

static td_context *context, *dead_context;
static td_options *options, *dead_options;
static td_tensor *tensor, *dead_tensor;
static td_ktensor *ktensor, *dead_ktensor;
static td_report *report, *dead_report;

static const int64_t dims[2] = {2, 3};
static const int64_t ld[2] = {2, 3};
static const double cells[6] = {1, 2, 3, 4, 5, 6};
static const double factor0[4] = {1, 0, 0, 1};
static const double factor1[6] = {1, 2, 3, 4, 5, 6};
static const void *const factors[2] = {factor0, factor1};

static void make(td_context **c, td_options **o, td_tensor **x, td_ktensor **k, td_report **r) {
  DONE(td_context_create("cpu", NULL, c));
  DONE(td_options_create(o));
  DONE(td_tensor_create_dense(*c, 2, dims, NULL, TD_F64, cells, TD_HOST, NULL, x));
  DONE(td_cpals(*c, *x, 2, NULL, NULL, NULL, NULL, k, r));
}

/* Each family's functions with a handle that is no good, for which the text must say `how`. */
static void bad_context(td_context *c, const char *how) {
  td_context *other = NULL;
  td_tensor *x = NULL;
  td_ktensor *k = NULL;
  double d, out[6];
  REFUSED(TD_ERR_HANDLE, "context", how, td_context_share(c, &other));
  REFUSED(TD_ERR_HANDLE, "context", how, td_context_set_log(c, NULL, NULL));
  REFUSED(TD_ERR_HANDLE, "context", how, td_context_set_stream(c, 0, NULL));
  REFUSED(TD_ERR_HANDLE, "context", how, td_context_describe(c, NULL, 0, NULL));
  REFUSED(TD_ERR_HANDLE, "context", how,
          td_tensor_create(c, 2, dims, 0, TD_I64, NULL, 0, TD_F64, NULL, TD_HOST, NULL, &x));
  REFUSED(TD_ERR_HANDLE, "context", how, td_tensor_create_dense(c, 2, dims, NULL, TD_F64, cells, TD_HOST, NULL, &x));
  REFUSED(TD_ERR_HANDLE, "context", how, td_ktensor_create(c, 2, dims, 1, TD_F64, &k));
  REFUSED(TD_ERR_HANDLE, "context", how, td_ktensor_dot_tensor(c, ktensor, tensor, &d));
  REFUSED(TD_ERR_HANDLE, "context", how, td_ktensor_fit(c, ktensor, tensor, &d, NULL, NULL, NULL));
  REFUSED(TD_ERR_HANDLE, "context", how, td_mttkrp(c, tensor, 0, 2, factors, ld, out, 2, TD_HOST));
  REFUSED(TD_ERR_HANDLE, "context", how, td_mttkrp_ktensor(c, tensor, 0, ktensor, out, 2, TD_HOST));
  REFUSED(TD_ERR_HANDLE, "context", how, td_cpals(c, tensor, 2, NULL, NULL, NULL, NULL, &k, NULL));
  REFUSED(TD_ERR_HANDLE, "context", how, td_tensor_read(c, "x.tns", NULL, &x));
  REFUSED(TD_ERR_HANDLE, "context", how, td_ktensor_read(c, "k.txt", &k));
  CHECK(other == NULL && x == NULL && k == NULL);
}

/* Reading functions take null options as the defaults; the others do not. */
static void bad_options(td_options *o, const char *how) {
  td_options *other = NULL;
  td_context *c = NULL;
  td_tensor *x = NULL;
  td_ktensor *k = NULL;
  int64_t i;
  double d;
  REFUSED(TD_ERR_HANDLE, "options", how, td_options_copy(o, &other));
  REFUSED(TD_ERR_HANDLE, "options", how, td_options_set_i64(o, "max_iters", 3));
  REFUSED(TD_ERR_HANDLE, "options", how, td_options_set_f64(o, "tol", 0.5));
  REFUSED(TD_ERR_HANDLE, "options", how, td_options_set_str(o, "init", "nvecs"));
  if (o != NULL) {
    REFUSED(TD_ERR_HANDLE, "options", how, td_options_get_i64(o, "max_iters", &i));
    REFUSED(TD_ERR_HANDLE, "options", how, td_options_get_f64(o, "tol", &d));
    REFUSED(TD_ERR_HANDLE, "options", how, td_options_get_str(o, "init", NULL, 0, NULL));
    REFUSED(TD_ERR_HANDLE, "options", how, td_context_create("cpu", o, &c));
    REFUSED(TD_ERR_HANDLE, "options", how,
            td_tensor_create(context, 2, dims, 0, TD_I64, NULL, 0, TD_F64, NULL, TD_HOST, o, &x));
    REFUSED(TD_ERR_HANDLE, "options", how,
            td_tensor_create_dense(context, 2, dims, NULL, TD_F64, cells, TD_HOST, o, &x));
    REFUSED(TD_ERR_HANDLE, "options", how, td_cpals(context, tensor, 2, NULL, o, NULL, NULL, &k, NULL));
    REFUSED(TD_ERR_HANDLE, "options", how, td_tensor_read(context, "x.tns", o, &x));
    REFUSED(TD_ERR_HANDLE, "options", how, td_tensor_write(tensor, "never.tns", o));
    REFUSED(TD_ERR_HANDLE, "options", how, td_ktensor_write(ktensor, "never.txt", o));
  }
  CHECK(other == NULL && c == NULL && x == NULL && k == NULL);
}

static void bad_tensor(td_tensor *x, const char *how) {
  td_tensor *other = NULL;
  td_ktensor *k = NULL;
  int32_t order;
  td_type type;
  int64_t i[3];
  double d, out[6];
  REFUSED(TD_ERR_HANDLE, "tensor", how, td_tensor_share(x, &other));
  REFUSED(TD_ERR_HANDLE, "tensor", how, td_tensor_order(x, &order));
  REFUSED(TD_ERR_HANDLE, "tensor", how, td_tensor_dims(x, i));
  REFUSED(TD_ERR_HANDLE, "tensor", how, td_tensor_nnz(x, i));
  REFUSED(TD_ERR_HANDLE, "tensor", how, td_tensor_type(x, &type));
  REFUSED(TD_ERR_HANDLE, "tensor", how, td_tensor_norm(x, &d));
  REFUSED(TD_ERR_HANDLE, "tensor", how, td_tensor_get_i64(x, "sparse", i));
  REFUSED(TD_ERR_HANDLE, "tensor", how, td_tensor_get_f64(x, "norm", &d));
  REFUSED(TD_ERR_HANDLE, "tensor", how, td_tensor_get_str(x, "format", NULL, 0, NULL));
  REFUSED(TD_ERR_HANDLE, "tensor", how, td_tensor_slice_counts(x, 0, i));
  REFUSED(TD_ERR_HANDLE, "tensor", how, td_tensor_get_entries(x, TD_I64, NULL, 0, TD_F64, out));
  REFUSED(TD_ERR_HANDLE, "tensor", how, td_tensor_get_dense(x, NULL, TD_F64, out));
  REFUSED(TD_ERR_HANDLE, "tensor", how, td_tensor_describe(x, NULL, 0, NULL));
  REFUSED(TD_ERR_HANDLE, "tensor", how, td_tensor_set_mode_name(x, 0, "a"));
  REFUSED(TD_ERR_HANDLE, "tensor", how, td_tensor_get_mode_name(x, 0, NULL, 0, NULL));
  REFUSED(TD_ERR_HANDLE, "tensor", how, td_tensor_set_labels(x, 0, NULL, 0));
  REFUSED(TD_ERR_HANDLE, "tensor", how, td_tensor_get_label(x, 0, 0, NULL, 0, NULL));
  REFUSED(TD_ERR_HANDLE, "tensor", how, td_tensor_get_labels(x, 0, NULL, 0, NULL));
  REFUSED(TD_ERR_HANDLE, "tensor", how, td_tensor_write(x, "never.tns", NULL));
  REFUSED(TD_ERR_HANDLE, "tensor", how, td_ktensor_dot_tensor(context, ktensor, x, &d));
  REFUSED(TD_ERR_HANDLE, "tensor", how, td_ktensor_fit(context, ktensor, x, &d, NULL, NULL, NULL));
  REFUSED(TD_ERR_HANDLE, "tensor", how, td_mttkrp(context, x, 0, 2, factors, ld, out, 2, TD_HOST));
  REFUSED(TD_ERR_HANDLE, "tensor", how, td_mttkrp_ktensor(context, x, 0, ktensor, out, 2, TD_HOST));
  REFUSED(TD_ERR_HANDLE, "tensor", how, td_cpals(context, x, 2, NULL, NULL, NULL, NULL, &k, NULL));
  CHECK(other == NULL && k == NULL);
}

static void bad_ktensor(td_ktensor *k, const char *how) {
  td_ktensor *other = NULL;
  int32_t order;
  double d, out[6];
  REFUSED(TD_ERR_HANDLE, "ktensor", how, td_ktensor_copy(k, &other));
  REFUSED(TD_ERR_HANDLE, "ktensor", how, td_ktensor_shape(k, &order, NULL, NULL, NULL));
  REFUSED(TD_ERR_HANDLE, "ktensor", how, td_ktensor_set_factor(k, 0, factor0, 2, TD_HOST));
  REFUSED(TD_ERR_HANDLE, "ktensor", how, td_ktensor_get_factor(k, 0, out, 2, TD_HOST));
  REFUSED(TD_ERR_HANDLE, "ktensor", how, td_ktensor_set_weights(k, factor0));
  REFUSED(TD_ERR_HANDLE, "ktensor", how, td_ktensor_get_weights(k, out));
  REFUSED(TD_ERR_HANDLE, "ktensor", how, td_ktensor_normalize(k));
  REFUSED(TD_ERR_HANDLE, "ktensor", how, td_ktensor_set_mode_name(k, 0, "a"));
  REFUSED(TD_ERR_HANDLE, "ktensor", how, td_ktensor_get_mode_name(k, 0, NULL, 0, NULL));
  REFUSED(TD_ERR_HANDLE, "ktensor", how, td_ktensor_set_labels(k, 0, NULL, 0));
  REFUSED(TD_ERR_HANDLE, "ktensor", how, td_ktensor_get_label(k, 0, 0, NULL, 0, NULL));
  REFUSED(TD_ERR_HANDLE, "ktensor", how, td_ktensor_get_labels(k, 0, NULL, 0, NULL));
  REFUSED(TD_ERR_HANDLE, "ktensor", how, td_ktensor_get_leading(k, 0, 0, 1, NULL, NULL, NULL));
  REFUSED(TD_ERR_HANDLE, "ktensor", how, td_ktensor_arrange(k));
  REFUSED(TD_ERR_HANDLE, "ktensor", how, td_ktensor_fixsigns(k));
  REFUSED(TD_ERR_HANDLE, "ktensor", how, td_ktensor_norm(k, &d));
  REFUSED(TD_ERR_HANDLE, "", how, td_ktensor_dot(k, ktensor, &d));
  REFUSED(TD_ERR_HANDLE, "", how, td_ktensor_dot(ktensor, k, &d));
  REFUSED(TD_ERR_HANDLE, "ktensor", how, td_ktensor_dot_tensor(context, k, tensor, &d));
  REFUSED(TD_ERR_HANDLE, "ktensor", how, td_ktensor_fit(context, k, tensor, &d, NULL, NULL, NULL));
  REFUSED(TD_ERR_HANDLE, "ktensor", how, td_ktensor_values_at(k, 0, TD_I64, NULL, 0, out));
  REFUSED(TD_ERR_HANDLE, "ktensor", how, td_ktensor_full(k, NULL, TD_F64, out));
  REFUSED(TD_ERR_HANDLE, "", how, td_ktensor_score(k, ktensor, 1, &d, NULL));
  REFUSED(TD_ERR_HANDLE, "", how, td_ktensor_score(ktensor, k, 1, &d, NULL));
  REFUSED(TD_ERR_HANDLE, "ktensor", how, td_ktensor_write(k, "never.txt", NULL));
  REFUSED(TD_ERR_HANDLE, "ktensor", how, td_mttkrp_ktensor(context, tensor, 0, k, out, 2, TD_HOST));
  if (k != NULL) /* a null init asks for the start that an option names */
    REFUSED(TD_ERR_HANDLE, "init", how, td_cpals(context, tensor, 2, k, NULL, NULL, NULL, &other, NULL));
  CHECK(other == NULL);
}

static void bad_report(td_report *r, const char *how) {
  td_report *other = NULL;
  int64_t i;
  double d;
  REFUSED(TD_ERR_HANDLE, "report", how, td_report_copy(r, &other));
  REFUSED(TD_ERR_HANDLE, "report", how, td_report_get_i64(r, "iterations", &i));
  REFUSED(TD_ERR_HANDLE, "report", how, td_report_get_f64(r, "fit", &d));
  REFUSED(TD_ERR_HANDLE, "report", how, td_report_get_str(r, "stop_reason", NULL, 0, NULL));
  REFUSED(TD_ERR_HANDLE, "report", how, td_report_get_series(r, "fit", &d, 1, &i));
  CHECK(other == NULL);
}

static void null_pointers(void) {
  double out[6];
  td_tensor *x = NULL;
  td_ktensor *k = NULL;
  const void *const no_second[2] = {factor0, NULL};
  const int64_t no_second_dim[2] = {2, 0};
  REFUSED(TD_ERR_ARGUMENT, "out", "null", td_options_create(NULL));
  REFUSED(TD_ERR_ARGUMENT, "out", "null", td_context_create("cpu", NULL, NULL));
  REFUSED(TD_ERR_ARGUMENT, "null", "", td_options_set_i64(options, NULL, 1));
  REFUSED(TD_ERR_ARGUMENT, "null", "", td_options_set_str(options, "init", NULL));
  REFUSED(TD_ERR_ARGUMENT, "null", "", td_options_get_i64(options, "max_iters", NULL));
  REFUSED(TD_ERR_ARGUMENT, "dims", "null", td_ktensor_create(context, 2, NULL, 1, TD_F64, &k));
  REFUSED(TD_ERR_ARGUMENT, "dims", "null",
          td_tensor_create(context, 2, NULL, 0, TD_I64, NULL, 0, TD_F64, NULL, TD_HOST, NULL, &x));
  REFUSED(TD_ERR_SHAPE, "mode 1", "dim = 0",
          td_tensor_create_dense(context, 2, no_second_dim, NULL, TD_F64, NULL, TD_HOST, NULL, &x));
  REFUSED(TD_ERR_ARGUMENT, "values", "null",
          td_tensor_create_dense(context, 2, dims, NULL, TD_F64, NULL, TD_HOST, NULL, &x));
  REFUSED(TD_ERR_ARGUMENT, "indices", "null",
          td_tensor_create(context, 2, dims, 1, TD_I64, NULL, 0, TD_F64, cells, TD_HOST, NULL, &x));
  REFUSED(TD_ERR_ARGUMENT, "null", "", td_tensor_norm(tensor, NULL));
  REFUSED(TD_ERR_ARGUMENT, "null", "", td_tensor_dims(tensor, NULL));
  REFUSED(TD_ERR_ARGUMENT, "key", "null", td_tensor_get_f64(tensor, NULL, out));
  REFUSED(TD_ERR_ARGUMENT, "null", "", td_tensor_get_dense(tensor, NULL, TD_F64, NULL));
  REFUSED(TD_ERR_ARGUMENT, "null", "", td_ktensor_set_factor(ktensor, 0, NULL, 2, TD_HOST));
  REFUSED(TD_ERR_ARGUMENT, "null", "", td_ktensor_get_factor(ktensor, 0, NULL, 2, TD_HOST));
  REFUSED(TD_ERR_ARGUMENT, "null", "", td_ktensor_set_weights(ktensor, NULL));
  REFUSED(TD_ERR_ARGUMENT, "null", "", td_ktensor_get_weights(ktensor, NULL));
  REFUSED(TD_ERR_ARGUMENT, "null", "", td_ktensor_full(ktensor, NULL, TD_F64, NULL));
  REFUSED(TD_ERR_ARGUMENT, "factors", "null", td_mttkrp(context, tensor, 0, 2, NULL, ld, out, 2, TD_HOST));
  REFUSED(TD_ERR_ARGUMENT, "factors[1]", "null", td_mttkrp(context, tensor, 0, 2, no_second, ld, out, 2, TD_HOST));
  REFUSED(TD_ERR_ARGUMENT, "ld", "null", td_mttkrp(context, tensor, 0, 2, factors, NULL, out, 2, TD_HOST));
  REFUSED(TD_ERR_ARGUMENT, "out", "null", td_mttkrp(context, tensor, 0, 2, factors, ld, NULL, 2, TD_HOST));
  REFUSED(TD_ERR_ARGUMENT, "model", "null", td_cpals(context, tensor, 2, NULL, NULL, NULL, NULL, NULL, NULL));
  REFUSED(TD_ERR_ARGUMENT, "path", "null", td_tensor_read(context, NULL, NULL, &x));
  REFUSED(TD_ERR_ARGUMENT, "path", "null", td_tensor_write(tensor, NULL, NULL));
  REFUSED(TD_ERR_ARGUMENT, "path", "null", td_ktensor_read(context, NULL, &k));
  REFUSED(TD_ERR_ARGUMENT, "path", "null", td_ktensor_write(ktensor, NULL, NULL));
  CHECK(td_has_feature(NULL) == 0);
}

static int32_t end_tensor(const td_report *so_far, void *user) {
  (void)so_far;
  td_tensor_destroy(*(td_tensor **)user); /* later times do nothing */
  return 0;
}

/* An object lives as long as a call works on it: the run goes on, and the model gets the tensor's names. */
static void destroyed_meanwhile(void) {
  td_tensor *x = NULL;
  td_ktensor *k = NULL;
  char name[8] = "";
  DONE(td_tensor_create_dense(context, 2, dims, NULL, TD_F64, cells, TD_HOST, NULL, &x));
  DONE(td_tensor_set_mode_name(x, 1, "user"));
  DONE(td_cpals(context, x, 2, NULL, NULL, end_tensor, &x, &k, NULL));
  DONE(td_ktensor_get_mode_name(k, 1, name, sizeof name, NULL));
  CHECK(strcmp(name, "user") == 0);
  REFUSED(TD_ERR_HANDLE, "tensor", "destroyed", td_tensor_describe(x, NULL, 0, NULL));
  td_ktensor_destroy(k);
}

int main(void) {
  double not_a_handle[64] = {0};
  make(&context, &options, &tensor, &ktensor, &report);
  make(&dead_context, &dead_options, &dead_tensor, &dead_ktensor, &dead_report);
  td_context_destroy(dead_context);
  td_options_destroy(dead_options);
  td_tensor_destroy(dead_tensor);
  td_ktensor_destroy(dead_ktensor);
  td_report_destroy(dead_report);
  td_tensor_destroy(dead_tensor); /* twice is once */

  bad_context(NULL, "null");
  bad_options(NULL, "null");
  bad_tensor(NULL, "null");
  bad_ktensor(NULL, "null");
  bad_report(NULL, "null");

  bad_context(dead_context, "destroyed");
  bad_options(dead_options, "destroyed");
  bad_tensor(dead_tensor, "destroyed");
  bad_ktensor(dead_ktensor, "destroyed");
  bad_report(dead_report, "destroyed");

  bad_context((td_context *)tensor, "td_tensor");
  bad_options((td_options *)report, "td_report");
  bad_tensor((td_tensor *)ktensor, "td_ktensor");
  bad_ktensor((td_ktensor *)context, "td_context");
  bad_report((td_report *)options, "td_options");

  bad_tensor((td_tensor *)not_a_handle, "expected");
  td_tensor_destroy((td_tensor *)not_a_handle);
  td_tensor_destroy((td_tensor *)context); /* wrong kind: left alone */
  CHECK(td_context_describe(context, NULL, 0, NULL) == TD_OK);

  null_pointers();
  destroyed_meanwhile();

  /* Any order: the context first. */
  td_context_destroy(context);
  CHECK(td_ktensor_arrange(ktensor) == TD_OK);
  td_report_destroy(report);
  td_ktensor_destroy(ktensor);
  td_tensor_destroy(tensor);
  td_options_destroy(options);
  td_context_destroy(NULL);
  td_options_destroy(NULL);
  td_tensor_destroy(NULL);
  td_ktensor_destroy(NULL);
  td_report_destroy(NULL);
  return check_result();
}
