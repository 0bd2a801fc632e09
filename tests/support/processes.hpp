// Threads that stand for processes: each has a communicator of functions that meet in shared memory, a context of its
// own, and nothing else of the others.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "support/problem.hpp"

namespace tdtest {

class Meeting;

/// A function of a communicator that is to fail on one process.
struct Failure {
  int process = -1;     // none
  int64_t call = 0;     // of any function on that process, counted from 0
  bool for_good = true; // else only that call returns a number that is not 0
};

class Processes {
public:
  explicit Processes(int size, const Failure &failure = {});
  Processes(const Processes &) = delete;
  Processes &operator=(const Processes &) = delete;
  ~Processes();

  int size() const noexcept { return size_; }
  /// It serves one process; its functions are called by one thread.
  Communicator communicator(int rank);
  /// Runs body(rank) on a thread for each process, and throws what the first of them threw.
  void run(const std::function<void(int)> &body);
  /// Runs body(rank, context), each with a context of one thread that all share.
  void run(const std::string &devices, const std::function<void(int, td_context *)> &body);

  /// Functions that process 0 has called.
  int64_t calls() const;
  /// Bytes of all_to_all_v from each process to others.
  int64_t bytes_sent() const;
  /// Whether td called abort; whether processes met in different functions, or one waited for a minute.
  bool aborted() const;
  std::string trouble() const;
  /// Communicators that td has released.
  int released() const;

private:
  int size_;
  std::shared_ptr<Meeting> meeting_;
};

/// How processes bring a dense array in blocks: slabs of the last mode; all by the last process; or boxes of a
/// bisection, the first of them by the last process, each with the last index fastest.
enum class Blocks { slabs, one, boxes };
/// A process's block of the array, whose cells that are not among the entries are 0.
Tensor make_dense_block(td_context *context, const Entries &cells, int rank, int size, Blocks how,
                        td_type type = TD_F64, const td_options *options = nullptr);

/// Whether this thread is in a function of a communicator: what it allocates there is not td's.
bool in_communicator() noexcept;

} // namespace tdtest
