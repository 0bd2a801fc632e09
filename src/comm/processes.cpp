#include "comm/processes.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <utility>

#include "core/buffer.hpp"
#include "core/rows.hpp"

namespace td {

namespace {

/// What a process that waits for something else says where all meet: the others wait on. How urgent failures are is 1
/// and more.
constexpr double not_yet = 0.5;

/// FNV-1a, of 64 bits.
u64 hash_of(std::string_view text) {
  u64 hash = 0xcbf29ce484222325;
  for (const char c : text)
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

i64 sum_of(std::span<const i64> numbers) {
  i64 sum = 0;
  for (const i64 number : numbers)
    sum += number;
  return sum;
}

} // namespace

Processes::Processes(int rank, int size, const ProcessFunctions &functions)
    : rank_(rank), size_(size), functions_(functions) {}

Processes::Processes(int rank, std::span<const int> workers, const ProcessFunctions &functions)
    : rank_(rank), size_(0), functions_(functions) {
  for (const int some : workers)
    first_of_.push_back(std::exchange(size_, size_ + some));
}

Processes::~Processes() {
  if (functions_.release != nullptr)
    functions_.release(functions_.user);
}

int Processes::process_of(int rank) const noexcept {
  if (first_of_.empty())
    return rank;
  return static_cast<int>(std::upper_bound(first_of_.begin(), first_of_.end(), rank) - first_of_.begin()) - 1;
}

bool Processes::is_first(int rank) const noexcept {
  return first_of_.empty() || std::binary_search(first_of_.begin(), first_of_.end(), rank);
}

int Processes::workers_here() const noexcept {
  if (first_of_.empty())
    return 1;
  const auto next = std::upper_bound(first_of_.begin(), first_of_.end(), rank_);
  return (next == first_of_.end() ? size_ : *next) - *(next - 1);
}

void Processes::check(std::int32_t code, const char *function) const {
  if (code == ProcessFunctions::no_memory)
    throw_error(Status::host_memory, "out of host memory: what the workers of a process exchange, in {}", function);
  if (code != 0)
    throw_error(Status::communication, "the communicator's function {} returned {}; expected 0", function, code);
}

// Where the others are then is not known: none of td's messages would find them.
void Processes::break_off(std::int32_t code, const char *function) {
  reported_ = true;
  broken_by_ = function;
  broken_code_ = code;
  functions_.abort(static_cast<std::int32_t>(Status::communication), functions_.user);
}

void Processes::throw_agreed() const {
  if (broken_by_ == nullptr)
    throw AgreedError(static_cast<Status>(said_.status),
                      said_.named != 0
                          ? std::string(said_.text)
                          : fmt::format("process {} of {}: {}", process_of(first_), processes(), said_.text));
  throw AgreedError(Status::communication,
                    fmt::format("process {} of {}: the communicator's function {} returned {} where processes agree "
                                "on what has failed; expected 0",
                                process_of(rank_), processes(), broken_by_, broken_code_));
}

double Processes::largest(double urgent) {
  if (const auto code = functions_.all_reduce(&urgent, 1, static_cast<std::int32_t>(Reduction::max), functions_.user))
    break_off(code, "all_reduce");
  return urgent;
}

// The first of the processes that failed speaks: the largest number is that of the smallest rank.
void Processes::hear(double urgent, const Obituary &own) {
  reported_ = true; // whatever else goes wrong here
  first_ = size_ - static_cast<int>(urgent);
  said_ = own;
  if (const auto code = functions_.broadcast(&said_, sizeof said_, first_, functions_.user))
    break_off(code, "broadcast");
  said_.text[sizeof said_.text - 1] = '\0';
}

void Processes::meet(int failed, Status status, std::string_view text, bool named) {
  if (!reported_ && broken_by_ != nullptr)
    throw AgreedError(Status::communication, "the communicator failed in an earlier call; expected one that works");
  double urgent = not_yet;
  while (!reported_ && urgent == not_yet)
    urgent = largest(failed);
  if (!reported_ && urgent != 0) {
    Obituary own{static_cast<std::int32_t>(status), named ? 1 : 0, {}};
    text.copy(own.text, sizeof own.text - 1);
    hear(urgent, own);
  }
  if (reported_)
    throw_agreed();
}

bool Processes::on_the_way() {
  if (reported_ || broken_by_ != nullptr)
    return false;
  if (const double urgent = largest(not_yet); !reported_ && urgent != not_yet)
    hear(urgent, {});
  return !reported_;
}

void Processes::fail(Status status, std::string_view text, bool named) {
  meet(size_ - rank_, status, text, named);
  throw_agreed(); // by now it was thrown
}

bool Processes::any(bool here) {
  double flag = here ? 1 : 0;
  all_reduce({&flag, 1}, Reduction::max);
  return flag != 0;
}

void Processes::all_reduce(std::span<double> data, Reduction how) {
  agree();
  check(functions_.all_reduce(data.data(), std::ssize(data), static_cast<std::int32_t>(how), functions_.user),
        "all_reduce");
}

void Processes::all_to_all(const void *sent, std::span<const i64> sent_bytes, void *received,
                           std::span<const i64> received_bytes) {
  agree();
  check(functions_.all_to_all(sent, sent_bytes.data(), received, received_bytes.data(), functions_.user),
        "all_to_all_v");
  sent_bytes_ += sum_of(sent_bytes) - sent_bytes[static_cast<std::size_t>(rank_)];
}

std::vector<i64> Processes::all_to_all(std::span<const i64> numbers) {
  const std::vector<i64> bytes(numbers.size(), sizeof(i64));
  std::vector<i64> received(numbers.size());
  all_to_all(numbers.data(), bytes, received.data(), bytes);
  return received;
}

std::vector<i64> Processes::all_gather(std::span<const i64> mine) {
  std::vector<i64> sent;
  for (int process = 0; process < size_; ++process)
    sent.insert(sent.end(), mine.begin(), mine.end());
  const std::vector<i64> bytes(static_cast<std::size_t>(size_), static_cast<i64>(mine.size_bytes()));
  std::vector<i64> received(sent.size());
  all_to_all(sent.data(), bytes, received.data(), bytes);
  return received;
}

void Processes::broadcast(void *data, i64 bytes, int root) {
  agree();
  check(functions_.broadcast(data, bytes, root, functions_.user), "broadcast");
}

void Processes::require_same(std::string_view text, std::string_view what) {
  const u64 here = hash_of(text);
  u64 first = here;
  broadcast(&first, sizeof first);
  if (first != here)
    throw_error(Status::argument, "{} differ from those of process 0; expected the same on all processes", what);
}

namespace {

class ProcessCommunicator final : public Communicator {
public:
  explicit ProcessCommunicator(Processes &processes) : processes_(processes) {}

