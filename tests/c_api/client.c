/* The first client of td: every function of td.h once, in the order of the header. */
#define _XOPEN_SOURCE 700
#include <math.h>
#include <unistd.h>

#include "check.h"

static int messages = 0;

static void count_message(int32_t level, const char *text, void *user) {
  CHECK(level >= 1 && level <= 3);
  CHECK(text != NULL && text[0] != '\0');
  CHECK(user == &messages);
  ++messages;
}

struct watcher {
  int64_t calls;
  int64_t stop_after;
  double fit;
  td_report *kept; /* of the first call */
};

static int32_t watch(const td_report *so_far, void *user) {
  struct watcher *w = user;
  int64_t iterations = 0, n = 0;
  double fits[100];
  ++w->calls;
  DONE(td_report_get_i64(so_far, "iterations", &iterations));
  CHECK(iterations == w->calls);
  DONE(td_report_get_f64(so_far, "fit", &w->fit));
  DONE(td_report_get_series(so_far, "fit", fits, 100, &n));
  CHECK(n == w->calls && fits[n - 1] == w->fit);
  if (w->kept == NULL)
    DONE(td_report_copy(so_far, &w->kept));
  return w->calls == w->stop_after;
}

static int near(double a, double b) { return fabs(a - b) <= 1e-12 * (1 + fabs(b)); }

static void about_the_library(void) {
  CHECK(td_version() == 10000 * TD_VERSION_MAJOR + 100 * TD_VERSION_MINOR + TD_VERSION_PATCH);
  CHECK(td_abi_version() == TD_ABI_VERSION);
  CHECK(td_has_feature("cpu") == 1 && td_has_feature("reference") == 1 && td_has_feature("teleport") == 0);
  CHECK(strcmp(td_status_name(TD_STOPPED), "TD_STOPPED") == 0);
}

static void about_options(void) {
  td_options *o = NULL, *copy = NULL;
  int64_t i, needed = 0, tabs, n;
  double d;
  char text[512];
  DONE(td_options_create(&o));
  DONE(td_options_set_i64(o, "max_iters", 7));
  DONE(td_options_set_f64(o, "tol", 0.25));
  DONE(td_options_set_str(o, "init", "nvecs"));
  DONE(td_options_get_i64(o, "max_iters", &i));
  DONE(td_options_get_f64(o, "tol", &d));
  DONE(td_options_get_str(o, "init", text, sizeof text, &needed));
  CHECK(i == 7 && d == 0.25 && strcmp(text, "nvecs") == 0 && needed == 6);
  DONE(td_options_get_str(o, "init", text, 4, &needed)); /* cut short, but ended */
  CHECK(strcmp(text, "nve") == 0 && needed == 6);
  DONE(td_options_get_i64(NULL, "max_iters", &i));
  CHECK(i == 50);
  CHECK(td_option_count() > 10);
  for (i = 0; i < td_option_count(); ++i) {
    DONE(td_option_describe(i, text, sizeof text, &needed));
    for (tabs = n = 0; text[n] != '\0'; ++n)
      tabs += text[n] == '\t';
    CHECK(tabs == 7 && needed == n + 1);
  }
  DONE(td_options_copy(o, &copy));
  DONE(td_options_set_i64(o, "max_iters", 8));
  td_options_destroy(o);
  DONE(td_options_get_i64(copy, "max_iters", &i));
  CHECK(i == 7);
  td_options_destroy(copy);
}

