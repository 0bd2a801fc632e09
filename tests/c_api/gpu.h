/* CUDA's runtime for clients in C, looked for when the program runs, so that they build without. */
#ifndef TD_TEST_GPU_H
#define TD_TEST_GPU_H

#include <dlfcn.h>

#include "check.h"

enum { to_device = 1, to_host = 2, not_blocking = 1, relaxed = 2, not_ready = 600 }; /* CUDA's numbers */

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
static int (*cuda_graph_destroy)(void *);
static int (*cuda_device_count)(int *);
static int (*cuda_device)(int *);
static int (*cuda_set_device)(int);

static inline int find_cuda(void) {
  const char *names[] = {"libcudart.so", "libcudart.so.13", "libcudart.so.12"};
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
                   {"cudaGraphDestroy", &cuda_graph_destroy},
                   {"cudaGetDeviceCount", &cuda_device_count},
                   {"cudaGetDevice", &cuda_device},
                   {"cudaSetDevice", &cuda_set_device}};
  void *library = NULL;
  size_t i;
  for (i = 0; library == NULL && i < sizeof names / sizeof *names; ++i)
    library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
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

/* Makes a context, or says why the test is skipped. */
static inline td_context *context_with_gpu(void) {
  td_context *context = NULL;
  if (td_context_create("cuda:0", NULL, &context) < 0 || !find_cuda()) {
    char why[512];
    td_last_error(why, sizeof why);
    printf("skipped: no GPU to have arrays on: %s\n", why);
    td_context_destroy(context);
    return NULL;
  }
  return context;
}

#endif
