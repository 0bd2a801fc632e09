#include "output.hpp"

#include <filesystem>

#include <fmt/format.h>

#include "core/nearest.hpp"
#include "core/sentence.hpp"
#include "handles.hpp"

namespace cli {

namespace {

namespace fs = std::filesystem;

/// Whether a file in a folder is one that a ktensor in it consists of.
bool is_part(const std::string &name) {
  const auto numbered = [&](std::string_view prefix, std::string_view ending) {
    return name.size() > prefix.size() + ending.size() && name.starts_with(prefix) && name.ends_with(ending);
  };
  return name == "lambda.mat" || name == "weights.npy" || numbered("mode", ".mat") || numbered("factor", ".npy");
}

bool are_same(const fs::path &a, const fs::path &b) {
  std::error_code error;
  if (fs::equivalent(a, b, error)) // the same device and inode
    return true;
  const fs::path real_a = fs::weakly_canonical(fs::absolute(a), error); // files that are still to be made
  const fs::path real_b = error ? b : fs::weakly_canonical(fs::absolute(b), error);
  return !error && real_a == real_b;
}

bool overlap(const std::string &a, const std::string &b) {
  if (a.empty() || b.empty())
    return false;
  for (const fs::path &one : files_of(a))
    for (const fs::path &other : files_of(b))
      if (are_same(one, other))
        return true;
  return false;
}

} // namespace

std::vector<fs::path> files_of(const std::string &path) {
  std::error_code error; // what cannot be looked at is reported when it is opened
  if (!fs::is_directory(path, error))
    return {path};
  std::vector<fs::path> files = {path};
  for (fs::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error))
    if (is_part(entry->path().filename().string()))
      files.push_back(entry->path());
  return files;
}

std::string shown(const std::string &path) { return td::escaped(path); }

std::string did_you_mean(const std::string &written, const std::vector<std::string> &words) {
  const std::vector<std::string_view> candidates(words.begin(), words.end());
  const std::string_view near = td::nearest_name(written, candidates);
  return near.empty() ? "" : fmt::format(" (did you mean '{}'?)", near);
}

void print_json(const nlohmann::ordered_json &document) {
  constexpr int indent = 2;
  fmt::print("{}\n", document.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

void refuse_overwriting(const std::vector<std::string> &read, const std::vector<std::string> &written) {
  for (std::size_t i = 0; i < written.size(); ++i) {
    for (const std::string &other : read)
      if (overlap(written[i], other))
        throw Failure(exit_usage, fmt::format("writing {} would overwrite {}, which is read; give it another name",
                                              written[i], other));
    for (std::size_t j = 0; j < i; ++j)
      if (overlap(written[i], written[j]))
        throw Failure(exit_usage,
                      fmt::format("writing {} would overwrite {}, which is written too; give it another name",
                                  written[i], written[j]));
  }
}

} // namespace cli
