// Paths are plain strings: std::filesystem::path of libstdc++ 12 crashes where memory runs out.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <initializer_list>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <fmt/format.h>

#include "core/memory.hpp"

namespace td {

namespace {

/// The number a file begins with; nothing for a missing file or a word such as "max".
std::optional<i64> number_in(const std::string &file) {
  std::ifstream in(file);
  i64 number = 0;
  if (!(in >> number))
    return std::nullopt;
  return number;
}

/// The sum of the numbers behind some names in a file of lines "name number ...".
i64 sum_of(const std::string &file, std::initializer_list<std::string_view> names) {
  std::ifstream in(file);
  i64 sum = 0;
  std::string line;
  while (std::getline(in, line)) {
    const auto space = line.find(' ');
    const std::string_view name = std::string_view(line).substr(0, space);
    i64 number = 0;
    if (space != std::string::npos && std::find(names.begin(), names.end(), name) != names.end())
      std::from_chars(line.data() + line.find_first_not_of(' ', space), line.data() + line.size(), number);
    sum += number;
  }
  return sum;
}

std::optional<i64> smaller(std::optional<i64> a, std::optional<i64> b) { return a && b ? std::min(*a, *b) : a ? a : b; }

/// How a version of control groups names what this needs.
struct GroupFiles {
  const char *mount;
  const char *limit;
  const char *usage;
  std::initializer_list<std::string_view> cache; // pages of files, which the system gives back before a limit is hit
};

const GroupFiles version_1{"sys/fs/cgroup/memory",
                           "memory.limit_in_bytes",
                           "memory.usage_in_bytes",
                           {"total_inactive_file", "total_active_file"}};
const GroupFiles version_2{"sys/fs/cgroup", "memory.max", "memory.current", {"inactive_file", "active_file"}};

/// What a group and those above it leave. Where a container does not see its own path, the mount is its group.
std::optional<i64> left_in_group(const std::string &root, const GroupFiles &files, std::string path) {
  const std::string mount = root + files.mount;
  std::optional<i64> left;
  if (path.find("/..") != std::string::npos) // a group outside of what this process may see
    path.clear();
  while (true) {
    while (path.ends_with('/'))
      path.pop_back();
    const std::string group = mount + path + "/";
    const auto limit = number_in(group + files.limit);
    const auto usage = number_in(group + files.usage);
    if (limit && usage) {
      const i64 taken = std::max<i64>(*usage - sum_of(group + "memory.stat", files.cache), 0);
      left = smaller(left, std::max<i64>(*limit - taken, 0));
    }
    if (path.empty())
      return left;
    path.resize(path.rfind('/') + 1);
  }
}

/// Lines "hierarchy:controllers:path"; version 2 is hierarchy 0 without controllers.
std::optional<i64> left_in_groups(const std::string &root) {
  std::ifstream in(root + "proc/self/cgroup");
  std::optional<i64> left;
  std::string line;
  while (std::getline(in, line)) {
    const auto first = line.find(':');
    const auto second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos)
      continue;
    const std::string controllers = fmt::format(",{},", std::string_view(line).substr(first + 1, second - first - 1));
    const std::string path = line.substr(second + 1);
    if (controllers == ",,")
      left = smaller(left, left_in_group(root, version_2, path));
    else if (controllers.find(",memory,") != std::string::npos)
      left = smaller(left, left_in_group(root, version_1, path));
  }
  return left;
}

/// What RLIMIT_AS leaves of the address space; /proc/self/statm begins with the pages in use.
std::optional<i64> left_of_addresses(const std::string &root) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return std::nullopt;
  const auto pages = number_in(root + "proc/self/statm");
  const auto used = pages ? checked_multiply(*pages, ::sysconf(_SC_PAGESIZE)) : std::nullopt;
  if (!used)
    return std::nullopt;
  const auto all = static_cast<i64>(std::min<u64>(limit.rlim_cur, std::numeric_limits<i64>::max()));
  return std::max<i64>(all - *used, 0);
}

/// Whether there are descriptors for the files that are open at once below: group files are read while their list is.
bool can_open_files() noexcept {
  int opened[3];
  int count = 0;
  while (count < 3 && (opened[count] = ::open("/", O_PATH | O_CLOEXEC)) >= 0)
    ++count;
  const bool none_left = count < 3 && (errno == EMFILE || errno == ENFILE);
  while (count > 0)
    ::close(opened[--count]);
  return !none_left;
}

std::optional<i64> read_available(const std::string &root) {
  std::optional<i64> free;
  {
    std::ifstream info(root + "proc/meminfo");
    std::string name;
    std::string rest;
    i64 kibibytes = 0;
    while (!free && info >> name >> kibibytes) {
      if (name == "MemAvailable:")
        free = checked_multiply(kibibytes, 1024);
      std::getline(info, rest);
    }
  }
  return smaller(smaller(free, left_in_groups(root)), left_of_addresses(root));
}

/// What the system calls free, without the pages of files that it would give back: asking takes no descriptor.
std::optional<i64> plainly_free() noexcept {
  struct sysinfo facts {};
  if (::sysinfo(&facts) != 0)
    return std::nullopt;
  return checked_multiply(static_cast<i64>(facts.freeram + facts.bufferram), static_cast<i64>(facts.mem_unit));
}

std::atomic<i64> last_seen{std::numeric_limits<i64>::max()};

} // namespace

// Limits that cannot be read for want of a descriptor are not gone: what was seen last counts, or less where the system
// says so without one.
std::optional<i64> available_memory(const std::string &root) {
  if (!can_open_files())
    return smaller(plainly_free(), last_seen.load(std::memory_order_relaxed));
  const std::optional<i64> available = read_available(root);
  if (available && root == "/")
    last_seen.store(*available, std::memory_order_relaxed);
  return available;
}

} // namespace td
