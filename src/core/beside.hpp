// Libraries that td loads at run time: its own from the folder in which td's code lies, others by the system's rules.
#pragma once

#include <string>

namespace td {

/// Loads the library of a file name that lies in the folder of the file which holds td's code: libtd, or the program or
/// library that libtd.a was linked into. Where that file is, is decided when it is loaded, without argv[0], and its
/// path is absolute, so that neither who starts a program nor a later chdir chooses what is loaded. A program that runs
/// with more rights than its caller (setuid, setgid, file capabilities) loads nothing.
/// The library stays loaded. Null, with the reason in `why`, where it does not load.
void *load_beside(const std::string &name, std::string &why);

/// Loads a library of the system's by its soname, which is no path: from where the loader finds those that the file of
/// td's code was linked with (its run path, LD_LIBRARY_PATH, the loader's cache). Otherwise as load_beside.
void *load_installed(const std::string &soname, std::string &why);

} // namespace td
