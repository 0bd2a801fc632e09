/* Files that are missing, broken, cut off, ambiguous, or do not fit on the disk. */
#define _XOPEN_SOURCE 700
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

static td_context *context;
static char folder[] = "/dev/shm/td-c-XXXXXX"; /* in memory: td waits for each file to reach its disk */

/* The path of a file in the test's folder; good until the next call but three. */
static const char *at(const char *name) {
  static char paths[4][256];
  static int turn = 0;
  turn = (turn + 1) % 4;
  snprintf(paths[turn], sizeof paths[turn], "%s/%s", folder, name);
  return paths[turn];
}

static const char *file_with(const char *name, const char *text) {
  const char *path = at(name);
  FILE *f = fopen(path, "wb");
  if (f == NULL || fwrite(text, 1, strlen(text), f) != strlen(text) || fclose(f) != 0) {
    printf("cannot write %s\n", path);
    exit(1);
  }
  return path;
}

static double norm_read; /* of what was read last */

static td_status read_tensor(const char *path) {
  td_tensor *x = NULL;
  const td_status s = td_tensor_read(context, path, NULL, &x);
  CHECK((s < 0) == (x == NULL));
  if (s >= 0)
    DONE(td_tensor_norm(x, &norm_read));
  td_tensor_destroy(x);
  return s;
}

static td_status read_ktensor(const char *path) {
  td_ktensor *k = NULL;
  const td_status s = td_ktensor_read(context, path, &k);
  CHECK((s < 0) == (k == NULL));
  if (s >= 0)
    DONE(td_ktensor_norm(k, &norm_read));
  td_ktensor_destroy(k);
  return s;
}