static td_tensor *about_sparse_tensors(td_context *context) {
  const int64_t dims[3] = {3, 2, 4};
  const int32_t i[6] = {1, 2, 3, 1, 3, 3}, j[6] = {1, 1, 2, 2, 1, 1}, k[6] = {1, 2, 4, 3, 2, 2};
  const double values[6] = {1, -2, 3, 4, 2, 3}; /* the last two meet */
  const void *indices[3];
  int64_t nnz, out_dims[3], counts[4], value, columns[3][5], needed;
  void *out_indices[3];
  int32_t order, m;
  td_type type;
  double norm, fact, out_values[5], full[24], sum = 0;
  char text[256];
  td_tensor *x = NULL;
  indices[0] = i;
  indices[1] = j;
  indices[2] = k;
  DONE(td_tensor_create(context, 3, dims, 6, TD_I32, indices, 1, TD_F64, values, TD_HOST, NULL, &x));
  DONE(td_tensor_order(x, &order));
  DONE(td_tensor_dims(x, out_dims));
  DONE(td_tensor_nnz(x, &nnz));
  DONE(td_tensor_type(x, &type));
  DONE(td_tensor_norm(x, &norm));
  CHECK(order == 3 && memcmp(dims, out_dims, sizeof dims) == 0 && nnz == 5 && type == TD_F64);
  CHECK(near(norm * norm, 1 + 4 + 9 + 16 + 25));
  DONE(td_tensor_get_i64(x, "duplicates", &value));
  CHECK(value == 1);
  DONE(td_tensor_get_i64(x, "sparse", &value));
  CHECK(value == 1);
  DONE(td_tensor_get_i64(x, "index_bits", &value));
  CHECK(value == 2 + 1 + 2);
  DONE(td_tensor_get_f64(x, "seconds.build", &fact));
  CHECK(fact > 0);
  DONE(td_tensor_get_f64(x, "max", &fact));
  CHECK(fact == 5);
  DONE(td_tensor_get_str(x, "format", text, sizeof text, &needed));
  CHECK(needed > 1);
  DONE(td_tensor_slice_counts(x, 2, counts));
  CHECK(counts[0] == 1 && counts[1] == 2 && counts[2] == 1 && counts[3] == 1);
  for (m = 0; m < 3; ++m)
    out_indices[m] = columns[m];
  DONE(td_tensor_get_entries(x, TD_I64, out_indices, 1, TD_F64, out_values));
  DONE(td_tensor_get_dense(x, NULL, TD_F64, full));
  for (m = 0; m < 5; ++m) {
    CHECK(full[columns[0][m] - 1 + 3 * (columns[1][m] - 1) + 6 * (columns[2][m] - 1)] == out_values[m]);
    sum += out_values[m];
  }
  CHECK(sum == 11);
  DONE(td_tensor_describe(x, text, sizeof text, NULL));
  CHECK(strstr(text, "5") != NULL);
  return x;
}

static void about_ktensors(td_context *context, const td_tensor *x) {
  const int64_t dims[3] = {3, 2, 4};
  const double a[3][8] = {{3, 0, 4, 1, 1, 1}, {0, 2, 1, 1}, {1, 0, 0, 0, 1, 1, 1, 1}};
  const double weights[2] = {1, -0.5};
  const int32_t at_i[1] = {2}, at_j[1] = {1}, at_k[1] = {0};
  const void *at[3];
  int64_t out_dims[3], rank, match[2];
  int32_t order, m;
  td_type type;
  double out[8], full[24], value, dot, norm, fit, explained, relative, residual, score, by_hand = 0;
  td_ktensor *k = NULL, *copy = NULL;
  DONE(td_ktensor_create(context, 3, dims, 2, TD_F64, &k));
  for (m = 0; m < 3; ++m)
    DONE(td_ktensor_set_factor(k, m, a[m], dims[m], TD_HOST));
  DONE(td_ktensor_set_weights(k, weights));
  DONE(td_ktensor_shape(k, &order, out_dims, &rank, &type));
  CHECK(order == 3 && memcmp(dims, out_dims, sizeof dims) == 0 && rank == 2 && type == TD_F64);
  DONE(td_ktensor_copy(k, &copy));
  DONE(td_ktensor_get_factor(copy, 1, out, 2, TD_HOST));
  CHECK(memcmp(out, a[1], 4 * sizeof *out) == 0);
  DONE(td_ktensor_normalize(copy));
  DONE(td_ktensor_get_weights(copy, out));
  /* |(3,0,4)| |(0,2)| |(1,0,0,0)| = 10; -0.5 sqrt(3 * 2 * 4) */
  CHECK(near(out[0], 10) && near(out[1], -0.5 * sqrt(24)));
  DONE(td_ktensor_arrange(copy));
  DONE(td_ktensor_get_weights(copy, out));
  CHECK(near(out[0], 10) && near(out[1], 0.5 * sqrt(24)));
  DONE(td_ktensor_fixsigns(copy));
  at[0] = at_i;
  at[1] = at_j;
  at[2] = at_k;
  DONE(td_ktensor_values_at(copy, 1, TD_I32, at, 0, &value));
  CHECK(near(value, 4 * 2 * 1 - 0.5));
  DONE(td_ktensor_full(k, NULL, TD_F64, full));
  CHECK(near(full[2 + 3 * 1], 7.5));
  for (m = 0; m < 24; ++m)
    by_hand += full[m] * full[m];
  DONE(td_ktensor_norm(k, &norm));
  CHECK(near(norm * norm, by_hand));
  DONE(td_ktensor_dot(k, copy, &dot));
  CHECK(near(dot, by_hand));
  DONE(td_ktensor_score(k, copy, 1, &score, match));
  CHECK(near(score, 1) && match[0] == 0 && match[1] == 1);
  DONE(td_ktensor_dot_tensor(context, k, x, &dot));
  DONE(td_ktensor_fit(context, k, x, &fit, &explained, &relative, &residual));
  CHECK(near(residual * residual, 55 + by_hand - 2 * dot));
  CHECK(near(fit, 1 - relative) && near(explained, 1 - relative * relative) && near(residual, relative * sqrt(55)));
  td_ktensor_destroy(copy);
  td_ktensor_destroy(k);
}

