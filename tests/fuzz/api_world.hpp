// What the steps of fuzz_api stand on: the fuzzer's bytes as numbers and texts, handles in every state, arrays of exact
// sizes, and what must hold after each call.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <td/td.hpp>
#include <unistd.h>

#include "expect.hpp"

namespace tdtest {

/// The fuzzer's choices, byte after byte; zeros when they have run out.
class Bytes {
public:
  Bytes(const std::uint8_t *data, std::size_t size) : next_(data), end_(data + size) {}
  bool empty() const { return next_ == end_; }
  std::uint8_t byte() { return empty() ? std::uint8_t{0} : *next_++; }
  int below(int count) { return byte() % count; }
  bool one_in(int count) { return byte() % count == count - 1; }

  /// Small most of the time.
  std::int64_t number() {
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    static constexpr std::int64_t odd[] = {-1,
                                           std::numeric_limits<std::int64_t>::min(),
                                           most,
                                           most - 1,
                                           std::int64_t{1} << 31,
                                           (std::int64_t{1} << 31) - 1,
                                           std::int64_t{1} << 32,
                                           std::int64_t{1} << 40,
                                           std::int64_t{1} << 53,
                                           std::int64_t{1} << 62,
                                           65,
                                           1000};
    const int b = byte();
    return b < 240 ? b % 10 : odd[b % 12];
  }
  std::int32_t number32() { return static_cast<std::int32_t>(number()); }

  /// Whole numbers most of the time; at times the ends of the range, or what must be refused.
  double real() {
    constexpr double most = std::numeric_limits<double>::max();
    static constexpr double odd[] = {most,    -most, std::numeric_limits<double>::denorm_min(),
                                     1e-300,  1e300, std::numeric_limits<double>::min(),
                                     0.1,     1e-8,  std::numeric_limits<double>::infinity(),
                                     1e150,   1e38,  std::numeric_limits<double>::quiet_NaN(),
                                     -1e-160, 1e45};
    const int b = byte();
    return b < 246 ? b % 23 - 9 : odd[byte() % 14];
  }

  std::string text() {
    std::string s;
    for (int n = below(12); n > 0; --n)
      if (const char c = static_cast<char>(byte()); c != '/' && c != '\0') // a name in one folder
        s += c;
    return s;
  }

private:
  const std::uint8_t *next_;
  const std::uint8_t *end_;
};

/// An array that ends where its memory does, so that a sanitizer sees who goes further.
template <class T> class Exact {
public:
  explicit Exact(std::int64_t size) : size_(size), data_(new T[static_cast<std::size_t>(size)]()) {}
  T *data() const { return data_.get(); }
  std::int64_t size() const { return size_; }
  T &operator[](std::int64_t i) const { return data_[static_cast<std::size_t>(i)]; }

private:
  std::int64_t size_;
  std::unique_ptr<T[]> data_;
};

/// A handle as it is given to a call, and whether the call may succeed with it.
template <class Handle> struct Given {
  Handle *handle;
  bool good;
};

/// The handles of one kind that were made in this run; those that have ended stay, to be given again.
template <class Handle> class Handles {
public:
  explicit Handles(void (*destroy)(Handle *)) : destroy_(destroy) {}
  Handles(const Handles &) = delete;
  Handles &operator=(const Handles &) = delete;
  ~Handles() {
    for (const auto &made : made_)
      destroy_(made.handle); // of those that have ended nothing happens
  }

  /// null, one of another kind, destroyed, never made, or good.
  Given<Handle> pick(Bytes &bytes) const {
    static int never_made = 0;
    const int b = bytes.byte();
    if (b < 4)
      return {nullptr, false};
    if (b < 6)
      return {reinterpret_cast<Handle *>(&never_made), false};
    if (b < 10 && stranger != nullptr)
      return {reinterpret_cast<Handle *>(stranger), false};
    if (made_.empty())
      return {nullptr, false};
    return made_[static_cast<std::size_t>(b) % made_.size()];
  }
  /// A null pointer is good, which it is not in pick.
  Given<Handle> pick_or_null(Bytes &bytes) const {
    Given<Handle> some = pick(bytes);
    some.good |= some.handle == nullptr;
    return some;
  }
  void add(Handle *handle) { made_.push_back({handle, true}); }
  bool full() const { return made_.size() >= 12; }
  void destroy(Given<Handle> some) {
    destroy_(some.handle);
    for (auto &made : made_)
      made.good &= made.handle != some.handle;
  }

  void *stranger = nullptr; // a handle of another kind

private:
  void (*destroy_)(Handle *);
  std::vector<Given<Handle>> made_;
};

/// All handles of a run, and the nesting of calls from callbacks.
struct World {
  std::vector<Exact<char>> lent; // arrays that tensors may have borrowed, which end first
  Handles<td_options> options{td_options_destroy};
  Handles<td_context> contexts{td_context_destroy};
  Handles<td_tensor> tensors{td_tensor_destroy};
  Handles<td_ktensor> ktensors{td_ktensor_destroy};
  Handles<td_report> reports{td_report_destroy};
  Handles<td_plan> plans{td_plan_destroy};
  Bytes *bytes = nullptr;
  int depth = 0;

