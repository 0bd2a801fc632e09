/* The largest sizes that the interface can say: dims, entries, ranks, orders, workers, threads, limits and strides up
 * to 2^63 - 1. A plan of them tells bytes and seconds that are not negative; a call that would need them is refused
 * with a sentence. Under UndefinedBehaviorSanitizer this also shows that no size overflows on the way. */
#include <ctype.h>
#include <math.h>

#include "check.h"

static const int64_t most = INT64_MAX;

static int64_t power(int exponent) { return (int64_t)1 << exponent; }

static td_context *context_of(const char *devices, const char *threads, const char *limit) {
  td_options *options = NULL;
  td_context *context = NULL;
  DONE(td_options_create(&options));
  DONE(td_options_set_str(options, "threads", threads));
  DONE(td_options_set_str(options, "memory_limit", limit));
  DONE(td_context_create(devices, options, &context));
  td_options_destroy(options);
  return context;
}

/* A number below zero, or a word that stands for none. */
static int says_nonsense(const char *text) {
  for (++text; *text != '\0'; ++text)
    if ((text[-1] == ' ' && text[0] == '-' && isdigit((unsigned char)text[1])) || strncmp(text, "nan", 3) == 0 ||
        (strncmp(text, "inf", 3) == 0 && !isalpha((unsigned char)text[3])))
      return 1;
  return 0;
}

static void plan_makes_sense(const td_plan *plan, const char *what) {
  static const char *const bytes[] = {"host_bytes.tensor", "host_bytes.building", "host_bytes.solver",
                                      "host_bytes.peak", "host_bytes.available"};
  static const char *const seconds[] = {"seconds.iteration", "seconds.mttkrp", "seconds.solve"};
  static char text[1 << 18];
  double series[64 * 1024];
  int64_t value = 0, n = 0;
  double number = 0;
  int k, good = 1;
  for (k = 0; k < 5; ++k) {
    DONE(td_plan_get_i64(plan, bytes[k], &value));
    good = good && value >= 0;
  }
  for (k = 0; k < 3; ++k) {
    DONE(td_plan_get_f64(plan, seconds[k], &number));
    good = good && number >= 0 && isfinite(number);
  }
  for (k = 0; k < 2; ++k) {
    DONE(td_plan_get_series(plan, k == 0 ? "load" : "mttkrp_seconds", series, 64 * 1024, &n));
    while (n-- > 0)
      good = good && series[n] >= 0 && isfinite(series[n]);
  }
  DONE(td_plan_describe(plan, text, sizeof text, NULL));
  if (!good || says_nonsense(text)) {
    fprintf(stderr, "a plan of %s makes no sense:\n%s\n", what, text);
    ++check_failures;
  }
}

/* Plans are made or refused as sizes that do not fit. */
static void plan_all(td_context *context, int order, const int64_t *dims, const td_options *options,
                     const char *options_text) {
  const int64_t ranks[] = {1, power(31), power(61), most};
  const int64_t entries[] = {0, power(20), power(40), most};
  char what[512];
  size_t r, n;
  for (r = 0; r < sizeof ranks / sizeof ranks[0]; ++r)
    for (n = 0; n <= sizeof entries / sizeof entries[0]; ++n) {
      const td_type type = (r + n) % 2 == 0 ? TD_F64 : TD_F32;
      const int dense = n == sizeof entries / sizeof entries[0];
      td_plan *plan = NULL;
      const td_status status = dense ? td_plan_create_dense(context, order, dims, type, ranks[r], options, &plan)
                                     : td_plan_create(context, order, dims, entries[n], type, ranks[r], options, &plan);
      snprintf(what, sizeof what, "order %d, dims %lld, %lld, ..., entries %lld, rank %lld, %s", order,
               (long long)dims[0], (long long)dims[1], dense ? -1 : (long long)entries[n], (long long)ranks[r],
               options_text);
      if (status == TD_OK)
        plan_makes_sense(plan, what);
      else if (status != TD_ERR_SHAPE && status != TD_ERR_UNSUPPORTED) {
        fprintf(stderr, "a plan of %s gave %s\n", what, td_status_name(status));
        ++check_failures;
      }
      td_plan_destroy(plan);
    }
}

