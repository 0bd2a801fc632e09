#include "scratch_folder.hpp"

#include <cerrno>
#include <cstdlib>
#include <system_error>

#include <fmt/format.h>

namespace cli {

ScratchFolder::ScratchFolder(const std::string &parent) {
  std::error_code error;
  const std::filesystem::path where =
      parent.empty() ? std::filesystem::temp_directory_path(error) : std::filesystem::path(parent);
  std::string name = (where / "td-scratch-XXXXXX").string(); // mkdtemp fills the X in
  if (error || mkdtemp(name.data()) == nullptr)
    throw Failure(exit_input, fmt::format("cannot make a folder in {}: {}", where.string(),
                                          error ? error.message() : std::generic_category().message(errno)));
  path_ = name;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored; // what cannot be removed stays
  std::filesystem::remove_all(path_, ignored);
}

} // namespace cli