static long size_of_file(const char *path) {
  struct stat s;
  return stat(path, &s) == 0 ? (long)s.st_size : -1;
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

/* The reason is at a sentence's end, also of one that there is no room for. */
static void long_names(void) {
  static const char *const parts[] = {"/.", "/\x1b", "/\xC3\xA9"};
  char path[2048], why[2048];
  size_t p, used;
  for (p = 0; p < sizeof parts / sizeof parts[0]; ++p) {
    used = (size_t)snprintf(path, sizeof path, "%s", folder);
    while (used < 1500)
      used += (size_t)snprintf(path + used, sizeof path - used, "%s", parts[p]);
    snprintf(path + used, sizeof path - used, "/missing.tns");
    REFUSED(TD_ERR_IO, folder, "...", read_tensor(path));
    REFUSED(TD_ERR_IO, "missing.tns", "No such file", read_tensor(path));
    CHECK(td_last_error(why, sizeof why) <= 1024 && strstr(why, "\\xc3") == NULL && strstr(why, "\\xa9") == NULL);
  }
}

static void no_such_file(void) {
  REFUSED(TD_ERR_IO, "missing.tns", "No such file", read_tensor(at("missing.tns")));
  REFUSED(TD_ERR_IO, "missing.txt", "No such file", read_ktensor(at("missing.txt")));
  REFUSED(TD_ERR_IO, folder, "directory", read_tensor(folder));
  REFUSED(TD_ERR_IO, folder, "", read_ktensor(folder));
  REFUSED(TD_ERR_IO, "empty.tns", "", read_tensor(file_with("empty.tns", "")));
  REFUSED(TD_ERR_IO, "empty.txt", "", read_ktensor(file_with("empty.txt", "")));
}

static void broken_text(void) {
  td_options *o = NULL;
  td_tensor *x = NULL;
  DONE(read_tensor(file_with("good.tns", "1 1 1 0.5\n2 3 1 2\n")));
  REFUSED(TD_ERR_IO, "line 2", "", read_tensor(file_with("ragged.tns", "1 1 1 0.5\n2 3 2\n1 2 3 4\n")));
  REFUSED(TD_ERR_IO, "line 3", "", read_tensor(file_with("long.tns", "1 1 1 0.5\n2 3 1 2\n1 2 3 4 5\n")));
  REFUSED(TD_ERR_IO, "line 3", "", read_tensor(file_with("word.tns", "# a comment\n1 1 1 0.5\n2 x 1 2\n")));
  REFUSED(TD_ERR_IO, "line 2", "nan", read_tensor(file_with("nan.tns", "1 1 1 0.5\n2 1 1 nan\n")));
  REFUSED(TD_ERR_INDEX, "line 6", "", read_tensor(file_with("high.txt", "sptensor\n2\n3 3\n2\n1 1 5\n4 1 5\n")));
  REFUSED(TD_ERR_IO, "3", "2", read_tensor(file_with("few.txt", "sptensor\n2\n3 3\n3\n1 1 5\n3 1 5\n")));
  /* Neither an index 0 nor an index equal to its dim: base 0 and base 1 are both possible. */
  REFUSED(TD_ERR_IO, "index_base", "", read_tensor(file_with("either.txt", "sptensor\n2\n3 3\n2\n1 1 5\n2 1 5\n")));
  DONE(td_options_create(&o));
  DONE(td_options_set_i64(o, "index_base", 1));
  DONE(td_tensor_read(context, at("either.txt"), o, &x));
  td_tensor_destroy(x);
  td_options_destroy(o);
  REFUSED(TD_ERR_IO, "cut.txt", "",
          read_ktensor(file_with("cut.txt", "ktensor\n2\n2 2\n1\n1.0\nmatrix\n2\n2 1\n1.0\n")));
  REFUSED(TD_ERR_IO, "not.txt", "", read_ktensor(file_with("not.txt", "sptensor\n2\n2 2\n0\n")));
}

/* Every length shorter than the whole must be found out, and so must a changed byte (the format has checksums) unless
 * it is one of those between sections, which carry nothing. */
static void broken_binary(const char *name, td_status (*read_it)(const char *)) {
  char path[256], cut[256], *bytes;
  long size, n, harmless = 0;
  double norm;
  FILE *f;
  snprintf(path, sizeof path, "%s", at(name));
  snprintf(cut, sizeof cut, "%s", at("cut.tdb"));
  size = size_of_file(path);
  CHECK(size > 0);
  DONE(read_it(path));
  norm = norm_read;
  bytes = malloc((size_t)size);
  f = fopen(path, "rb");
  CHECK(f != NULL && fread(bytes, 1, (size_t)size, f) == (size_t)size);
  fclose(f);
  for (n = 0; n < size; ++n) {
    f = fopen(cut, "wb");
    CHECK(f != NULL && fwrite(bytes, 1, (size_t)n, f) == (size_t)n && fclose(f) == 0);
    CHECK(read_it(cut) == TD_ERR_IO);
  }
  for (n = 0; n < size; ++n) {
    td_status s;
    bytes[n] = (char)(bytes[n] ^ 0x10);
    f = fopen(cut, "wb");
    CHECK(f != NULL && fwrite(bytes, 1, (size_t)size, f) == (size_t)size && fclose(f) == 0);
    s = read_it(cut);
    if (s == TD_OK && norm_read == norm) {
      ++harmless;
    } else if (s != TD_ERR_IO) {
      printf("%s: byte %ld of %ld changed, and reading gave %s\n", name, n, size, td_status_name(s));
      ++check_failures;
    }
    bytes[n] = (char)(bytes[n] ^ 0x10);
  }
  CHECK(harmless < size * 3 / 4); /* sections of these little files fill a quarter at least */
  REFUSED(TD_ERR_IO, "cut.tdb", "", read_it(cut));
  free(bytes);
  unlink(cut);
}

static void cannot_write(td_tensor *x, const td_ktensor *k) {
  td_options *o = NULL;
  REFUSED(TD_ERR_IO, "nowhere", "No such file", td_tensor_write(x, at("nowhere/x.tns"), NULL));
  REFUSED(TD_ERR_IO, "nowhere", "No such file", td_ktensor_write(k, at("nowhere/k.txt"), NULL));
  CHECK(mkdir(at("taken.tns"), 0777) == 0);
  REFUSED(TD_ERR_IO, "taken.tns", "", td_tensor_write(x, at("taken.tns"), NULL));
  REFUSED(TD_ERR_UNSUPPORTED, "npy", "sparse", td_tensor_write(x, at("x.npy"), NULL));
  REFUSED(TD_ERR_UNSUPPORTED, "", "", td_tensor_write(x, at("x.unheard_of"), NULL));
  CHECK(size_of_file(at("x.npy")) == -1);
  DONE(td_options_create(&o));
  DONE(td_options_set_str(o, "file_format", "splatt"));
  REFUSED(TD_ERR_UNSUPPORTED, "splatt", "", td_tensor_write(x, at("x.tns"), o));
  DONE(td_options_set_str(o, "file_format", "frostt"));
  REFUSED(TD_ERR_UNSUPPORTED, "frostt", "", td_ktensor_write(k, at("k.txt"), o));
  REFUSED(TD_ERR_UNSUPPORTED, "k.tns.gz", ".tdb", td_ktensor_write(k, at("k.tns.gz"), NULL));
  REFUSED(TD_ERR_UNSUPPORTED, "k.npy", ".tdb", td_ktensor_write(k, at("k.npy"), NULL));
  td_options_destroy(o);
}

/* A limit on the size of files is what a full disk looks like to write(): the file that was there must stay whole, and
 * nothing half-written may stay behind. */
static void disk_full(td_tensor *x, const td_ktensor *k) {
  static const char *const tensor_files[] = {"old.tns", "old.txt", "old.tdb", "old.tns.gz"};
  struct rlimit whole, small;
  size_t n;
  long before;
  td_tensor *little = some_tensor(3);
  td_ktensor *model = NULL;
  td_report *report = NULL;
  td_options *o = NULL;
  char why[512];
  CHECK(getrlimit(RLIMIT_FSIZE, &whole) == 0);
  signal(SIGXFSZ, SIG_IGN); /* else the limit kills the program instead of failing the write */
  for (n = 0; n < sizeof tensor_files / sizeof tensor_files[0]; ++n) {
    const char *path = at(tensor_files[n]);
    DONE(td_tensor_write(little, path, NULL));
    before = size_of_file(path);
    small = whole;
    small.rlim_cur = 4096;
    CHECK(setrlimit(RLIMIT_FSIZE, &small) == 0);
    REFUSED(TD_ERR_IO, tensor_files[n], "File too large", td_tensor_write(x, at(tensor_files[n]), NULL));
    CHECK(setrlimit(RLIMIT_FSIZE, &whole) == 0);
    CHECK(size_of_file(at(tensor_files[n])) == before);
    DONE(read_tensor(at(tensor_files[n])));
    DONE(td_tensor_write(x, at(tensor_files[n]), NULL));
    CHECK(size_of_file(at(tensor_files[n])) > before);
  }
  small.rlim_cur = 100;
  CHECK(setrlimit(RLIMIT_FSIZE, &small) == 0);
  REFUSED(TD_ERR_IO, "k.txt", "File too large", td_ktensor_write(k, at("k.txt"), NULL));
  REFUSED(TD_ERR_IO, "k.tdb", "File too large", td_ktensor_write(k, at("k.tdb"), NULL));
  DONE(td_options_create(&o));
  DONE(td_options_set_str(o, "checkpoint", at("run.tdb")));
  DONE(td_options_set_i64(o, "checkpoint_iters", 1));
  /* A run goes on without its checkpoint, and says so. */
  DONE(td_cpals(context, little, 2, NULL, o, NULL, NULL, &model, &report));
  CHECK(setrlimit(RLIMIT_FSIZE, &whole) == 0);
  DONE(td_report_get_str(report, "checkpoint_error", why, sizeof why, NULL));
  CHECK(strstr(why, "run.tdb") != NULL && strstr(why, "File too large") != NULL);
  td_report_destroy(report);
  td_ktensor_destroy(model);
  model = NULL;
  CHECK(size_of_file(at("k.txt")) == -1 && size_of_file(at("k.tdb")) == -1 && size_of_file(at("run.tdb")) == -1);
  DONE(td_options_set_str(o, "checkpoint", ""));
  DONE(td_options_set_str(o, "resume", at("run.tdb")));
  REFUSED(TD_ERR_IO, "run.tdb", "No such file", td_cpals(context, little, 2, NULL, o, NULL, NULL, &model, NULL));
  DONE(td_options_set_str(o, "resume", at("old.tdb")));
  REFUSED(TD_ERR_IO, "old.tdb", "", td_cpals(context, little, 2, NULL, o, NULL, NULL, &model, NULL));
  REFUSED(TD_ERR_ARGUMENT, "init:", "option 'resume'", td_cpals(context, little, 2, k, o, NULL, NULL, &model, NULL));
  CHECK(model == NULL);
  td_options_destroy(o);
  td_tensor_destroy(little);
}

int main(void) {
  td_tensor *x, *little;
  td_ktensor *k = NULL;
  char command[300];
  FILE *left;
  if (access("/dev/shm", W_OK) != 0)
    strcpy(folder, "/tmp/td-c-XXXXXX");
  if (mkdtemp(folder) == NULL) {
    printf("cannot make %s\n", folder);
    return 1;
  }
  DONE(td_context_create("cpu:2", NULL, &context));
  x = some_tensor(20000);
  little = some_tensor(3);
  DONE(td_cpals(context, little, 2, NULL, NULL, NULL, NULL, &k, NULL));
  no_such_file();
  long_names();
  broken_text();
  DONE(td_tensor_write(little, at("little.tdb"), NULL));
  broken_binary("little.tdb", read_tensor);
  {
    const int64_t dims[2] = {3, 2};
    const float a[6] = {1, 2, 3, 4, 5, 6};
    td_ktensor *small = NULL;
    td_tensor *dense = NULL;
    DONE(td_ktensor_create(context, 2, dims, 2, TD_F32, &small));
    DONE(td_ktensor_set_factor(small, 0, a, 3, TD_HOST));
    DONE(td_ktensor_write(small, at("small.tdb"), NULL));
    broken_binary("small.tdb", read_ktensor);
    DONE(td_tensor_create_dense(context, 2, dims, NULL, TD_F32, a, TD_HOST, NULL, &dense));
    DONE(td_tensor_write(dense, at("dense.tdb"), NULL));
    broken_binary("dense.tdb", read_tensor);
    REFUSED(TD_ERR_IO, "dense.tdb", "", read_ktensor(at("dense.tdb")));
    REFUSED(TD_ERR_IO, "small.tdb", "", read_tensor(at("small.tdb")));
    td_tensor_destroy(dense);
    td_ktensor_destroy(small);
  }
  cannot_write(x, k);
  disk_full(x, k);

  /* Nothing temporary is left behind: every name is one of those above. */
  snprintf(command, sizeof command, "ls -A %s | grep -vE '\\.(tns|txt|tdb|gz)$'", folder);
  left = popen(command, "r");
  CHECK(left != NULL && fgets(command, sizeof command, left) == NULL);
  pclose(left);
  snprintf(command, sizeof command, "rm -r %s", folder);
  CHECK(system(command) == 0);
  td_ktensor_destroy(k);
  td_tensor_destroy(little);
  td_tensor_destroy(x);
  td_context_destroy(context);
  return check_result();
}