static void plans(td_context *context, const char *setting) {
  const int64_t dims[][4] = {{1, 1, 1, 1},
                             {3, 5, 7, 2},
                             {1 << 20, 1 << 20, 1 << 20, 1},
                             {0x7fffffff, 0x80000000LL, 3, 5},
                             {(int64_t)1 << 40, 9, (int64_t)1 << 20, 1},
                             {(int64_t)1 << 62, 1, 1, 1},
                             {INT64_MAX, 1, 1, 1},
                             {1, 1, 1, INT64_MAX},
                             {2, 3, (int64_t)1 << 58, 1},
                             {INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX}};
  /* Rates are given, so that nothing is measured. */
  const char *const settings[][4] = {
      {"format", "auto", "groups", "auto"},        {"format", "sorted", "tiles", "1"},
      {"format", "blco", "conflicts", "private"},  {"format", "coo", "empty_rows", "keep"},
      {"deterministic", "1", "accumulate", "f64"}, {"sharding", "entries", "empty_rows", "drop"}};
  char text[256];
  size_t d, s;
  int64_t wide[64];
  int m;
  for (s = 0; s < sizeof settings / sizeof settings[0]; ++s) {
    td_options *options = NULL;
    DONE(td_options_create(&options));
    DONE(td_options_set_str(options, settings[s][0], settings[s][1]));
    DONE(td_options_set_str(options, settings[s][2], settings[s][3]));
    DONE(td_options_set_f64(options, "read_rate", 1e10));
    DONE(td_options_set_f64(options, "operation_rate", 1e11));
    snprintf(text, sizeof text, "%s, %s = %s, %s = %s", setting, settings[s][0], settings[s][1], settings[s][2],
             settings[s][3]);
    for (d = 0; d < sizeof dims / sizeof dims[0]; ++d)
      plan_all(context, 4, dims[d], options, text);
    for (d = 0; d < 3; ++d) {
      for (m = 0; m < 64; ++m)
        wide[m] = d == 0 ? 1 : d == 1 ? 2 : m % 5 == 0 ? power(40) : 1 + m;
      plan_all(context, 64, wide, options, text);
    }
    td_options_destroy(options);
  }
}

/* A plan of as many workers as can be said takes a second, not one for each of them. */
static void many_workers(td_context *context) {
  const int64_t dims[2] = {1000000, 1};
  int64_t loads = 0;
  td_options *options = NULL;
  td_plan *plan = NULL;
  DONE(td_options_create(&options));
  DONE(td_options_set_i64(options, "workers", 65536));
  DONE(td_plan_create(context, 2, dims, 100000000, TD_F64, 16, options, &plan));
  DONE(td_plan_get_series(plan, "load", NULL, 0, &loads));
  CHECK(loads == 2 * 65536);
  td_plan_destroy(plan);
  td_options_destroy(options);
}

/* Strides as far as they go, for arrays of which no element but the first is there. */
static void strides(td_context *context) {
  const int64_t one[2] = {1, 1}, two[2] = {1, 2};
  const int64_t far[2] = {INT64_MAX, INT64_MAX}, back[2] = {INT64_MIN, INT64_MIN};
  const double cell = 3;
  double out = 0, norm = 0;
  td_tensor *x = NULL;
  DONE(td_tensor_create_dense(context, 2, one, far, TD_F64, &cell, TD_HOST, NULL, &x));
  DONE(td_tensor_norm(x, &norm));
  CHECK(norm == 3);
  DONE(td_tensor_get_dense(x, back, TD_F64, &out));
  CHECK(out == 3);
  td_tensor_destroy(x);
  REFUSED(TD_ERR_SHAPE, "strides", "", td_tensor_create_dense(context, 2, two, far, TD_F64, &cell, TD_HOST, NULL, &x));
  CHECK(x == NULL);
}

