/* A reader beside a writer of the same file: whatever others do to it meanwhile, td answers with a status. Before it
 * read files itself instead of mapping them, a file that was shortened ended the process by a signal, and one that grew
 * between two passes was written beyond the end of the arrays that the first pass had measured. */
#define _XOPEN_SOURCE 700
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

enum { rounds = 40 };

static td_context *context;
static char folder[] = "/dev/shm/td-c-XXXXXX";

static const char *at(const char *name) {
  static char paths[4][256];
  static int turn = 0;
  turn = (turn + 1) % 4;
  snprintf(paths[turn], sizeof paths[turn], "%s/%s", folder, name);
  return paths[turn];
}

static td_tensor *some_tensor(int64_t nnz) {
  const int64_t dims[2] = {1000, 1000};
  int64_t *i = malloc((size_t)nnz * sizeof *i), *j = malloc((size_t)nnz * sizeof *j), k;
  double *v = malloc((size_t)nnz * sizeof *v);
  const void *indices[2];
  td_tensor *x = NULL;
  for (k = 0; k < nnz; ++k) {
    i[k] = k % 1000;
    j[k] = k / 1000 % 1000;
    v[k] = 1.0 / (double)(k + 1);
  }
  indices[0] = i;
  indices[1] = j;
  DONE(td_tensor_create(context, 2, dims, nnz, TD_I64, indices, 0, TD_F64, v, TD_HOST, NULL, &x));
  free(i);
  free(j);
  free(v);
  return x;
}

typedef struct {
  char *bytes;
  size_t size;
} Content;

static Content content_of(const char *path) {
  Content c = {NULL, 0};
  FILE *f = fopen(path, "rb");
  long size;
  CHECK(f != NULL && fseek(f, 0, SEEK_END) == 0);
  size = ftell(f);
  rewind(f);
  c.bytes = malloc((size_t)size);
  c.size = fread(c.bytes, 1, (size_t)size, f);
  CHECK(c.size == (size_t)size);
  fclose(f);
  return c;
}

static void put(int fd, const char *bytes, size_t size, off_t offset) {
  while (size > 0) {
    const ssize_t n = pwrite(fd, bytes, size, offset);
    if (n <= 0)
      _exit(1);
    bytes += n;
    offset += n;
    size -= (size_t)n;
  }
}

/* What the writer does until it is killed: shortens the file, writes it anew, lets it grow by a copy of itself, and
 * overwrites the middle by another part of it. */
static void disturb(const char *path, Content c) {
  const int fd = open(path, O_WRONLY);
  const struct timespec pause = {0, 100000};
  int turn;
  if (fd < 0)
    _exit(1);
  for (turn = 0;; ++turn) {
    if (turn % 4 == 0 && ftruncate(fd, (off_t)(c.size / (size_t)(2 + turn % 7))) != 0)
      _exit(1);
    if (turn % 4 == 1)
      put(fd, c.bytes, c.size, 0);
    if (turn % 4 == 2)
      put(fd, c.bytes, c.size / 2, (off_t)c.size);
    if (turn % 4 == 3) {
      put(fd, c.bytes + c.size / 3, c.size / 3, (off_t)(c.size / 2));
      if (turn % 8 == 7 && ftruncate(fd, (off_t)c.size) != 0)
        _exit(1);
    }
    nanosleep(&pause, NULL);
  }
}

typedef td_status (*read_fn)(const char *path);

static td_status read_tensor(const char *path) {
  td_tensor *x = NULL;
  const td_status s = td_tensor_read(context, path, NULL, &x);
  CHECK((s < 0) == (x == NULL));
  td_tensor_destroy(x);
  return s;
}

static td_status read_ktensor(const char *path) {
  td_ktensor *k = NULL;
  const td_status s = td_ktensor_read(context, path, &k);
  CHECK((s < 0) == (k == NULL));
  td_ktensor_destroy(k);
  return s;
}

static void beside_a_writer(const char *name, read_fn read) {
  const char *path = at(name);
  const Content c = content_of(path);
  int round, refused = 0, changed = 0, fd;
  pid_t writer;
  DONE(read(path));
  writer = fork();
  if (writer == 0)
    disturb(path, c);
  CHECK(writer > 0);
  /* On a busy machine the writer may not have begun when as many rounds are over. */
  for (round = 0; round < rounds || (refused == 0 && round < 1000 * rounds); ++round) {
    char why[1024] = "";
    const td_status s = read(path);
    if (s < 0) {
      td_last_error(why, sizeof why);
      CHECK(s == TD_ERR_IO || s == TD_ERR_INDEX || s == TD_ERR_SHAPE);
      CHECK(strstr(why, name) != NULL);
      ++refused;
      changed += strstr(why, "the file changed while it was read") != NULL;
    }
  }
  CHECK(waitpid(writer, NULL, WNOHANG) == 0); /* it was there all the time */
  kill(writer, SIGKILL);
  waitpid(writer, NULL, 0);
  CHECK(refused > 0);
  printf("%s: %d of %d refused, %d of them as changed\n", name, refused, round, changed);
  /* As it was it is read again. */
  fd = open(path, O_WRONLY | O_TRUNC);
  put(fd, c.bytes, c.size, 0);
  close(fd);
  DONE(read(path));
  free(c.bytes);
}

int main(void) {
  const int64_t dims[2] = {300, 400};
  static float values[300 * 400];
  td_tensor *x, *dense = NULL;
  td_ktensor *k = NULL;
  td_options *o = NULL;
  char command[300];
  size_t n;
  if (access("/dev/shm", W_OK) != 0)
    strcpy(folder, "/tmp/td-c-XXXXXX");
  if (mkdtemp(folder) == NULL) {
    printf("cannot make %s\n", folder);
    return 1;
  }
  DONE(td_context_create("cpu:2", NULL, &context));
  for (n = 0; n < sizeof values / sizeof values[0]; ++n)
    values[n] = (float)(n % 100);
  x = some_tensor(100000);
  DONE(td_tensor_create_dense(context, 2, dims, NULL, TD_F32, values, TD_HOST, NULL, &dense));
  DONE(td_options_create(&o));
  DONE(td_options_set_i64(o, "max_iters", 1));
  DONE(td_cpals(context, x, 20, NULL, o, NULL, NULL, &k, NULL));
  DONE(td_tensor_write(x, at("x.tns"), NULL));
  DONE(td_tensor_write(x, at("x.tns.gz"), NULL));
  DONE(td_tensor_write(x, at("x.tdb"), NULL));
  DONE(td_tensor_write(dense, at("dense.txt"), NULL));
  DONE(td_tensor_write(dense, at("dense.npy"), NULL));
  DONE(td_ktensor_write(k, at("k.txt"), NULL));
  DONE(td_ktensor_write(k, at("k.tdb"), NULL));
  beside_a_writer("x.tns", read_tensor);
  beside_a_writer("x.tns.gz", read_tensor);
  beside_a_writer("x.tdb", read_tensor);
  beside_a_writer("dense.txt", read_tensor);
  beside_a_writer("dense.npy", read_tensor);
  beside_a_writer("k.txt", read_ktensor);
  beside_a_writer("k.tdb", read_ktensor);
  snprintf(command, sizeof command, "rm -r %s", folder);
  CHECK(system(command) == 0);
  td_options_destroy(o);
  td_ktensor_destroy(k);
  td_tensor_destroy(dense);
  td_tensor_destroy(x);
  td_context_destroy(context);
  return check_result();
}
