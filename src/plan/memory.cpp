#include <fstream>
#include <string>

#include "core/checked.hpp"
#include "plan/tensor.hpp"

namespace td::plan {

std::optional<i64> available_memory() {
  std::ifstream file("/proc/meminfo");
  std::string name;
  std::string rest;
  i64 kibibytes = 0;
  while (file >> name >> kibibytes) {
    if (name == "MemAvailable:")
      return checked_multiply(kibibytes, 1024);
    std::getline(file, rest);
  }
  return std::nullopt;
}

} // namespace td::plan