/* Strides and leading dimensions by which an address would wrap around, of inputs and of outputs. */
static void wrapping(td_context *context) {
  const int64_t dims[3] = {2, 2, 2}, ld[3] = {INT64_MAX, INT64_MAX, INT64_MAX};
  const int64_t far[][3] = {{INT64_MAX, 1, 1}, {(int64_t)1 << 61, 1, 4}, {(int64_t)1 << 60, -((int64_t)1 << 60), 1}};
  const double cells[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  const int64_t coordinate[1] = {0};
  const void *const indices[3] = {coordinate, coordinate, coordinate}, *const factors[3] = {cells, cells, cells};
  double out[8];
  td_tensor *x = NULL, *sparse = NULL, *none = NULL;
  td_ktensor *k = NULL;
  size_t n;
  DONE(td_tensor_create_dense(context, 3, dims, NULL, TD_F64, cells, TD_HOST, NULL, &x));
  DONE(td_tensor_create(context, 3, dims, 1, TD_I64, indices, 0, TD_F64, cells, TD_HOST, NULL, &sparse));
  DONE(td_ktensor_create(context, 3, dims, 2, TD_F64, &k));
  for (n = 0; n < sizeof far / sizeof far[0]; ++n) {
    REFUSED(TD_ERR_SHAPE, "strides[", "2^63 - 1 bytes",
            td_tensor_create_dense(context, 3, dims, far[n], TD_F64, cells, TD_HOST, NULL, &none));
    REFUSED(TD_ERR_SHAPE, "strides[", "2^63 - 1 bytes", td_tensor_get_dense(x, far[n], TD_F64, out));
    REFUSED(TD_ERR_SHAPE, "strides[", "2^63 - 1 bytes", td_tensor_get_dense(sparse, far[n], TD_F64, out));
    REFUSED(TD_ERR_SHAPE, "strides[", "2^63 - 1 bytes", td_ktensor_full(k, far[n], TD_F64, out));
  }
  REFUSED(TD_ERR_SHAPE, "factor 1: ld = 9223372036854775807", "2^63 - 1 bytes",
          td_ktensor_set_factor(k, 1, cells, most, TD_HOST));
  REFUSED(TD_ERR_SHAPE, "factor 1: ld = 9223372036854775807", "2^63 - 1 bytes",
          td_ktensor_get_factor(k, 1, out, most, TD_HOST));
  REFUSED(TD_ERR_SHAPE, "factor 1: ld = 9223372036854775807", "2^63 - 1 bytes",
          td_ktensor_get_local_factor(k, 1, out, most, TD_HOST));
  REFUSED(TD_ERR_SHAPE, "factor 1: ld = 9223372036854775807", "2^63 - 1 bytes",
          td_mttkrp(context, x, 0, 2, factors, ld, out, 2, TD_HOST));
  REFUSED(TD_ERR_SHAPE, "out: ld = 9223372036854775807", "2^63 - 1 bytes",
          td_mttkrp_ktensor(context, x, 0, k, out, most, TD_HOST));
  CHECK(none == NULL);
  td_ktensor_destroy(k);
  td_tensor_destroy(sparse);
  td_tensor_destroy(x);
}

/* More entries than there is memory for: arrays that cannot be as long are not read. */
static void entries(td_context *context) {
  static const char *const formats[] = {"auto", "coo", "blco", "sorted"};
  const int64_t dims[2] = {2, 2};
  const int32_t index[4] = {0, 1, 0, 1};
  const float values[4] = {1, 2, 3, 4};
  const void *const indices[2] = {index, index};
  td_options *options = NULL;
  td_tensor *x = NULL;
  int format, exponent;
  DONE(td_options_create(&options));
  for (format = 0; format < 4; ++format) {
    DONE(td_options_set_str(options, "format", formats[format]));
    for (exponent = 48; exponent < 64; ++exponent)
      REFUSED(TD_ERR_HOST_MEMORY, "entries", "memory",
              td_tensor_create(context, 2, dims, exponent < 63 ? power(exponent) : most, TD_I32, indices, 0, TD_F32,
                               values, TD_HOST, options, &x));
  }
  CHECK(x == NULL);
  td_options_destroy(options);
}

/* Ktensors and products that no machine has room for. */
static void work(td_context *context) {
  const int64_t dims[3] = {(int64_t)1 << 40, (int64_t)1 << 31, INT64_MAX}, few[3] = {2, 3, 2};
  const int64_t ranks[] = {(int64_t)1 << 58, (int64_t)1 << 61, (int64_t)1 << 62, INT64_MAX};
  const int64_t ld[3] = {INT64_MAX, INT64_MAX, INT64_MAX};
  const double cells[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  const void *factors[3];
  double out = 0;
  td_tensor *x = NULL, *y = NULL;
  td_ktensor *k = NULL;
  size_t r;
  factors[0] = factors[1] = factors[2] = cells;
  DONE(td_tensor_create_dense(context, 3, few, NULL, TD_F64, cells, TD_HOST, NULL, &x));
  DONE(td_tensor_create(context, 3, dims, 0, TD_I64, NULL, 0, TD_F64, NULL, TD_HOST, NULL, &y));
  for (r = 0; r < sizeof ranks / sizeof ranks[0]; ++r) {
    REFUSED(TD_ERR_HOST_MEMORY, "memory", "", td_ktensor_create(context, 3, few, ranks[r], TD_F64, &k));
    REFUSED(TD_ERR_HOST_MEMORY, "memory", "", td_ktensor_create(context, 3, dims, ranks[r], TD_F32, &k));
    REFUSED(TD_ERR_HOST_MEMORY, "memory", "", td_mttkrp(context, x, 1, ranks[r], factors, few, &out, 3, TD_HOST));
    REFUSED(TD_ERR_HOST_MEMORY, "memory", "", td_mttkrp(context, y, 1, ranks[r], factors, ld, &out, most, TD_HOST));
    REFUSED(TD_ERR_HOST_MEMORY, "memory", "", td_cpals(context, x, ranks[r], NULL, NULL, NULL, NULL, &k, NULL));
    REFUSED(TD_ERR_HOST_MEMORY, "memory", "", td_cpals(context, y, ranks[r], NULL, NULL, NULL, NULL, &k, NULL));
  }
  REFUSED(TD_ERR_HOST_MEMORY, "memory", "", td_cpals(context, y, 1, NULL, NULL, NULL, NULL, &k, NULL));
  CHECK(k == NULL);
  td_tensor_destroy(x);
  td_tensor_destroy(y);
}

int main(void) {
  static const char *const settings[][3] = {
      {"cpu", "1", "0"}, {"cpu:3", "65536", "1"}, {"cpu:17", "65536", "9007199254740992"}};
  size_t s;
  for (s = 0; s < sizeof settings / sizeof settings[0]; ++s) {
    td_context *context = context_of(settings[s][0], settings[s][1], settings[s][2]);
    plans(context, settings[s][0]);
    td_context_destroy(context);
  }
  {
    td_context *context = context_of("cpu:2", "2", "0");
    many_workers(context);
    strides(context);
    wrapping(context);
    entries(context);
    work(context);
    td_context_destroy(context);
  }
  return check_result();
}