  template <class Handle> Handles<Handle> &of();
};
template <> inline Handles<td_options> &World::of() { return options; }
template <> inline Handles<td_context> &World::of() { return contexts; }
template <> inline Handles<td_tensor> &World::of() { return tensors; }
template <> inline Handles<td_ktensor> &World::of() { return ktensors; }
template <> inline Handles<td_report> &World::of() { return reports; }
template <> inline Handles<td_plan> &World::of() { return plans; }

using tdpp::last_error;

inline bool is_pinned(td_status status) {
  switch (status) {
  case TD_OK:
  case TD_STOPPED:
  case TD_ERR_ARGUMENT:
  case TD_ERR_SHAPE:
  case TD_ERR_INDEX:
  case TD_ERR_TYPE:
  case TD_ERR_HANDLE:
  case TD_ERR_OPTION_UNKNOWN:
  case TD_ERR_OPTION_RANGE:
  case TD_ERR_UNSUPPORTED:
  case TD_ERR_BACKEND_UNAVAILABLE:
  case TD_ERR_HOST_MEMORY:
  case TD_ERR_NUMERICAL:
  case TD_ERR_IO:
  case TD_ERR_COMMUNICATION:
    return true;
  default: // without a GPU there are no others, and TD_ERR_INTERNAL is a defect
    return false;
  }
}

/// Runs a call and looks at what it came to. `good`: whether its handles are.
template <class Call> td_status done_or_refused(bool good, Call &&call) {
  td_option_describe(std::numeric_limits<std::int64_t>::min(), nullptr, 0, nullptr); // a text that no other call gives
  const std::string marker = last_error();
  const td_status status = call();
  const std::string text = last_error();
  if (!is_pinned(status))
    std::fprintf(stderr, "status %d (%s): %s\n", static_cast<int>(status), td_status_name(status), text.c_str());
  expect(is_pinned(status), "the status is one of td.h");
  expect(std::strcmp(td_status_name(status), "TD_STATUS_UNKNOWN") != 0, "the status has a name");
  if (status < 0)
    expect(!text.empty() && text != marker, "a failure has a sentence of its own");
  else
    expect(good, "a call with a bad handle is refused");
  return status;
}

/// A call makes something: the handle is there if and only if the call succeeded.
template <class Handle, class Call> td_status makes(World &w, bool good, Call &&call) {
  static int before = 0;
  if (w.of<Handle>().full())
    return TD_OK;
  auto *made = reinterpret_cast<Handle *>(&before);
  const td_status status = done_or_refused(good, [&] { return call(&made); });
  expect((status >= 0) == (made != nullptr), "a failed call leaves a null handle");
  if (made != nullptr)
    w.of<Handle>().add(made);
  return status;
}

/// A text function with a buffer of any length.
template <class Call> void gives_text(Bytes &bytes, bool good, Call &&call) {
  const std::int64_t cap = bytes.below(40);
  const Exact<char> buffer(cap);
  std::int64_t needed = -1;
  const bool ask = !bytes.one_in(4);
  const td_status status =
      done_or_refused(good, [&] { return call(cap == 0 ? nullptr : buffer.data(), cap, ask ? &needed : nullptr); });
  if (status < 0)
    return;
  expect(!ask || needed >= 1, "a text has at least its NUL");
  expect(cap == 0 || std::memchr(buffer.data(), '\0', static_cast<std::size_t>(cap)) != nullptr, "a text ends");
}

inline void expect_no_nan(double x) { expect(!std::isnan(x), "finite input gives no NaN"); }

template <class T> void expect_finite(const Exact<T> &values) {
  for (std::int64_t k = 0; k < values.size(); ++k)
    expect(std::isfinite(values[k]), "finite input gives finite results");
}

/// A path in a folder of this process's own, which goes when it ends.
inline std::string in_scratch_folder(const std::string &name) {
  static const struct Folder {
    std::string path = (std::filesystem::temp_directory_path() / "td-fuzz-XXXXXX").string();
    pid_t owner = getpid();
    Folder() { expect(mkdtemp(path.data()) != nullptr, "there is a folder for files"); }
    ~Folder() {
      std::error_code ignored;
      if (owner == getpid())
        std::filesystem::remove_all(path, ignored);
    }
  } folder;
  return folder.path + "/" + name;
}

} // namespace tdtest
