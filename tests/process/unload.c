/* libtd opened, used, closed and opened again by dlopen, and two copies of it in one process.
 * usage: unload LIBTD */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <td/td.h>

static int failures = 0;

static void expect(int holds, const char *what) {
  if (!holds) {
    fprintf(stderr, "does not hold: %s\n", what);
    ++failures;
  }
}

struct td {
  void *library;
  td_status (*options_create)(td_options **);
  td_status (*options_get_i64)(const td_options *, const char *, int64_t *);
  td_status (*options_set_i64)(td_options *, const char *, int64_t);
  void (*options_destroy)(td_options *);
  td_status (*context_create)(const char *, const td_options *, td_context **);
  void (*context_destroy)(td_context *);
  td_status (*tensor_create_dense)(td_context *, int32_t, const int64_t *, const int64_t *, td_type, const void *,
                                   td_space, const td_options *, td_tensor **);
  td_status (*tensor_norm)(const td_tensor *, double *);
  void (*tensor_destroy)(td_tensor *);
};

/* A function's address through memory: C has no conversion from void * to a function's. */
static void find(void *library, const char *name, void *function) {
  void *address = dlsym(library, name);
  if (address == NULL) {
    fprintf(stderr, "no function %s\n", name);
    exit(1);
  }
  memcpy(function, &address, sizeof address);
}

static int take(struct td *td, void *library) {
  if (library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 0;
  }
  td->library = library;
  find(library, "td_options_create", &td->options_create);
  find(library, "td_options_get_i64", &td->options_get_i64);
  find(library, "td_options_set_i64", &td->options_set_i64);
  find(library, "td_options_destroy", &td->options_destroy);
  find(library, "td_context_create", &td->context_create);
  find(library, "td_context_destroy", &td->context_destroy);
  find(library, "td_tensor_create_dense", &td->tensor_create_dense);
  find(library, "td_tensor_norm", &td->tensor_norm);
  find(library, "td_tensor_destroy", &td->tensor_destroy);
  return 1;
}

/* Work for four threads: the norm of 2^20 ones is 2^10. */
static int works(const struct td *td) {
  const int64_t dims[2] = {1024, 1024}, strides[2] = {0, 0};
  const double one = 1;
  double norm = 0;
  td_options *options = NULL;
  td_context *context = NULL;
  td_tensor *x = NULL;
  const int good = td->options_create(&options) == TD_OK && td->options_set_i64(options, "threads", 4) == TD_OK &&
                   td->context_create("cpu", options, &context) == TD_OK &&
                   td->tensor_create_dense(context, 2, dims, strides, TD_F64, &one, TD_HOST, NULL, &x) == TD_OK &&
                   td->tensor_norm(x, &norm) == TD_OK && norm == 1024;
  td->tensor_destroy(x);
  td->context_destroy(context);
  td->options_destroy(options);
  return good;
}

/* Closed while its threads wait for more, with handles that were destroyed and one that was not. */
static void close_and_open(const char *path) {
  struct td td;
  td_options *ended[50], *kept = NULL;
  int64_t number = 0;
  int i, round;
  if (!take(&td, dlopen(path, RTLD_NOW | RTLD_LOCAL)))
    exit(1);
  expect(works(&td), "libtd works");
  for (i = 0; i < 50; ++i) {
    expect(td.options_create(&ended[i]) == TD_OK, "options are made");
    td.options_destroy(ended[i]);
  }
  expect(td.options_create(&kept) == TD_OK && td.options_set_i64(kept, "max_iters", 7) == TD_OK, "options are made");
  for (round = 0; round < 3; ++round) {
    expect(dlclose(td.library) == 0, "libtd is closed");
    usleep(20000);
    if (!take(&td, dlopen(path, RTLD_NOW | RTLD_LOCAL)))
      exit(1);
    expect(works(&td), "libtd works after it was closed and opened again");
    for (i = 0; i < 50; ++i)
      expect(td.options_get_i64(ended[i], "max_iters", &number) == TD_ERR_HANDLE,
             "a handle that was destroyed stays so when libtd is opened again");
    expect(td.options_get_i64(kept, "max_iters", &number) == TD_OK && number == 7,
           "a handle that was not destroyed is still there");
  }
  td.options_destroy(kept);
}

static void strangers(const struct td *one, const struct td *other) {
  td_options *of_one[50], *of_other[50];
  int64_t number = 0;
  int i;
  for (i = 0; i < 50; ++i)
    expect(one->options_create(&of_one[i]) == TD_OK && other->options_create(&of_other[i]) == TD_OK,
           "both copies make options");
  for (i = 0; i < 50; ++i) {
    expect(one->options_get_i64(of_other[i], "max_iters", &number) == TD_ERR_HANDLE,
           "a copy of libtd refuses the other's handle");
    expect(other->options_get_i64(of_one[i], "max_iters", &number) == TD_ERR_HANDLE,
           "the other copy of libtd refuses the one's handle");
    one->options_destroy(of_other[i]);
    expect(other->options_get_i64(of_other[i], "max_iters", &number) == TD_OK, "and does not destroy it");
    one->options_destroy(of_one[i]);
    other->options_destroy(of_other[i]);
  }
  expect(works(one) && works(other), "both copies work");
}

static int copy_file(const char *from, const char *to) {
  static char buffer[1 << 16];
  FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
  size_t n;
  int good = in != NULL && out != NULL;
  while (good && (n = fread(buffer, 1, sizeof buffer, in)) > 0)
    good = fwrite(buffer, 1, n, out) == n;
  if (in != NULL)
    fclose(in);
  if (out != NULL)
    good = fclose(out) == 0 && good;
  return good;
}

int main(int argc, char **argv) {
  char copy[] = "/tmp/td_unload_XXXXXX";
  struct td one, other;
  if (argc != 2) {
    fprintf(stderr, "usage: unload LIBTD\n");
    return 2;
  }
  close_and_open(argv[1]);

  close(mkstemp(copy));
  if (!copy_file(argv[1], copy)) {
    fprintf(stderr, "%s cannot be copied to %s\n", argv[1], copy);
    return 1;
  }
  if (!take(&one, dlopen(argv[1], RTLD_NOW | RTLD_LOCAL)) || !take(&other, dlopen(copy, RTLD_NOW | RTLD_LOCAL)))
    return 1;
  strangers(&one, &other);
  remove(copy);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  void *apart = dlmopen(LM_ID_NEWLM, argv[1], RTLD_NOW | RTLD_LOCAL);
  if (apart == NULL)
    printf("not seen: a copy in a name space of its own: %s\n", dlerror());
  else if (take(&other, apart))
    strangers(&one, &other);
#endif
  return failures == 0 ? 0 : 1;
}
