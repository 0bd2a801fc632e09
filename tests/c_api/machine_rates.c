/* A measurement of the machine's rates that fails for want of memory is made again by the next plan; it takes no more
 * threads than there are processors, however many a context has. */
#define _XOPEN_SOURCE 700
#include <sys/resource.h>
#include <unistd.h>

#include "check.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { sanitized = 1 };
#else
enum { sanitized = 0 };
#endif

/* The rate that a plan of a small tensor is made with: 0 where it is not known. */
static double read_rate(td_context *context) {
  const int64_t dims[3] = {30, 40, 50};
  td_plan *plan = NULL;
  double rate = -1;
  DONE(td_plan_create(context, 3, dims, 1000, TD_F64, 4, NULL, &plan));
  DONE(td_plan_get_f64(plan, "rate.read", &rate));
  td_plan_destroy(plan);
  return rate;
}

int main(void) {
  struct rlimit whole, small;
  td_context *context = NULL;
  long pages = 0;
  FILE *statm = fopen("/proc/self/statm", "r");
  if (sanitized || statm == NULL) {
    printf("skipped: sanitizers need the address space, or /proc/self/statm says nothing of it\n");
    return exit_skipped;
  }
  DONE(td_context_create("cpu", NULL, &context));
  CHECK(library_works()); /* threads are there before the address space is limited */
  CHECK(fscanf(statm, "%ld", &pages) == 1);
  fclose(statm);
  CHECK(getrlimit(RLIMIT_AS, &whole) == 0);
  small = whole;
  small.rlim_cur = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + ((rlim_t)64 << 20); /* 128 MiB are measured with */
  CHECK(setrlimit(RLIMIT_AS, &small) == 0);
  {
    const int64_t dims[3] = {30, 40, 50};
    td_plan *plan = NULL;
    td_plan_create(context, 3, dims, 1000, TD_F64, 4, NULL, &plan); /* may fail: what counts comes after it */
    td_plan_destroy(plan);
  }
  CHECK(setrlimit(RLIMIT_AS, &whole) == 0);
  CHECK(read_rate(context) > 1e6);
  td_context_destroy(context);
  {
    td_options *options = NULL;
    DONE(td_options_create(&options));
    DONE(td_options_set_i64(options, "threads", 65536));
    DONE(td_context_create("cpu", options, &context));
    CHECK(read_rate(context) > 1e6);
    td_context_destroy(context);
    td_options_destroy(options);
  }
  return check_result();
}
