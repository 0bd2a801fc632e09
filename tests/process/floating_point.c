/* Callers with a floating-point environment of their own: traps, another rounding mode, subnormal numbers flushed to
 * zero. td computes as without it, and the caller has it back, flags included. */
#define _GNU_SOURCE
#include <fenv.h>
#include <math.h>
#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#include "work.h"

enum { dim = 40, cells = dim * dim * dim };

static double values[cells];

/* The bits of what a call computes from values, with 2 threads: the norm, and the fits of CP-ALS. */
static void compute(double result[3]) {
  const int64_t dims[3] = {dim, dim, dim};
  td_context *context = context_of("cpu", 2);
  td_tensor *x = NULL;
  td_ktensor *model = NULL;
  td_report *report = NULL;
  DONE(td_tensor_create_dense(context, 3, dims, NULL, TD_F64, values, TD_HOST, NULL, &x));
  DONE(td_tensor_norm(x, &result[0]));
  DONE(td_cpals(context, x, 3, NULL, NULL, NULL, NULL, &model, &report));
  DONE(td_report_get_f64(report, "fit", &result[1]));
  DONE(td_ktensor_norm(model, &result[2]));
  td_ktensor_destroy(model);
  td_report_destroy(report);
  td_tensor_destroy(x);
  td_context_destroy(context);
}

static void fill(double scale) {
  unsigned state = 1;
  int i;
  for (i = 0; i < cells; ++i) {
    state = state * 1664525u + 1013904223u;
    values[i] = scale * (1 + (state >> 8) * 0x1p-24);
  }
}

static void same_in(const char *what, const double expected[3]) {
  double came[3];
  compute(came);
  if (memcmp(came, expected, sizeof came) != 0) {
    fprintf(stderr, "%s: norm %.17g, fit %.17g, norm %.17g; expected %.17g, %.17g, %.17g\n", what, came[0], came[1],
            came[2], expected[0], expected[1], expected[2]);
    ++check_failures;
  }
}

int main(void) {
  const int modes[] = {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
  const double scales[] = {1, 1e200, 1e-310};
  double expected[3];
  unsigned i, k;
  for (k = 0; k < 3; ++k) {
    fill(scales[k]);
    fesetenv(FE_DFL_ENV);
    compute(expected);
    CHECK(isfinite(expected[0]) && expected[0] > 0 && expected[1] > 0.5);

    for (i = 0; i < 3; ++i) {
      CHECK(fesetround(modes[i]) == 0);
      same_in("another rounding mode", expected);
      CHECK(fegetround() == modes[i]);
      fesetround(FE_TONEAREST);
    }

    feclearexcept(FE_ALL_EXCEPT);
    feraiseexcept(FE_DIVBYZERO);
    compute(expected);
    CHECK(fetestexcept(FE_ALL_EXCEPT) == FE_DIVBYZERO);
    feclearexcept(FE_ALL_EXCEPT);

    if (feenableexcept(FE_DIVBYZERO | FE_OVERFLOW | FE_INVALID | FE_UNDERFLOW | FE_INEXACT) != -1) {
      same_in("traps", expected);
      CHECK(fegetexcept() == (FE_DIVBYZERO | FE_OVERFLOW | FE_INVALID | FE_UNDERFLOW | FE_INEXACT));
      fedisableexcept(FE_ALL_EXCEPT);
    }
#if defined(__SSE2__)
    _mm_setcsr(_mm_getcsr() | 0x8040); /* flush to zero, subnormal numbers are zero */
    same_in("subnormal numbers flushed to zero", expected);
    CHECK((_mm_getcsr() & 0x8040) == 0x8040);
    _mm_setcsr(_mm_getcsr() & ~0x8040u);
#endif
  }
  return check_result();
}
