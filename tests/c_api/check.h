/* Checks for clients in C: each failure is told with its line, and the program's exit status says whether there was
 * one. */
#ifndef TD_TEST_CHECK_H
#define TD_TEST_CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <td/td.h>

enum { exit_skipped = 77 };

static int check_failures = 0;

static inline void check_that(int holds, const char *what, const char *file, int line) {
  if (!holds) {
    fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, what);
    ++check_failures;
  }
}
#define CHECK(condition) check_that((condition) ? 1 : 0, #condition, __FILE__, __LINE__)

/* A call that must succeed: without it the rest makes no sense. */
static inline void check_done(td_status came, const char *call, const char *file, int line) {
  if (came < 0) {
    char why[512];
    td_last_error(why, sizeof why);
    fprintf(stderr, "%s:%d: %s gave %s: %s\n", file, line, call, td_status_name(came), why);
    exit(1);
  }
}
#define DONE(call) check_done((call), #call, __FILE__, __LINE__)

/* A multiplication with a known result, to see that the library still works after a refusal:
 * X = [1 2; 3 4], mode 0, A_1 = (1, 10)^T gives (21, 43)^T. */
static inline int library_works(void) {
  const int64_t dims[2] = {2, 2}, ld[2] = {2, 2};
  const double values[4] = {1, 3, 2, 4}, a[2] = {1, 10};
  const void *factors[2] = {NULL, NULL};
  double out[2] = {0, 0};
  td_context *context = NULL;
  td_tensor *x = NULL;
  int works;
  factors[1] = a;
  works = td_context_create("cpu:2", NULL, &context) == TD_OK &&
          td_tensor_create_dense(context, 2, dims, NULL, TD_F64, values, TD_HOST, NULL, &x) == TD_OK &&
          td_mttkrp(context, x, 0, 1, factors, ld, out, 2, TD_HOST) == TD_OK && out[0] == 21 && out[1] == 43;
  td_tensor_destroy(x);
  td_context_destroy(context);
  return works;
}

/* A call that must be refused with a status and a text that holds both fragments (each may be empty), after which the
 * library works. The text is taken before anything else can change it. */
static inline void check_refused(td_status came, td_status expected, const char *first, const char *second,
                                 const char *call, const char *file, int line) {
  char why[1024];
  td_last_error(why, sizeof why);
  if (came != expected) {
    fprintf(stderr, "%s:%d: %s gave %s, expected %s (text: %s)\n", file, line, call, td_status_name(came),
            td_status_name(expected), why);
    ++check_failures;
  } else if (strstr(why, first) == NULL || strstr(why, second) == NULL || why[0] == '\0') {
    fprintf(stderr, "%s:%d: %s: the text \"%s\" lacks \"%s\" or \"%s\"\n", file, line, call, why, first, second);
    ++check_failures;
  }
  if (!library_works()) {
    fprintf(stderr, "%s:%d: the library does not work after %s\n", file, line, call);
    ++check_failures;
  }
}
#define REFUSED(expected, first, second, call)                                                                         \
  check_refused((call), (expected), (first), (second), #call, __FILE__, __LINE__)

static inline int check_result(void) {
  if (check_failures != 0)
    fprintf(stderr, "%d failed\n", check_failures);
  return check_failures == 0 ? 0 : 1;
}

#endif
