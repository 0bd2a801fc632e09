/* Plans: every way to make one, what they say by name, options that force a choice, what does not fit, and refusals. */
#include "check.h"

static const int64_t dims[3] = {300, 200, 100};

static int64_t number(const td_plan *plan, const char *key) {
  int64_t value = -1;
  DONE(td_plan_get_i64(plan, key, &value));
  return value;
}

static const char *text(const td_plan *plan, const char *key) {
  static char buf[1024];
  int64_t needed = 0;
  DONE(td_plan_get_str(plan, key, buf, sizeof buf, &needed));
  CHECK(needed == (int64_t)strlen(buf) + 1);
  return buf;
}

static td_plan *shape_plan(td_context *context, const char *option, const char *value) {
  td_options *options = NULL;
  td_plan *plan = NULL;
  DONE(td_options_create(&options));
  if (option != NULL)
    DONE(td_options_set_str(options, option, value));
  DONE(td_plan_create(context, 3, dims, 100000, TD_F64, 16, options, &plan));
  td_options_destroy(options);
  return plan;
}

static void check_shape(td_context *context) {
  td_plan *plan = shape_plan(context, NULL, NULL), *same = NULL;
  double values[8] = {0}, seconds = 0, rate = 0;
  int64_t n = 0;
  char described[8192];
  CHECK(number(plan, "order") == 3 && number(plan, "nnz") == 100000 && number(plan, "rank") == 16);
  CHECK(number(plan, "sparse") == 1 && number(plan, "workers") == 2 && number(plan, "fits") == 1);
  CHECK(strcmp(text(plan, "format"), "sorted") == 0);
  CHECK(strstr(text(plan, "format.why"), "at most a quarter") != NULL);
  CHECK(strstr(text(plan, "assumptions"), "evenly") != NULL);
  CHECK(strlen(text(plan, "kernel.0")) > 0 && strlen(text(plan, "conflicts.2")) > 0);
  CHECK(number(plan, "host_bytes.peak") >= number(plan, "host_bytes.tensor") + number(plan, "host_bytes.solver"));
  CHECK(number(plan, "host_bytes.tensor") >= 100000 * 12 * 3);
  CHECK(number(plan, "device_bytes.peak") == 0);

  DONE(td_plan_get_series(plan, "load", values, 8, &n)); /* 3 modes, 2 workers */
  CHECK(n == 6 && values[0] + values[1] == 100000 && values[4] + values[5] == 100000);
  DONE(td_plan_get_series(plan, "dims", values, 2, &n));
  CHECK(n == 3 && values[0] == 300 && values[1] == 200);
  DONE(td_plan_get_series(plan, "mttkrp_seconds", NULL, 0, &n));
  CHECK(n == 3);
  DONE(td_plan_get_f64(plan, "seconds.iteration", &seconds));
  DONE(td_plan_get_f64(plan, "rate.read", &rate));
  CHECK(seconds > 0 && seconds < 60 && rate > 1e8 && rate < 1e13);
  DONE(td_plan_describe(plan, described, sizeof described, &n));
  CHECK(strstr(described, "format      sorted: ") != NULL && strstr(described, "mode 2") != NULL);

  DONE(td_plan_share(plan, &same));
  td_plan_destroy(plan);
  CHECK(number(same, "rank") == 16);
  REFUSED(TD_ERR_OPTION_UNKNOWN, "no result 'rnk'", "did you mean 'rank'", td_plan_get_i64(same, "rnk", &n));
  REFUSED(TD_ERR_OPTION_UNKNOWN, "no result 'kernel.3'", "kernel.0 .. kernel.2",
          td_plan_get_str(same, "kernel.3", described, 9, &n));
  REFUSED(TD_ERR_OPTION_UNKNOWN, "no result 'weight'", "", td_plan_get_series(same, "weight", NULL, 0, &n));
  REFUSED(TD_ERR_ARGUMENT, "cap = 3", "", td_plan_get_series(same, "dims", NULL, 3, &n));
  td_plan_destroy(same);
  REFUSED(TD_ERR_HANDLE, "destroyed", "td_plan", td_plan_get_i64(same, "rank", &n));
  td_plan_destroy(NULL);
}

