/* Option "memory_limit" of a context: tensors, ktensors, runs, products, exports and files that need more are refused
 * with the numbers, and the same work goes on in a context without it. */
#define _XOPEN_SOURCE 700
#include <unistd.h>

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

/* 200 x 150 x 100 with every fourth cell of its first 20,000, in format sorted. */
static td_tensor *sparse_in(td_context *context, td_options *options) {
  enum { count = 5000 };
  static int32_t index[3][count];
  static double values[count];
  static const void *const columns[3] = {index[0], index[1], index[2]};
  const int64_t dims[3] = {200, 150, 100};
  td_tensor *x = NULL;
  int k;
  for (k = 0; k < count; ++k) {
    index[0][k] = 4 * k % 200;
    index[1][k] = 4 * k / 200 % 100;
    index[2][k] = k % 97;
    values[k] = 1;
  }
  DONE(td_options_set_str(options, "format", "sorted"));
  DONE(td_tensor_create(context, 3, dims, count, TD_I32, columns, 0, TD_F64, values, TD_HOST, options, &x));
  return x;
}

static void ktensors(td_context *wide) {
  const int64_t dims[2] = {1000, 1000}, few[2] = {2, 2};
  td_context *narrow = context_with("100000");
  td_ktensor *k = NULL, *copy = NULL;
  double number = 0;
  REFUSED(TD_ERR_HOST_MEMORY, "a ktensor of rank 10 needs 160080 bytes", "available are 100000 bytes of option",
          td_ktensor_create(narrow, 2, dims, 10, TD_F64, &k));
  CHECK(k == NULL);
  DONE(td_ktensor_create(narrow, 2, dims, 5, TD_F64, &k)); /* 80,040 bytes: there is no room for another */
  REFUSED(TD_ERR_HOST_MEMORY, "a ktensor of rank 5 needs 80040 bytes", "available are 19960 bytes",
          td_ktensor_copy(k, &copy));
  CHECK(copy == NULL);
  td_ktensor_destroy(k);

  /* 120 components take 4,800 bytes and a match of each with each 115,200. Norms need no such matrix. */
  DONE(td_ktensor_create(narrow, 2, few, 120, TD_F64, &k));
  REFUSED(TD_ERR_HOST_MEMORY, "the score of ktensors of rank 120 and 120 needs 115200 bytes", "option 'memory_limit'",
          td_ktensor_score(k, k, 1, &number, NULL));
  DONE(td_ktensor_norm(k, &number));
  DONE(td_ktensor_copy(k, &copy));
  td_ktensor_destroy(copy);
  td_ktensor_destroy(k);
  td_context_destroy(narrow);
  DONE(td_ktensor_create(wide, 2, few, 120, TD_F64, &k));
  DONE(td_ktensor_score(k, k, 1, &number, NULL));
  CHECK(number == 1);
  td_ktensor_destroy(k);
}