static void about_mttkrp(td_context *context, const td_tensor *x) {
  const int64_t dims[3] = {3, 2, 4}, ld[3] = {3, 2, 4};
  const double a[3] = {1, 1, 1}, b[2] = {1, 10}, c[4] = {1, 2, 3, 4};
  const void *factors[3];
  double out[3], again[3];
  td_ktensor *k = NULL;
  factors[0] = NULL;
  factors[1] = b;
  factors[2] = c;
  DONE(td_mttkrp(context, x, 0, 1, factors, ld, out, 3, TD_HOST));
  /* Row 0: 1 * 1 * 1 + 4 * 10 * 3; row 1: -2 * 1 * 2; row 2: 3 * 10 * 4 + 5 * 1 * 2. */
  CHECK(out[0] == 121 && out[1] == -4 && out[2] == 130);
  DONE(td_ktensor_create(context, 3, dims, 1, TD_F64, &k));
  DONE(td_ktensor_set_factor(k, 0, a, 3, TD_HOST));
  DONE(td_ktensor_set_factor(k, 1, b, 2, TD_HOST));
  DONE(td_ktensor_set_factor(k, 2, c, 4, TD_HOST));
  DONE(td_mttkrp_ktensor(context, x, 0, k, again, 3, TD_HOST));
  CHECK(memcmp(out, again, sizeof out) == 0);
  td_ktensor_destroy(k);
}

static td_ktensor *about_cpals(td_context *context, const td_tensor *x) {
  struct watcher w = {0, 3, 0, NULL};
  td_options *o = NULL;
  td_ktensor *model = NULL, *rest = NULL;
  td_report *report = NULL;
  int64_t i, n;
  double d, fit, series[100];
  char text[256];
  DONE(td_options_create(&o));
  DONE(td_options_set_f64(o, "tol", 0));
  DONE(td_options_set_i64(o, "max_iters", 20));
  CHECK(td_cpals(context, x, 2, NULL, o, watch, &w, &model, &report) == TD_STOPPED);
  CHECK(w.calls == 3);
  DONE(td_report_get_i64(w.kept, "iterations", &i));
  CHECK(i == 1);
  td_report_destroy(w.kept);
  DONE(td_report_get_i64(report, "iterations", &i));
  CHECK(i == 3);
  DONE(td_report_get_i64(report, "converged", &i));
  CHECK(i == 0);
  DONE(td_report_get_i64(report, "rank", &i));
  CHECK(i == 2);
  DONE(td_report_get_str(report, "stop_reason", text, sizeof text, NULL));
  CHECK(strcmp(text, "callback") == 0);
  DONE(td_report_get_f64(report, "fit", &fit));
  CHECK(fit == w.fit);
  DONE(td_report_get_f64(report, "norm", &d));
  CHECK(near(d * d, 55));
  DONE(td_report_get_f64(report, "seconds", &d));
  CHECK(d >= 0);
  DONE(td_report_get_series(report, "fit", series, 2, &n)); /* room for 2 of 3 */
  CHECK(n == 3);
  DONE(td_report_get_series(report, "effective_rank", series, 100, &n));
  CHECK(n == 9 && series[8] >= 1 && series[8] <= 2);
  DONE(td_report_get_series(report, "mttkrp_seconds", series, 100, &n));
  CHECK(n == 9 && series[8] > 0);
  td_report_destroy(report);

  /* Go on from the model: the fit does not fall. */
  w.calls = 0;
  w.stop_after = -1;
  w.kept = NULL;
  CHECK(td_cpals(context, x, 2, model, o, watch, &w, &rest, NULL) == TD_OK);
  CHECK(w.calls == 20 && w.fit >= fit - 1e-12);
  DONE(td_ktensor_fit(context, rest, x, &d, NULL, NULL, NULL));
  CHECK(fabs(d - w.fit) < 1e-7);
  td_report_destroy(w.kept);
  td_options_destroy(o);
  td_ktensor_destroy(rest);
  return model;
}

