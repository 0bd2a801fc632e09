/* An address space (RLIMIT_AS, ulimit -v) with little left: a status and a sentence where it is too little, and a run
 * in 64 MiB, for td maps no more for itself than it needs. */
#define _DEFAULT_SOURCE
#include <unistd.h>

#include <sys/resource.h>

#include "work.h"

static rlim_t address_space(void) {
  long pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (file == NULL || fscanf(file, "%ld", &pages) != 1)
    pages = 0;
  if (file != NULL)
    fclose(file);
  return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

/* 1 if the run was done. */
static int run(const char *init, int64_t rank, long left) {
  td_context *context = context_of("cpu", 1);
  td_tensor *x = tensor_of_ones(context);
  td_options *options = NULL;
  td_ktensor *model = NULL;
  struct rlimit limit;
  rlim_t before;
  char why[512] = "";
  td_status came;
  DONE(td_options_create(&options));
  DONE(td_options_set_str(options, "init", init));
  getrlimit(RLIMIT_AS, &limit);
  before = limit.rlim_cur;
  limit.rlim_cur = address_space() + (rlim_t)left;
  CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
  came = td_cpals(context, x, rank, NULL, options, NULL, NULL, &model, NULL);
  td_last_error(why, sizeof why);
  limit.rlim_cur = before;
  CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
  CHECK(came == TD_OK ? model != NULL : came == TD_ERR_HOST_MEMORY && model == NULL && strstr(why, "memory") != NULL);
  if (check_failures != 0)
    fprintf(stderr, "start %s, rank %d, %ld bytes: %s: %s\n", init, (int)rank, left, td_status_name(came), why);
  td_ktensor_destroy(model);
  td_options_destroy(options);
  td_tensor_destroy(x);
  td_context_destroy(context);
  return came == TD_OK;
}

int main(void) {
  if (sanitized) {
    printf("sanitizers need address space of their own\n");
    return exit_skipped;
  }
  alarm(60);
  if (address_space() == 0) {
    printf("no /proc\n");
    return exit_skipped;
  }
  CHECK(run("random", 2, 64 << 20));
  CHECK(run("nvecs", 2, 64 << 20));
  CHECK(!run("random", 500, 0)); /* factors of 1.2 MB: more than what the heap has left */
  CHECK(work_is_right("cpu", 2));
  return check_result();
}