  int rank() const noexcept override { return processes_.rank(); }
  int size() const noexcept override { return processes_.size(); }
  void barrier() override { processes_.agree(); }
  void allreduce_sum(std::span<double> data) override { processes_.all_reduce(data, Reduction::sum); }
  void allreduce_max(std::span<double> data) override;
  void reduce_rows(ConstMatrix partial, Matrix out, std::span<const Ranges> owned) override;
  void allgather_rows(Matrix a, std::span<const Ranges> owned) override;
  void exchange(const kernels::Transfers &sent, const kernels::Transfers &received) override;
  void broadcast(void *data, i64 bytes) override { processes_.broadcast(data, bytes); }
  /// What went wrong is reported where the call ends (Processes::fail).
  void abort() noexcept override {}

private:
  Processes &processes_;
};

// What a caller's maximum makes of a number that is none is not known, so it travels as an infinity beside a count.
void ProcessCommunicator::allreduce_max(std::span<double> data) {
  std::vector<double> none(data.size());
  for (std::size_t k = 0; k < data.size(); ++k)
    if (std::isnan(data[k])) {
      none[k] = 1;
      data[k] = std::numeric_limits<double>::infinity();
    }
  processes_.all_reduce(data, Reduction::max);
  if (std::none_of(data.begin(), data.end(), [](double x) { return x == std::numeric_limits<double>::infinity(); }))
    return;
  processes_.all_reduce(none, Reduction::max);
  for (std::size_t k = 0; k < data.size(); ++k)
    if (none[k] != 0)
      data[k] = std::numeric_limits<double>::quiet_NaN();
}

i64 bytes_of(const ConstMatrix &a, const Ranges &rows) {
  i64 sum = 0;
  for_together(a, rows, [&](Range, i64 bytes) { sum += bytes; });
  return sum;
}

/// Rows one after the other, without gaps.
std::byte *pack(const ConstMatrix &a, const Ranges &rows, std::byte *to) {
  for_together(a, rows, [&](Range some, i64 bytes) {
    std::memcpy(to, a.slice(some.begin, some.end).data, static_cast<std::size_t>(bytes));
    to += bytes;
  });
  return to;
}

const std::byte *unpack(const std::byte *from, const Ranges &rows, const Matrix &a) {
  for_together(a, rows, [&](Range some, i64 bytes) {
    std::memcpy(a.slice(some.begin, some.end).data, from, static_cast<std::size_t>(bytes));
    from += bytes;
  });
  return from;
}

template <class T> void add_up(const std::byte *parts, i64 stride, int workers, const Ranges &rows, const Matrix &out) {
  for (const Range &range : rows)
    for (i64 i = range.begin; i < range.end; ++i)
      for (i64 r = 0; r < out.cols; ++r, parts += sizeof(T)) {
        double sum = 0;
        for (int worker = 0; worker < workers; ++worker)
          sum += static_cast<double>(*reinterpret_cast<const T *>(parts + worker * stride));
        out.row<T>(i)[r] = static_cast<T>(sum);
      }
}

void ProcessCommunicator::reduce_rows(ConstMatrix partial, Matrix out, std::span<const Ranges> owned) {
  const Ranges &own = owned[static_cast<std::size_t>(rank())];
  const std::vector<i64> received_bytes(owned.size(), bytes_of(partial, own));
  std::vector<i64> sent_bytes;
  for (const Ranges &rows : owned)
    sent_bytes.push_back(bytes_of(partial, rows));
  Buffer<std::byte> sent(sum_of(sent_bytes), "rows on their way between processes");
  std::byte *to = sent.data();
  for (const Ranges &rows : owned)
    to = pack(partial, rows, to);
  Buffer<std::byte> received(sum_of(received_bytes), "rows on their way between processes");
  processes_.all_to_all(sent.data(), sent_bytes, received.data(), received_bytes);
  dispatch(out.type,
           [&](auto zero) { add_up<decltype(zero)>(received.data(), received_bytes.front(), size(), own, out); });
}

void ProcessCommunicator::allgather_rows(Matrix a, std::span<const Ranges> owned) {
  const Ranges &own = owned[static_cast<std::size_t>(rank())];
  std::vector<i64> sent_bytes(owned.size(), bytes_of(a, own));
  std::vector<i64> received_bytes;
  for (const Ranges &rows : owned)
    received_bytes.push_back(bytes_of(a, rows));
  sent_bytes[static_cast<std::size_t>(rank())] = received_bytes[static_cast<std::size_t>(rank())] = 0;
  Buffer<std::byte> sent(sum_of(sent_bytes), "rows on their way between processes");
  std::byte *to = sent.data();
  for (int worker = 0; worker < size(); ++worker)
    if (worker != rank())
      to = pack(a, own, to);
  Buffer<std::byte> received(sum_of(received_bytes), "rows on their way between processes");
  processes_.all_to_all(sent.data(), sent_bytes, received.data(), received_bytes);
  const std::byte *from = received.data();
  for (int worker = 0; worker < size(); ++worker)
    if (worker != rank())
      from = unpack(from, owned[static_cast<std::size_t>(worker)], a);
}

/// Calls f(bytes, transfer) for transfers in the order of the processes: where it stands among all of them.
template <class F> std::vector<i64> for_processes(const kernels::Transfers &all, int size, F &&f) {
  std::vector<i64> bytes;
  i64 at = 0;
  for (int process = 0; process < size; ++process) {
    const i64 before = at;
    for (const kernels::Transfer &transfer : all)
      if (transfer.worker == process)
        f(std::exchange(at, at + transfer.bytes), transfer);
    bytes.push_back(at - before);
  }
  return bytes;
}

/// Whether they are in the order of the processes and lie one behind the other, so that they can go as they are.
bool lie_together(const kernels::Transfers &all) {
  for (std::size_t k = 1; k < all.size(); ++k)
    if (all[k].worker < all[k - 1].worker ||
        all[k].memory != static_cast<const std::byte *>(all[k - 1].memory) + all[k - 1].bytes)
      return false;
  return true;
}

void ProcessCommunicator::exchange(const kernels::Transfers &sent, const kernels::Transfers &received) {
  const auto nothing = [](i64, const kernels::Transfer &) {};
  const std::vector<i64> sent_bytes = for_processes(sent, size(), nothing);
  const std::vector<i64> received_bytes = for_processes(received, size(), nothing);
  if (lie_together(sent) && lie_together(received))
    return processes_.all_to_all(sent.empty() ? nullptr : sent.front().memory, sent_bytes,
                                 received.empty() ? nullptr : received.front().memory, received_bytes);
  Buffer<std::byte> out(sum_of(sent_bytes), "bytes on their way between processes");
  Buffer<std::byte> in(sum_of(received_bytes), "bytes on their way between processes");
  for_processes(sent, size(), [&](i64 at, const kernels::Transfer &some) {
    std::memcpy(out.data() + at, some.memory, static_cast<std::size_t>(some.bytes));
  });
  processes_.all_to_all(out.data(), sent_bytes, in.data(), received_bytes);
  for_processes(received, size(), [&](i64 at, const kernels::Transfer &some) {
    std::memcpy(some.memory, in.data() + at, static_cast<std::size_t>(some.bytes));
  });
}

} // namespace

std::unique_ptr<Communicator> make_process_communicator(Processes &processes) {
  return std::make_unique<ProcessCommunicator>(processes);
}

int choose_gpu(Processes &processes, const std::vector<i64> &may, bool shared) {
  double most = static_cast<double>(may.size());
  processes.all_reduce({&most, 1}, Reduction::max);
  std::vector<i64> mine(may);
  mine.resize(static_cast<std::size_t>(most), 0);
  if (mine.empty())
    return -1;
  const std::vector<i64> all = processes.all_gather(mine);
  std::map<i64, int> taken; // how often
  for (int process = 0;; ++process) {
    const auto begin = all.begin() + process * std::ssize(mine);
    const auto end = std::find(begin, begin + std::ssize(mine), 0);
    const auto first = std::min_element(begin, end, [&](i64 a, i64 b) { return taken[a] < taken[b]; });
    const bool gets = first != end && (shared || taken[*first] == 0);
    if (process == processes.rank())
      return gets ? static_cast<int>(first - begin) : -1;
    if (gets)
      ++taken[*first];
  }
}

} // namespace td