static void check_forced(td_context *context) {
  td_plan *plan = shape_plan(context, "format", "blco");
  CHECK(strcmp(text(plan, "format"), "blco") == 0);
  CHECK(strcmp(text(plan, "format.why"), "asked for by option 'format'") == 0);
  td_plan_destroy(plan);
  plan = shape_plan(context, "groups", "0|1,2");
  CHECK(strcmp(text(plan, "groups"), "0|1,2") == 0);
  CHECK(strcmp(text(plan, "groups.why"), "asked for by option 'groups'") == 0);
  CHECK(strstr(text(plan, "kernel.1"), "partial product of modes 1,2") != NULL);
  td_plan_destroy(plan);
  plan = shape_plan(context, "empty_rows", "keep");
  CHECK(strcmp(text(plan, "rows.why"), "asked for by option 'empty_rows'") == 0);
  td_plan_destroy(plan);
  plan = shape_plan(context, "sharding", "entries");
  CHECK(strcmp(text(plan, "sharding.why"), "asked for by option 'sharding'") == 0);
  td_plan_destroy(plan);
  plan = shape_plan(context, "tiles", "none");
  CHECK(strcmp(text(plan, "tiles"), "none") == 0);
  CHECK(strcmp(text(plan, "tiles.why"), "asked for by option 'tiles'") == 0);
  CHECK(strstr(text(plan, "kernel.0"), "row after row") != NULL);
  td_plan_destroy(plan);
  plan = shape_plan(context, "tiles", "64"); /* of 200 and 100 rows 32 each: 7 times 4 tiles */
  CHECK(strncmp(text(plan, "tiles"), "28|", 3) == 0);
  CHECK(strcmp(text(plan, "tiles.why"), "asked for by option 'tiles'") == 0);
  CHECK(strstr(text(plan, "kernel.0"), "28 tiles") != NULL);
  td_plan_destroy(plan);
  {
    static const char *const policies[3][2] = {{"private", "rows of each thread's own"},
                                               {"atomic", "atomic additions"},
                                               {"owner", "each thread owns rows and looks at all entries"}};
    td_context *threads = NULL;
    td_options *options = NULL;
    int k;
    DONE(td_options_create(&options));
    DONE(td_options_set_i64(options, "threads", 4));
    DONE(td_context_create("cpu", options, &threads));
    DONE(td_options_set_str(options, "format", "blco"));
    for (k = 0; k < 3; ++k) {
      DONE(td_options_set_str(options, "conflicts", policies[k][0]));
      DONE(td_plan_create(threads, 3, dims, 100000, TD_F64, 16, options, &plan));
      CHECK(strcmp(text(plan, "conflicts"), policies[k][0]) == 0);
      CHECK(strcmp(text(plan, "conflicts.why"), "asked for by option 'conflicts'") == 0);
      CHECK(strstr(text(plan, "conflicts.1"), policies[k][1]) != NULL);
      td_plan_destroy(plan);
    }
    DONE(td_options_set_i64(options, "deterministic", 1));
    DONE(td_options_set_str(options, "conflicts", "atomic"));
    DONE(td_plan_create(threads, 3, dims, 100000, TD_F64, 16, options, &plan));
    CHECK(strcmp(text(plan, "conflicts"), "owner") == 0);
    CHECK(strstr(text(plan, "conflicts.why"), "option 'deterministic'") != NULL);
    CHECK(strstr(text(plan, "conflicts.1"), "each thread owns rows") != NULL);
    td_plan_destroy(plan);
    td_options_destroy(options);
    td_context_destroy(threads);
  }
  plan = shape_plan(context, "read_rate", "1e9");
  {
    double rate = 0;
    DONE(td_plan_get_f64(plan, "rate.read", &rate));
    CHECK(rate == 1e9);
  }
  td_plan_destroy(plan);
}

/* A plan of what does not fit can be made, and says so; making the tensor is refused. */
static void check_narrow(void) {
  static int32_t index[3][1000];
  static double values[1000];
  const void *indices[3] = {index[0], index[1], index[2]};
  td_options *options = NULL;
  td_context *narrow = NULL;
  td_plan *plan = NULL;
  td_tensor *x = NULL;
  int i;
  for (i = 0; i < 1000; ++i) {
    index[0][i] = i % 300;
    index[1][i] = i % 200;
    index[2][i] = i / 10;
    values[i] = 1;
  }
  DONE(td_options_create(&options));
  DONE(td_options_set_i64(options, "memory_limit", 30000));
  DONE(td_context_create("cpu", options, &narrow));
  DONE(td_plan_create(narrow, 3, dims, 1000, TD_F64, 4, NULL, &plan));
  CHECK(number(plan, "fits") == 0 && number(plan, "host_bytes.available") == 30000);
  CHECK(strcmp(text(plan, "format"), "blco") == 0);
  CHECK(number(plan, "host_bytes.tensor") + number(plan, "host_bytes.building") > 30000);
  td_plan_destroy(plan);
  REFUSED(TD_ERR_HOST_MEMORY, "needs 32256 bytes", "",
          td_tensor_create(narrow, 3, dims, 1000, TD_I32, indices, 0, TD_F64, values, TD_HOST, NULL, &x));
  td_context_destroy(narrow);

  /* Sizes that fit nowhere do not overflow. */
  {
    const int64_t huge[4] = {INT64_C(1) << 40, INT64_C(1) << 40, INT64_C(1) << 40, INT64_C(1) << 40};
    td_context *context = NULL;
    DONE(td_context_create("cpu", NULL, &context));
    DONE(td_plan_create(context, 4, huge, INT64_C(1) << 60, TD_F64, INT64_C(1) << 40, NULL, &plan));
    CHECK(number(plan, "fits") == 0 && number(plan, "host_bytes.solver") == INT64_MAX);
    CHECK(strcmp(text(plan, "format"), "coo") == 0);
    td_plan_destroy(plan);
    td_context_destroy(context);
  }
  td_options_destroy(options);
}

