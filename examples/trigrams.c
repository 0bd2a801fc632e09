/* What letters do in words: trigrams COUNTS.tns RANK MODEL
 *
 * COUNTS.tns says how often each group of three letters occurs; the letters are a to z and, as the 27th, the boundary
 * of a word. The program fits RANK components to the square roots of the counts and shows, for each component, which
 * letters lead it in first, second and third place. The model goes to the file MODEL, as NumPy arrays into the folder
 * MODEL.npy, and as a page to look at into MODEL.html. scripts/demo makes the counts and runs this. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <td/td.h>

enum { letters = 27, order = 3 };
static const char alphabet[] = "abcdefghijklmnopqrstuvwxyz_";

/* Columns have length 1: if 25 letters shared one evenly, each would be 0.2. */
static const double leading = 0.2;

/* Everything that has to be ended, in one place. */
typedef struct {
  td_context *context;
  td_options *options;
  td_tensor *counts, *roots;
  td_ktensor *model;
  td_report *report;
  int64_t *index[order];
  double *value;
} Work;

static void end_work(Work *w) {
  td_report_destroy(w->report);
  td_ktensor_destroy(w->model);
  td_tensor_destroy(w->roots);
  td_tensor_destroy(w->counts);
  td_options_destroy(w->options);
  td_context_destroy(w->context);
  for (int m = 0; m < order; ++m)
    free(w->index[m]);
  free(w->value);
}

/* Counts vary from 1 to thousands, and a large one by about its square root; square roots vary alike everywhere, so
 * that least squares listens to rare trigrams too (Bartlett 1936). */
static int take_roots(Work *w) {
  int64_t dims[order], nnz = 0;
  int32_t modes = 0;
  if (td_tensor_order(w->counts, &modes) < 0 || td_tensor_nnz(w->counts, &nnz) < 0)
    return 0;
  if (modes != order || td_tensor_dims(w->counts, dims) < 0 || dims[0] != letters || dims[1] != letters ||
      dims[2] != letters) {
    fprintf(stderr, "trigrams: expected a tensor of 27 x 27 x 27 letters\n");
    return 0;
  }
  w->value = malloc((size_t)nnz * sizeof *w->value);
  for (int m = 0; m < order; ++m)
    w->index[m] = malloc((size_t)nnz * sizeof *w->index[m]);
  if (!w->value || !w->index[0] || !w->index[1] || !w->index[2])
    return 0;
  void *const out[order] = {w->index[0], w->index[1], w->index[2]};
  if (td_tensor_get_entries(w->counts, TD_I64, out, 0, TD_F64, w->value) < 0)
    return 0;
  for (int64_t k = 0; k < nnz; ++k)
    w->value[k] = sqrt(w->value[k]);
  const void *const in[order] = {w->index[0], w->index[1], w->index[2]};
  return td_tensor_create(w->context, order, dims, nnz, TD_I64, in, 0, TD_F64, w->value, TD_HOST, NULL, &w->roots) >= 0;
}

/* Modes and their indices get names, which go with the tensor into the model and the page. */
static int name_letters(Work *w) {
  static const char *const places[order] = {"first letter", "second letter", "third letter"};
  char names[2 * letters]; /* "a", "b", ..., each with its NUL */
  for (int i = 0; i < letters; ++i) {
    names[2 * i] = alphabet[i];
    names[2 * i + 1] = '\0';
  }
  for (int m = 0; m < order; ++m)
    if (td_tensor_set_mode_name(w->roots, m, places[m]) < 0 ||
        td_tensor_set_labels(w->roots, m, names, sizeof names) < 0)
      return 0;
  return 1;
}

static int32_t show(const td_report *so_far, void *unused) {
  int64_t iteration = 0;
  double fit = 0, change = 0;
  (void)unused;
  td_report_get_i64(so_far, "iterations", &iteration);
  td_report_get_f64(so_far, "fit", &fit);
  td_report_get_f64(so_far, "fit_change", &change);
  if (iteration == 1 || iteration % 10 == 0) {
    printf("iteration %4lld   fit %.6f   change %.1e\n", (long long)iteration, fit, change);
    fflush(stdout);
  }
  return 0;
}

static int fit(Work *w, int64_t rank) {
  return td_options_create(&w->options) >= 0 && td_options_set_str(w->options, "init", "nvecs") >= 0 &&
         td_options_set_f64(w->options, "tol", 1e-6) >= 0 && td_options_set_i64(w->options, "max_iters", 500) >= 0 &&
         td_cpals(w->context, w->roots, rank, NULL, w->options, show, NULL, &w->model, &w->report) >= 0;
}

