#include "trial.hpp"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <vector>

#include <unistd.h>

#include <fmt/format.h>

#include "interrupt.hpp"
#include "output.hpp"
#include "scratch_folder.hpp"

namespace cli {

namespace {

namespace fs = std::filesystem;

/// The file itself, or where it is a link, the one that it leads to.
fs::path target_of(const std::string &path) {
  const fs::path name = fs::absolute(path);
  std::error_code is_no_link;
  const fs::path target = fs::read_symlink(name, is_no_link);
  return is_no_link ? name : name.parent_path() / target;
}

/// Whether a file stands for what a process has open, as /dev/stdout and /dev/fd/1 do.
bool is_open_file(const std::string &path) {
  const auto in_proc = [](const fs::path &file) {
    std::error_code error; // then it is not there
    return fs::canonical(file.parent_path(), error).string().starts_with("/proc/");
  };
  return in_proc(fs::absolute(path)) || in_proc(target_of(path));
}

/// Puts what a writer may meet under a name under another one: a file, or a folder with a ktensor's files.
void imitate(const std::string &original, const fs::path &copy) {
  std::error_code error; // what cannot be looked at is met when it is written
  const fs::file_status status = fs::status(original, error);
  if (fs::is_directory(status)) {
    fs::create_directory(copy, error);
    for (const fs::path &file : files_of(original))
      if (file != original)
        std::ofstream{copy / file.filename()};
  } else if (fs::is_regular_file(status)) {
    std::ofstream{copy};
  }
}

Context small_context() { return make<Context>(td_context_create, "reference", nullptr); }

/// A tensor with dims of 1 and one entry.
Tensor small_tensor(td_context *context, std::int32_t order, bool sparse) {
  const std::vector<std::int64_t> dims(static_cast<std::size_t>(order), 1);
  const double one = 1;
  if (!sparse)
    return make<Tensor>(td_tensor_create_dense, context, order, dims.data(), nullptr, TD_F64, &one, TD_HOST, nullptr);
  const std::int64_t first = 0;
  const std::vector<const void *> indices(dims.size(), &first);
  return make<Tensor>(td_tensor_create, context, order, dims.data(), 1, TD_I64, indices.data(), 0, TD_F64, &one,
                      TD_HOST, nullptr);
}

template <class Write> std::optional<Failure> try_beside(const std::string &path, Write &&write) {
  const ScratchFolder scratch(target_of(path).parent_path().string());
  const std::string copy = scratch.file(fs::path(path).filename().string());
  imitate(path, copy);
  const td_status status = write(copy.c_str());
  if (status >= 0)
    return {};
  std::string sentence = last_error();
  for (std::size_t at = 0; (at = sentence.find(copy, at)) != std::string::npos; at += path.size())
    sentence.replace(at, copy.size(), path);
  return Failure(exit_code(status), sentence);
}

/// write(path) gives the status of td's writer.
template <class Write> std::optional<Failure> try_to_write(const std::string &path, Write &&write) {
  if (path.empty())
    return {};
  refuse_unwritable(path);
  std::optional<Failure> failure;
  {
    const InterruptGuard guard; // ^C waits until the scratch folder is gone
    failure = try_beside(path, write);
  }
  if (const int signal = InterruptGuard::signal(); signal != 0)
    std::raise(signal);
  return failure;
}

} // namespace

void refuse_unwritable(const std::string &path) {
  std::error_code error; // what cannot be looked at is met when it is written
  if (fs::is_other(path, error) || is_open_file(path))
    throw Failure(exit_input, fmt::format("cannot write {}: it is a device, a pipe or what a process has open", path));
  const fs::path folder = target_of(path).parent_path();
  if (!fs::is_directory(folder, error))
    throw Failure(exit_input, fmt::format("cannot write {}: there is no folder {}", path, folder.string()));
  if (access(folder.c_str(), W_OK) != 0)
    throw Failure(exit_input, fmt::format("cannot write {}: the folder {} is not writable", path, folder.string()));
}

std::optional<Failure> try_tensor(const std::string &path, bool sparse, const td_options *options) {
  const Context context = small_context();
  const Tensor x = small_tensor(context, 2, sparse);
  return try_to_write(path, [&](const char *copy) { return td_tensor_write(x, copy, options); });
}

std::optional<Failure> try_ktensor(const std::string &path, std::int32_t order, const td_options *options) {
  const std::vector<std::int64_t> dims(static_cast<std::size_t>(order), 1);
  const Context context = small_context();
  const Ktensor model = make<Ktensor>(td_ktensor_create, context, order, dims.data(), 1, TD_F64);
  return try_to_write(path, [&](const char *copy) { return td_ktensor_write(model, copy, options); });
}

std::optional<Failure> try_report(const std::string &path, std::int32_t order, const td_options *options) {
  const Context context = small_context();
  const Fitted run = cpals(context, small_tensor(context, order, false), 1, Options{{"max_iters", "1"}});
  return try_to_write(
      path, [&](const char *copy) { return td_report_write(context, run.report, nullptr, run.model, options, copy); });
}

void require(const std::optional<Failure> &none) {
  if (none)
    throw Failure(*none);
}

} // namespace cli