static void check_tensor(td_context *context) {
  static double values[20 * 30 * 40];
  const int64_t shape[3] = {20, 30, 40};
  td_tensor *x = NULL;
  td_plan *plan = NULL, *of_tensor = NULL;
  int64_t bytes = 0;
  DONE(td_tensor_create_dense(context, 3, shape, NULL, TD_F64, values, TD_HOST, NULL, &x));
  DONE(td_tensor_get_i64(x, "bytes", &bytes));
  DONE(td_plan_create_dense(context, 3, shape, TD_F64, 5, NULL, &plan));
  DONE(td_plan_create_for_tensor(context, x, 5, NULL, &of_tensor));
  CHECK(number(plan, "host_bytes.tensor") == bytes && number(of_tensor, "host_bytes.tensor") == bytes);
  CHECK(number(plan, "sparse") == 0 && number(plan, "nnz") == 24000);
  CHECK(strcmp(text(plan, "format"), "dense") == 0);
  td_plan_destroy(plan);
  td_plan_destroy(of_tensor);
  td_tensor_destroy(x);
}

/* An option that means nothing for a format, or nothing at all: no plan is made with it, and no tensor. */
static void refuses(td_context *context, td_status status, const char *option, const char *value, const char *format,
                    const char *why) {
  static const double elements[2 * 3 * 4] = {1};
  static const int32_t index[3] = {0, 0, 0};
  const int64_t small[3] = {2, 3, 4}, long_dims[3] = {30000, 20000, 10000};
  const void *indices[3] = {index, index, index};
  const int dense = strcmp(format, "dense") == 0;
  td_options *options = NULL;
  td_plan *plan = NULL;
  td_tensor *x = NULL;
  DONE(td_options_create(&options));
  DONE(td_options_set_str(options, option, value));
  if (dense) {
    REFUSED(status, option, why, td_plan_create_dense(context, 3, small, TD_F64, 2, options, &plan));
    REFUSED(status, option, why,
            td_tensor_create_dense(context, 3, small, NULL, TD_F64, elements, TD_HOST, options, &x));
  } else {
    DONE(td_options_set_str(options, "format", format));
    REFUSED(status, option, why, td_plan_create(context, 3, long_dims, 1, TD_F64, 2, options, &plan));
    REFUSED(status, option, why,
            td_tensor_create(context, 3, long_dims, 1, TD_I32, indices, 0, TD_F64, elements, TD_HOST, options, &x));
  }
  td_options_destroy(options);
}

