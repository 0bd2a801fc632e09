// The processes that compute together, each with a part of the tensor. They meet in a few functions that the caller
// brings, over MPI or whatever else; td knows no more of them.
#pragma once

#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/communicator.hpp"
#include "core/error.hpp"

namespace td {

enum class Reduction : std::int32_t { sum = 0, max = 1 };

/// The functions that td_communicator_create takes: each gives 0, or a number of the caller's where it failed.
struct ProcessFunctions {
  std::int32_t (*all_reduce)(double *data, i64 count, std::int32_t operation, void *user) = nullptr;
  std::int32_t (*all_to_all)(const void *sent, const i64 *sent_bytes, void *received, const i64 *received_bytes,
                             void *user) = nullptr;
  std::int32_t (*broadcast)(void *data, i64 bytes, std::int32_t root, void *user) = nullptr;
  void (*abort)(std::int32_t status, void *user) = nullptr;
  void (*release)(void *user) = nullptr; // may be null
  void *user = nullptr;

  /// What functions of td's own (comm/process_workers) return on all processes where one found no memory.
  static constexpr std::int32_t no_memory = std::numeric_limits<std::int32_t>::min();
};

/// An error that every process throws by now: none has to be told.
class AgreedError : public Error {
public:
  using Error::Error;
};

/// All processes call the same functions in the same order. Before each of them they agree that none has failed: one
/// that has calls fail() wherever the others are, and all throw its error. Results are the same bits on all.
///
/// Where processes have several workers these call the same functions, and a rank is that of a worker: those of process
/// 0 come first, then those of process 1, ... What a caller gives and gets, the first worker of his process has.
class Processes {
public:
  Processes(int rank, int size, const ProcessFunctions &functions);
  /// The ranks are those of workers, of which process p has `workers[p]`.
  Processes(int rank, std::span<const int> workers, const ProcessFunctions &functions);
  Processes(const Processes &) = delete;
  Processes &operator=(const Processes &) = delete;
  ~Processes();

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }
  /// How many processes there are, the process of a worker, and whether it is the first of it.
  int processes() const noexcept { return first_of_.empty() ? size_ : static_cast<int>(std::ssize(first_of_)); }
  int process_of(int rank) const noexcept;
  bool is_first(int rank) const noexcept;
  /// Workers of this process.
  int workers_here() const noexcept;
  const ProcessFunctions &functions() const noexcept { return functions_; }
  /// Names what is called when the last that uses the functions has ended; null: nothing.
  void release_by(void (*release)(void *user)) noexcept { functions_.release = release; }

  /// Begins a call that all make: none knows of a failure in it.
  void begin_call() noexcept { reported_ = false; }
  /// Waits for all. Throws AgreedError where one has failed.
  void agree() { meet(0, Status::ok, {}); }
  /// Meets those who wait in any of these functions, and lets them wait on, however often: for a process that waits
  /// itself for something that a failure of theirs would keep from coming. Gives false where one has failed, which all
  /// of these functions throw from then on.
  bool on_the_way();
  /// Tells the others of an error here. All throw that of the first process, in their order, which had one. `named`:
  /// the text says already which process it was.
  [[noreturn]] void fail(Status status, std::string_view text, bool named = false);

  bool any(bool here);
  void all_reduce(std::span<double> data, Reduction how);
  /// The arrays hold what goes to, or comes from, one process after the other.
  void all_to_all(const void *sent, std::span<const i64> sent_bytes, void *received,
                  std::span<const i64> received_bytes);
  /// Element k of the result is what process k gave for this one.
  std::vector<i64> all_to_all(std::span<const i64> numbers);
  /// What each has given, one after the other; all give equally many.
  std::vector<i64> all_gather(std::span<const i64> mine);
  void broadcast(void *data, i64 bytes, int root = 0);
  /// Throws Status::argument on those whose text is not that of process 0.
  void require_same(std::string_view text, std::string_view what);

  /// Bytes that this process has sent to others in all_to_all, or by other ways that it was told of.
  i64 sent_bytes() const noexcept { return sent_bytes_; }
  void count_sent(i64 bytes) noexcept { sent_bytes_ += bytes; }

private:
  /// `failed`: 0 where nothing has, else how urgent it is.
  void meet(int failed, Status status, std::string_view text, bool named = false);
  /// What a process says of its failure, of a size that all know.
  struct Obituary {
    std::int32_t status = 0;
    std::int32_t named = 0;
    char text[1016] = "";
  };
  double largest(double urgent);
  void hear(double urgent, const Obituary &own);
  [[noreturn]] void throw_agreed() const;
  void check(std::int32_t code, const char *function) const;
  void break_off(std::int32_t code, const char *function);

  int rank_;
  int size_;
  std::vector<int> first_of_; // [processes] ranks of their first workers; empty: each has one
  ProcessFunctions functions_;
  i64 sent_bytes_ = 0;
  bool reported_ = false; // all know of a failure in this call
  int first_ = 0;         // the process whose failure it is
  Obituary said_;         // by that one
  // Not even a failure could be agreed on, as this function returned a number.
  const char *broken_by_ = nullptr;
  std::int32_t broken_code_ = 0;
};

/// A communicator whose workers are the processes, one each, in host memory. `processes` must live as long.
std::unique_ptr<Communicator> make_process_communicator(Processes &processes);

/// What each process gets of the GPUs that it may have: in the order of the processes the first that none has, or where
/// `shared` allows several on one the first of those that fewest have. `may[k]` is a number that is a GPU's own; the
/// result is a place in it, or -1. All processes call it.
int choose_gpu(Processes &processes, const std::vector<i64> &may, bool shared);

} // namespace td
