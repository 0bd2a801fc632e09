// A folder for files that nobody needs afterwards.
#pragma once

#include <filesystem>
#include <string>

#include "handles.hpp"

namespace cli {

class ScratchFolder {
public:
  /// A new folder within `parent`, which is the system's folder for such if it is empty.
  explicit ScratchFolder(const std::string &parent);
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder &) = delete;
  ScratchFolder &operator=(const ScratchFolder &) = delete;

  std::string file(const std::string &name) const { return (path_ / name).string(); }

private:
  std::filesystem::path path_;
};

} // namespace cli