static void check_refusals(td_context *context) {
  const int64_t bad[3] = {3, 0, 2};
  td_plan *plan = NULL;
  td_options *options = NULL;
  REFUSED(TD_ERR_SHAPE, "rank = 0", "expected rank >= 1", td_plan_create(context, 3, dims, 5, TD_F64, 0, NULL, &plan));
  REFUSED(TD_ERR_SHAPE, "nnz = -1", "", td_plan_create(context, 3, dims, -1, TD_F64, 2, NULL, &plan));
  REFUSED(TD_ERR_SHAPE, "mode 1: dim = 0", "", td_plan_create(context, 3, bad, 5, TD_F64, 2, NULL, &plan));
  REFUSED(TD_ERR_SHAPE, "mode 1: dim = 0", "", td_plan_create_dense(context, 3, bad, TD_F64, 2, NULL, &plan));
  REFUSED(TD_ERR_SHAPE, "order = 1", "", td_plan_create(context, 1, dims, 5, TD_F64, 2, NULL, &plan));
  REFUSED(TD_ERR_TYPE, "", "", td_plan_create(context, 3, dims, 5, TD_I32, 2, NULL, &plan));
  REFUSED(TD_ERR_ARGUMENT, "dims: null pointer", "", td_plan_create(context, 3, NULL, 5, TD_F64, 2, NULL, &plan));
  REFUSED(TD_ERR_ARGUMENT, "out: null pointer", "", td_plan_create(context, 3, dims, 5, TD_F64, 2, NULL, NULL));
  REFUSED(TD_ERR_IO, "no_such_file", "", td_plan_read(context, "no_such_file", 2, NULL, &plan));
  REFUSED(TD_ERR_HANDLE, "tensor: null handle", "", td_plan_create_for_tensor(context, NULL, 2, NULL, &plan));
  DONE(td_options_create(&options));
  DONE(td_options_set_str(options, "groups", "0,1|2"));
  DONE(td_options_set_str(options, "format", "blco"));
  REFUSED(TD_ERR_UNSUPPORTED, "option 'groups'", "format blco",
          td_plan_create(context, 3, dims, 5, TD_F64, 2, options, &plan));
  CHECK(plan == NULL);
  td_options_destroy(options);
  refuses(context, TD_ERR_OPTION_RANGE, "tiles", "many", "auto", "option 'tiles' = \"many\": expected auto, none or");
  refuses(context, TD_ERR_OPTION_RANGE, "tiles", "0", "auto", "a number of rows, 1 or more");
  refuses(context, TD_ERR_UNSUPPORTED, "tiles", "1", "sorted", "places for segments of rows");
  refuses(context, TD_ERR_UNSUPPORTED, "tiles", "64", "coo", "expected auto or none for format coo");
  refuses(context, TD_ERR_UNSUPPORTED, "conflicts", "private", "sorted", "expected auto or owner");
  refuses(context, TD_ERR_UNSUPPORTED, "conflicts", "atomic", "auto", "for format sorted");
  refuses(context, TD_ERR_UNSUPPORTED, "conflicts", "owner", "dense", "for format dense");
}

/* A plan for more workers than there are says what one of so many says. */
static void check_more_workers(void) {
  td_options *options = NULL;
  td_context *four = NULL, *one = NULL;
  td_plan *there = NULL, *counted = NULL;
  double load[2][12] = {{0}}, same = 0, imbalance = 0;
  const char *bytes[] = {"workers",         "threads", "host_bytes.tensor", "host_bytes.building", "host_bytes.solver",
                         "host_bytes.peak", "order"};
  DONE(td_options_create(&options));
  DONE(td_options_set_i64(options, "threads", 4));
  DONE(td_context_create("cpu:4", options, &four));
  DONE(td_options_set_i64(options, "threads", 1));
  DONE(td_context_create("cpu", options, &one));
  there = shape_plan(four, NULL, NULL);
  counted = shape_plan(one, "workers", "4");
  for (size_t k = 0; k < sizeof bytes / sizeof bytes[0]; ++k)
    CHECK(number(there, bytes[k]) == number(counted, bytes[k]));
  DONE(td_plan_get_series(there, "load", load[0], 12, NULL));
  DONE(td_plan_get_series(counted, "load", load[1], 12, NULL));
  for (int k = 0; k < 12; ++k)
    CHECK(load[0][k] > 0 && load[0][k] == load[1][k]);
  DONE(td_plan_get_series(there, "imbalance", &same, 1, NULL));
  DONE(td_plan_get_series(counted, "imbalance", &imbalance, 1, NULL));
  CHECK(same == imbalance);
  DONE(td_plan_get_series(there, "imbalance_unsplit", &same, 1, NULL)); /* its rows are even: none is split */
  CHECK(same == imbalance);
  CHECK(strstr(text(counted, "devices"), "planned for 4 workers, by option 'workers'") != NULL);
  td_plan_destroy(counted);
  counted = shape_plan(four, "workers", "1");
  CHECK(number(counted, "workers") == 1 && strcmp(text(counted, "sharding"), "none") == 0);
  td_plan_destroy(counted);
  td_plan_destroy(there);
  td_context_destroy(four);
  td_context_destroy(one);
  td_options_destroy(options);
}

int main(void) {
  td_context *context = NULL;
  td_options *options = NULL;
  DONE(td_options_create(&options));
  DONE(td_options_set_i64(options, "threads", 2));
  DONE(td_context_create("cpu:2", options, &context));
  td_options_destroy(options);
  check_shape(context);
  check_forced(context);
  check_narrow();
  check_more_workers();
  check_tensor(context);
  check_refusals(context);
  td_context_destroy(context);
  return check_result();
}