static void products_and_exports(void) {
  td_context *wide = context_with("0"), *narrow = NULL;
  td_options *options = NULL;
  td_tensor *x = NULL;
  td_ktensor *k = NULL;
  td_plan *plan = NULL;
  static double out[200 * 300], values[5000];
  const int64_t dims[3] = {200, 150, 100}, ld[3] = {200, 150, 100};
  static double a[200 * 300];
  static const void *const factors[3] = {a, a, a};
  int64_t stored = 0, building = 0;
  DONE(td_options_create(&options));
  DONE(td_options_set_str(options, "format", "sorted"));
  DONE(td_plan_create(wide, 3, dims, 5000, TD_F64, 1, options, &plan));
  DONE(td_plan_get_i64(plan, "host_bytes.tensor", &stored));
  DONE(td_plan_get_i64(plan, "host_bytes.building", &building));
  td_plan_destroy(plan);
  DONE(td_options_set_i64(options, "memory_limit", stored + building));
  DONE(td_context_create("cpu:2", options, &narrow));
  x = sparse_in(narrow, options);

  /* Room that building needed is left: rank 300 takes 450 rows of 2,400 bytes three times and more, rank 2 no more than
     building did. */
  REFUSED(TD_ERR_HOST_MEMORY, "MTTKRP of rank 300 in mode 0 needs", "the factors at work",
          td_mttkrp(narrow, x, 0, 300, factors, ld, out, 200, TD_HOST));
  DONE(td_mttkrp(narrow, x, 0, 1, factors, ld, out, 200, TD_HOST));
  DONE(td_mttkrp(wide, x, 0, 300, factors, ld, out, 200, TD_HOST));
  DONE(td_ktensor_create(wide, 3, dims, 300, TD_F64, &k));
  REFUSED(TD_ERR_HOST_MEMORY, "MTTKRP of rank 300 in mode 1 needs", "the factors at work",
          td_mttkrp_ktensor(narrow, x, 1, k, out, 150, TD_HOST));
  DONE(td_mttkrp_ktensor(wide, x, 1, k, out, 150, TD_HOST));
  REFUSED(TD_ERR_HOST_MEMORY, "comparing a model with a tensor needs", "copies of the model",
          td_ktensor_fit(narrow, k, x, out, NULL, NULL, NULL));
  DONE(td_ktensor_fit(wide, k, x, out, NULL, NULL, NULL));
  td_ktensor_destroy(k);

  /* Its coordinates are decoded and sorted, which takes more than making it did. */
  REFUSED(TD_ERR_HOST_MEMORY, "decoding a tensor of format sorted needs", "option 'memory_limit'",
          td_tensor_get_entries(x, TD_I64, NULL, 0, TD_F64, values));
  td_tensor_destroy(x);
  td_context_destroy(narrow);
  x = sparse_in(wide, options);
  DONE(td_tensor_get_entries(x, TD_I64, NULL, 0, TD_F64, values));
  td_tensor_destroy(x);
  td_context_destroy(wide);
  td_options_destroy(options);
}

/* A file is refused where what it inflates to, or what is read from it, is too much. */
static void files(td_context *wide) {
  static char folder[] = "/tmp/td-limit-XXXXXX";
  static const char *const names[] = {"x.tns", "x.tns.gz", "x.tdb", "k.txt", "k.txt.gz", "k.tdb"};
  static const char *const parts[] = {
      "reading a tensor needs 160000 bytes",    "what it inflates to", "reading a tensor needs 160000 bytes",
      "a ktensor of rank 20 needs 72160 bytes", "what it inflates to", "a ktensor of rank 20 needs 72160 bytes"};
  char path[64];
  const int64_t dims[3] = {200, 150, 100};
  td_context *narrow = context_with("60000");
  td_options *options = NULL;
  td_tensor *x = NULL, *back = NULL;
  td_ktensor *k = NULL, *k_back = NULL;
  int n;
  if (mkdtemp(folder) == NULL) {
    printf("cannot make a folder in /tmp\n");
    exit(1);
  }
  DONE(td_options_create(&options));
  x = sparse_in(wide, options);
  DONE(td_ktensor_create(wide, 3, dims, 20, TD_F64, &k));
  for (n = 0; n < 6; ++n) {
    snprintf(path, sizeof path, "%s/%s", folder, names[n]);
    if (n < 3) {
      DONE(td_tensor_write(x, path, NULL));
      REFUSED(TD_ERR_HOST_MEMORY, parts[n], "60000 bytes of option 'memory_limit'",
              td_tensor_read(narrow, path, NULL, &back));
      DONE(td_tensor_read(wide, path, NULL, &back));
      td_tensor_destroy(back);
    } else {
      DONE(td_ktensor_write(k, path, NULL));
      REFUSED(TD_ERR_HOST_MEMORY, parts[n], "bytes of option 'memory_limit'", td_ktensor_read(narrow, path, &k_back));
      DONE(td_ktensor_read(wide, path, &k_back));
      td_ktensor_destroy(k_back);
    }
    unlink(path);
  }
  rmdir(folder);
  td_options_destroy(options);
  td_tensor_destroy(x);
  td_ktensor_destroy(k);
  td_context_destroy(narrow);
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
  ktensors(wide);
  products_and_exports();
  files(wide);
  td_context_destroy(wide);
  return check_result();
}