static int write_model(const Work *w, const char *path) {
  char folder[4096], page[4096];
  const int length = snprintf(folder, sizeof folder, "%s.npy", path);
  if (length <= 0 || (size_t)length >= sizeof folder || snprintf(page, sizeof page, "%s.html", path) <= 0)
    return 0;
  return td_ktensor_write(w->model, path, NULL) >= 0 && td_options_set_str(w->options, "file_format", "npy") >= 0 &&
         td_ktensor_write(w->model, folder, w->options) >= 0 &&
         td_options_set_str(w->options, "report_title", "What letters do in English words") >= 0 &&
         td_report_write(w->context, w->report, w->roots, w->model, w->options, page) >= 0 &&
         printf("model written to %s and %s, and to look at to %s\n", path, folder, page) > 0;
}

/* The letters whose entries of the column, times sign, are at least `leading`, largest first. */
static void leaders(const double *column, double sign, char *text) {
  int used[letters] = {0};
  for (;;) {
    int best = -1;
    for (int i = 0; i < letters; ++i)
      if (!used[i] && sign * column[i] >= leading && (best < 0 || sign * column[i] > sign * column[best]))
        best = i;
    if (best < 0)
      break;
    used[best] = 1;
    *text++ = alphabet[best];
    *text++ = ' ';
  }
  *text = '\0';
}

static int show_components(const Work *w, int64_t rank) {
  double *weights = malloc((size_t)rank * sizeof *weights);
  double *factor[order] = {NULL, NULL, NULL};
  int ok = weights != NULL && td_ktensor_get_weights(w->model, weights) >= 0;
  for (int m = 0; m < order && ok; ++m) {
    factor[m] = malloc((size_t)(letters * rank) * sizeof *factor[m]);
    ok = factor[m] != NULL && td_ktensor_get_factor(w->model, m, factor[m], letters, TD_HOST) >= 0;
  }
  if (ok)
    printf("\n      weight   %-24s%-24s%s\n", "first letter", "second letter", "third letter");
  for (int64_t r = 0; r < rank && ok; ++r) {
    char text[order][2 * letters + 1], against[order][2 * letters + 1];
    int any_against = 0;
    for (int m = 0; m < order; ++m) {
      leaders(factor[m] + r * letters, 1, text[m]);
      leaders(factor[m] + r * letters, -1, against[m]);
      any_against = any_against || against[m][0] != '\0';
    }
    printf("%3lld  %8.1f   %-24s%-24s%s\n", (long long)r + 1, weights[r], text[0], text[1], text[2]);
    if (any_against)
      printf("%14s %-24s%-24s%s\n", "against", against[0], against[1], against[2]);
  }
  for (int m = 0; m < order; ++m)
    free(factor[m]);
  free(weights);
  return ok;
}

static int run(Work *w, const char *counts, int64_t rank, const char *path) {
  char line[512];
  double fit_now = 0, explained = 0, seconds = 0;
  int64_t iterations = 0;
  if (td_context_create("auto", NULL, &w->context) < 0 || td_tensor_read(w->context, counts, NULL, &w->counts) < 0 ||
      !take_roots(w) || !name_letters(w))
    return 0;
  td_tensor_describe(w->roots, line, sizeof line, NULL);
  printf("tensor  %s\n", line);
  td_context_describe(w->context, line, sizeof line, NULL);
  printf("on      %s\n\n", line);
  if (!fit(w, rank))
    return 0;
  td_report_get_i64(w->report, "iterations", &iterations);
  td_report_get_f64(w->report, "fit", &fit_now);
  td_report_get_f64(w->report, "explained", &explained);
  td_report_get_f64(w->report, "seconds", &seconds);
  printf("\nfit %.6f: the model explains %.1f %% of the tensor after %lld iterations in %.2f s\n", fit_now,
         100 * explained, (long long)iterations, seconds);
  return show_components(w, rank) && printf("\n") > 0 && write_model(w, path);
}

int main(int argc, char **argv) {
  const int64_t rank = argc == 4 ? atoll(argv[2]) : 0;
  if (rank < 1) {
    fprintf(stderr, "usage: trigrams COUNTS.tns RANK MODEL\n");
    return 2;
  }
  Work w = {NULL, NULL, NULL, NULL, NULL, NULL, {NULL, NULL, NULL}, NULL};
  const int ok = run(&w, argv[1], rank, argv[3]);
  if (!ok) {
    char why[512];
    if (td_last_error(why, sizeof why) > 1)
      fprintf(stderr, "trigrams: %s\n", why);
  }
  end_work(&w);
  return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
