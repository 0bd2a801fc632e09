/* An address space (RLIMIT_AS, ulimit -v) with less left than BLAS maps for itself: a status, where OpenBLAS would try
 * for ever; with more, the same run goes on. */
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

static void run(const char *init, int64_t rank) {
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
  limit.rlim_cur = address_space() + (rlim_t)(64 << 20);
  CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
  came = td_cpals(context, x, rank, NULL, options, NULL, NULL, &model, NULL);
  td_last_error(why, sizeof why);
  limit.rlim_cur = before;
  CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
  CHECK(came == TD_ERR_HOST_MEMORY && strstr(why, "address space") != NULL && model == NULL);
  if (check_failures != 0)
    fprintf(stderr, "start %s, rank %d: %s: %s\n", init, (int)rank, td_status_name(came), why);
  td_options_destroy(options);
  td_tensor_destroy(x);
  td_context_destroy(context);
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
  run("random", 2);
  run("nvecs", 2);
  CHECK(work_is_right("cpu", 2));
  return check_result();
}
