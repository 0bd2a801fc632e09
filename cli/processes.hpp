// The processes that mpirun started the command in, if it did.
#pragma once

#include <cstdint>
#include <string_view>

#include "handles.hpp"

namespace cli {

class Processes {
public:
  /// The processes that this one belongs to: itself alone, until it has joined others.
  static Processes &all();

  /// Joins the others by the plug-in libtd_mpi, which is found beside libtd. Where there is none, or it cannot be
  /// loaded, the first process says so and works alone.
  void join();
  /// Whether this process has nothing to do: another one works alone.
  bool idle() const noexcept { return idle_; }

  bool shared() const noexcept { return communicator_ != nullptr; }
  /// Whether this is the process that prints and writes.
  bool first() const noexcept { return rank_ == 0; }
  td_communicator *communicator() const noexcept { return communicator_; }

  /// Whether another process prints this sentence, which all have.
  bool is_told(std::string_view sentence) const noexcept;

  /// Leaves the others; nothing of td's may be left that is shared with them.
  void finish(int exit_code);

private:
  Processes() = default;
  std::int32_t rank_ = 0;
  std::int32_t size_ = 1;
  bool idle_ = false;
  td_communicator *communicator_ = nullptr;
  void (*finish_)(std::int32_t exit_code) = nullptr;
};

} // namespace cli
