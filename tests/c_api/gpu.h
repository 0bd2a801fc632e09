/* CUDA's runtime for clients in C, looked for when the program runs, so that they build without. Call find_cuda() when
 * libtd_cuda is loaded: it takes the runtime that libtd_cuda works with. Another one, as of an older toolkit that the
 * loader meets first, has last errors of its own, of which td knows nothing. */
#ifndef TD_TEST_GPU_H
#define TD_TEST_GPU_H

#include <dlfcn.h>

#include "check.h"

/* CUDA's numbers */
enum { to_device = 1, to_host = 2, not_blocking = 1, not_ready = 600 };
enum { capture_global = 0, capture_by_thread = 1, capture_relaxed = 2 }; /* whom a capture forbids what */
enum { not_captured = 0, captured = 1, capture_invalid = 2 };

typedef void (*host_function)(void *);

static int (*cuda_malloc)(void **, size_t);
static int (*cuda_free)(void *);
static int (*cuda_malloc_host)(void **, size_t);
static int (*cuda_free_host)(void *);
static int (*cuda_copy)(void *, const void *, size_t, int);
static int (*cuda_copy_async)(void *, const void *, size_t, int, void *);
static int (*cuda_stream)(void **, unsigned);
static int (*cuda_stream_destroy)(void *);
static int (*cuda_stream_query)(void *);
static int (*cuda_stream_wait)(void *);
static int (*cuda_call)(void *, host_function, void *);
static int (*cuda_begin_capture)(void *, int);
static int (*cuda_end_capture)(void *, void **);
static int (*cuda_is_capturing)(void *, int *);
static int (*cuda_graph_destroy)(void *);
static int (*cuda_device_count)(int *);
static int (*cuda_device)(int *);
static int (*cuda_set_device)(int);
static int (*cuda_reset)(void);
static int (*cuda_last_error)(void);
static int (*cuda_memory)(size_t *, size_t *);

static inline int find_cuda(void) {
  const char *names[] = {"libcudart.so.13", "libcudart.so.12"};
  const struct {
    const char *name;
    void *function;
  } functions[] = {{"cudaMalloc", &cuda_malloc},
                   {"cudaFree", &cuda_free},
                   {"cudaMallocHost", &cuda_malloc_host},
                   {"cudaFreeHost", &cuda_free_host},
                   {"cudaMemcpy", &cuda_copy},
                   {"cudaMemcpyAsync", &cuda_copy_async},
                   {"cudaStreamCreateWithFlags", &cuda_stream},
                   {"cudaStreamDestroy", &cuda_stream_destroy},
                   {"cudaStreamQuery", &cuda_stream_query},
                   {"cudaStreamSynchronize", &cuda_stream_wait},
                   {"cudaLaunchHostFunc", &cuda_call},
                   {"cudaStreamBeginCapture", &cuda_begin_capture},
                   {"cudaStreamEndCapture", &cuda_end_capture},
                   {"cudaStreamIsCapturing", &cuda_is_capturing},
                   {"cudaGraphDestroy", &cuda_graph_destroy},
                   {"cudaGetDeviceCount", &cuda_device_count},
                   {"cudaGetDevice", &cuda_device},
                   {"cudaSetDevice", &cuda_set_device},
                   {"cudaDeviceReset", &cuda_reset},
                   {"cudaGetLastError", &cuda_last_error},
                   {"cudaMemGetInfo", &cuda_memory}};
  void *library = NULL;
  size_t i;
  for (i = 0; library == NULL && i < sizeof names / sizeof *names; ++i)
    library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  for (i = 0; library != NULL && i < sizeof functions / sizeof *functions; ++i) {
    void *found = dlsym(library, functions[i].name);
    if (found == NULL)
      return 0;
    memcpy(functions[i].function, &found, sizeof found);
  }
  return library != NULL;
}

static inline void *on_device(const void *from, size_t bytes) {
  void *copy = NULL;
  CHECK(cuda_malloc(&copy, bytes) == 0);
  CHECK(cuda_copy(copy, from, bytes, to_device) == 0);
  return copy;
}

/* Makes a context, or says why the test is skipped. On the device string TD_TEST_DEVICES, in which a GPU may be named
 * twice; without on "cuda:0". */
static inline td_context *context_with_gpu(void) {
  const char *devices = getenv("TD_TEST_DEVICES");
  td_context *context = NULL;
  td_options *options = NULL;
  td_status status;
  DONE(td_options_create(&options));
  DONE(td_options_set_i64(options, "virtual_devices", 1));
  status = td_context_create(devices != NULL ? devices : "cuda:0", options, &context);
  td_options_destroy(options);
  if (status < 0 || !find_cuda()) {
    char why[512];
    td_last_error(why, sizeof why);
    printf("skipped: no GPU to have arrays on: %s\n", why);
    td_context_destroy(context);
    return NULL;
  }
  return context;
}

/* A failed call that must have a sentence, after which the library works. */
static inline void check_sentence(td_status came, const char *call, const char *file, int line) {
  char why[512] = "";
  td_last_error(why, sizeof why);
  printf("%s: %s: %s\n", call, td_status_name(came), came < 0 ? why : "");
  if (came < 0 && why[0] != '\0' && library_works())
    return;
  fprintf(stderr, "%s:%d: %s gave %s: \"%s\": expected a failure with a sentence\n", file, line, call,
          td_status_name(came), why);
  ++check_failures;
}
#define FAILS(call) check_sentence((call), #call, __FILE__, __LINE__)

#endif
