#include "support/device_memory.hpp"

#include <dlfcn.h>

namespace tdtest {

namespace {

struct Runtime {
  int (*set_device)(int) = nullptr;
  int (*allocate)(void **, std::size_t) = nullptr;
  int (*release)(void *) = nullptr;
  int (*copy)(void *, const void *, std::size_t, int) = nullptr;

  template <class F> static void find(void *library, const char *name, F &function) {
    function = reinterpret_cast<F>(dlsym(library, name));
  }
  // The runtime that libtd_cuda works with is there already.
  Runtime() {
    for (const char *name : {"libcudart.so.13", "libcudart.so.12", "libtd_cuda.so.0"}) {
      void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
      if (library == nullptr)
        continue;
      find(library, "cudaSetDevice", set_device);
      find(library, "cudaMalloc", allocate);
      find(library, "cudaFree", release);
      find(library, "cudaMemcpy", copy);
      if (copy != nullptr)
        return;
    }
  }
};

} // namespace

std::shared_ptr<void> on_device(int ordinal, const void *from, std::size_t bytes) {
  const Runtime runtime;
  void *memory = nullptr;
  if (runtime.copy == nullptr || runtime.set_device(ordinal) != 0 || runtime.allocate(&memory, bytes) != 0)
    return nullptr;
  runtime.copy(memory, from, bytes, 1);
  return {memory, [release = runtime.release](void *p) { release(p); }};
}

std::vector<std::byte> from_device(int ordinal, const void *memory, std::size_t bytes) {
  const Runtime runtime;
  std::vector<std::byte> host(bytes);
  runtime.set_device(ordinal);
  runtime.copy(host.data(), memory, bytes, 2);
  return host;
}

} // namespace tdtest
