/* A process without a free descriptor cannot read what memory is left to it: limits that td has seen count on. */
#define _DEFAULT_SOURCE
#include <fcntl.h>
#include <unistd.h>

#include <sys/resource.h>

#include "work.h"

static int64_t available(td_context *context) {
  const int64_t dims[3] = {100, 100, 100};
  td_plan *plan = NULL;
  int64_t bytes = 0;
  DONE(td_plan_create_dense(context, 3, dims, TD_F64, 4, NULL, &plan));
  DONE(td_plan_get_i64(plan, "host_bytes.available", &bytes));
  td_plan_destroy(plan);
  return bytes;
}

int main(void) {
  if (sanitized) {
    printf("sanitizers need address space of their own\n");
    return exit_skipped;
  }
  enum { most = 64, address_space = 1 << 30 };
  td_context *context = context_of("cpu", 1);
  struct rlimit files, addresses;
  int opened[most], count = 0, last;
  int64_t seen, unseen;
  getrlimit(RLIMIT_AS, &addresses);
  addresses.rlim_cur = address_space;
  CHECK(setrlimit(RLIMIT_AS, &addresses) == 0);
  seen = available(context);
  CHECK(seen > 0 && seen < address_space);

  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = most;
  CHECK(setrlimit(RLIMIT_NOFILE, &files) == 0);
  while (count < most && (last = open("/dev/null", O_RDONLY)) >= 0)
    opened[count++] = last;
  unseen = available(context);
  close(opened[--count]); /* one is not enough, either: lists of groups are read while groups are */
  CHECK(available(context) <= seen);
  while (count > 0)
    close(opened[--count]);
  if (unseen > seen)
    fprintf(stderr, "available: %lld bytes, and %lld without a descriptor\n", (long long)seen, (long long)unseen);
  CHECK(unseen > 0 && unseen <= seen);
  CHECK(available(context) > 0);
  td_context_destroy(context);
  return check_result();
}
