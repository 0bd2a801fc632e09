#include "core/beside.hpp"

#include <climits>
#include <cstdlib>
#include <string_view>

#include <dlfcn.h>
#include <link.h>
#include <sys/auxv.h>

#include "core/error.hpp"

namespace td {

namespace {

/// The absolute path of the file that holds this code, with a slash at the end of its folder; empty if that is not
/// known. The loader's record of a library has the name by which it was found, which may be relative to the folder that
/// the process is in while the library is loaded. Of the program itself only the kernel knows: the loader has argv[0].
struct Folder {
  char path[PATH_MAX] = "";

  Folder() noexcept {
    Dl_info where{};
    void *record = nullptr;
    if (dladdr1(reinterpret_cast<const void *>(&load_beside), &where, &record, RTLD_DL_LINKMAP) == 0 ||
        record == nullptr)
      return;
    const char *name = static_cast<const link_map *>(record)->l_name;
    const bool is_program = name == nullptr || *name == '\0';
    if (realpath(is_program ? "/proc/self/exe" : name, path) == nullptr) {
      *path = '\0';
      return;
    }
    std::string_view all = path;
    path[all.rfind('/') + 1] = '\0';
  }
};

// It is made when this code is loaded, before a program's main may change folders.
const Folder own_folder;

} // namespace

namespace {

bool may_load(const std::string &name, std::string &why) {
  if (getauxval(AT_SECURE) == 0)
    return true;
  why =
      fmt::format("{} is not loaded into a program that runs with more rights than its caller (setuid, setgid or file "
                  "capabilities)",
                  name);
  return false;
}

void *load(const std::string &name, std::string &why) {
  void *library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) {
    const char *reason = dlerror();
    why = reason == nullptr ? name : std::string(reason);
  }
  return library;
}

} // namespace

void *load_beside(const std::string &name, std::string &why) {
  if (!may_load(name, why))
    return nullptr;
  if (*own_folder.path != '/') {
    why = fmt::format("{} is not looked for: the folder of td's own code is not known", name);
    return nullptr;
  }
  return load(own_folder.path + name, why);
}

void *load_installed(const std::string &soname, std::string &why) {
  return may_load(soname, why) ? load(soname, why) : nullptr;
}

} // namespace td
