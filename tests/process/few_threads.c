/* Threads that cannot be made: td works with those it has, and says so; nothing ends the process. */
#define _DEFAULT_SOURCE
#include <stdio.h>
#include <unistd.h>

#include <sys/resource.h>
#include <sys/wait.h>

#include "work.h"

static int warnings = 0;

static void count_warnings(int32_t level, const char *text, void *user) {
  (void)user;
  if (level == 1 && strstr(text, "threads: 64 were wanted") != NULL)
    ++warnings;
}

static int64_t address_space(void) {
  long pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (file == NULL || fscanf(file, "%ld", &pages) != 1)
    pages = 0;
  if (file != NULL)
    fclose(file);
  return (int64_t)pages * sysconf(_SC_PAGESIZE);
}

static void limit(int what, rlim_t most) {
  struct rlimit r;
  getrlimit(what, &r);
  r.rlim_cur = most;
  CHECK(setrlimit(what, &r) == 0);
}

/* In a child each, since the limits stay. The tensor is made before: what is short here is threads. */
static int short_of_address_space(void) {
  td_context *context = context_of("cpu", 64);
  td_tensor *x = tensor_of_ones(context_of("cpu", 1));
  CHECK(td_context_set_log(context, count_warnings, NULL) == TD_OK);
  if (address_space() == 0)
    return exit_skipped;
  limit(RLIMIT_AS, (rlim_t)address_space() + (rlim_t)(24 << 20));
  CHECK(mttkrp_is_right(context, x));
  CHECK(warnings >= 1);
  CHECK(mttkrp_is_right(context, x));
  return check_result();
}

static int short_of_processes(void) {
  td_context *context;
  td_tensor *x;
  if (getuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
    return exit_skipped;
  context = context_of("cpu", 64);
  x = tensor_of_ones(context_of("cpu", 1));
  CHECK(td_context_set_log(context, count_warnings, NULL) == TD_OK);
  limit(RLIMIT_NPROC, 1);
  CHECK(mttkrp_is_right(context, x));
  CHECK(warnings == 1);
  CHECK(cpals_is_right(context, x));
  /* Workers are not threads that a call can do without: a status. */
  td_context *workers = context_of("cpu:8", 8);
  td_ktensor *model = NULL;
  CHECK(td_cpals(workers, x, 1, NULL, NULL, NULL, NULL, &model, NULL) == TD_ERR_HOST_MEMORY && model == NULL);
  return check_result();
}

static int in_a_child(int (*body)(void), const char *what) {
  int status = -1;
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    _exit(body());
  }
  if (child < 0 || waitpid(child, &status, 0) != child)
    status = -1;
  if (WIFEXITED(status) && WEXITSTATUS(status) == exit_skipped)
    printf("not seen: %s\n", what);
  else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    fprintf(stderr, "%s: status %d\n", what, status);
    return 1;
  }
  return 0;
}

int main(void) {
  if (sanitized) {
    printf("sanitizers need address space and threads of their own\n");
    return exit_skipped;
  }
  const int failed =
      in_a_child(short_of_address_space, "little address space") + in_a_child(short_of_processes, "no more processes");
  return failed == 0 ? 0 : 1;
}