static void about_files(td_context *context, const td_tensor *x, const td_ktensor *model) {
  char tensor_file[] = "/tmp/td-client-XXXXXX", model_file[] = "/tmp/td-client-XXXXXX", text[256];
  td_options *o = NULL;
  td_tensor *back = NULL;
  td_ktensor *k = NULL;
  double norm, same;
  close(mkstemp(tensor_file));
  close(mkstemp(model_file));
  DONE(td_options_create(&o));
  DONE(td_options_set_str(o, "file_format", "toolbox"));
  DONE(td_tensor_write(x, tensor_file, o));
  messages = 0;
  DONE(td_context_set_log(context, count_message, &messages));
  DONE(td_tensor_read(context, tensor_file, NULL, &back));
  CHECK(messages > 0);
  DONE(td_context_set_log(context, NULL, NULL));
  DONE(td_tensor_get_str(back, "source", text, sizeof text, NULL));
  CHECK(text[0] != '\0');
  DONE(td_tensor_norm(x, &norm));
  DONE(td_tensor_norm(back, &same));
  CHECK(norm == same);
  DONE(td_ktensor_write(model, model_file, NULL));
  DONE(td_ktensor_read(context, model_file, &k));
  DONE(td_ktensor_norm(model, &norm));
  DONE(td_ktensor_norm(k, &same));
  CHECK(norm == same);
  td_ktensor_destroy(k);
  td_tensor_destroy(back);
  td_options_destroy(o);
  unlink(tensor_file);
  unlink(model_file);
}

int main(void) {
  td_context *first = NULL, *context = NULL;
  td_tensor *made, *x = NULL, *dense = NULL;
  td_ktensor *model;
  const int64_t dims[2] = {2, 2};
  const float cells[4] = {3, 0, 0, 4};
  double norm;
  char text[256];
  about_the_library();
  about_options();
  DONE(td_context_create("cpu:2", NULL, &first));
  DONE(td_context_share(first, &context));
  td_context_destroy(first); /* the other handle goes on */
  DONE(td_context_describe(context, text, sizeof text, NULL));
  CHECK(strstr(text, "2") != NULL && strstr(text, "cpu") != NULL);
  REFUSED(TD_ERR_UNSUPPORTED, "stream", "a GPU", td_context_set_stream(context, 1, NULL));
  REFUSED(TD_ERR_ARGUMENT, "slot = 2", "0 .. 1", td_context_set_stream(context, 2, NULL));
  REFUSED(TD_ERR_ARGUMENT, "slot = -1", "0 .. 1", td_context_set_stream(context, -1, NULL));
  made = about_sparse_tensors(context);
  DONE(td_tensor_share(made, &x));
  td_tensor_destroy(made);
  DONE(td_tensor_create_dense(context, 2, dims, NULL, TD_F32, cells, TD_HOST, NULL, &dense));
  DONE(td_tensor_norm(dense, &norm));
  CHECK(norm == 5);
  about_ktensors(context, x);
  about_mttkrp(context, x);
  model = about_cpals(context, x);
  about_files(context, x, model);
  td_ktensor_destroy(model);
  td_tensor_destroy(dense);
  td_tensor_destroy(x);
  td_context_destroy(context);
  return check_result();
}
