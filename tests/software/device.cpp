// A libtd_cuda without CUDA: GPUs in software, for machines that have none. They have memory of their own that the host
// cannot touch, little of it if an option says so, copy what passes through as late as they may and spoil buffers as
// early as they may. The kernels are the reference's. What works on such a device strings its copies and kernels
// together as on a GPU; races between them on a GPU are not seen here.
#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <list>
#include <map>
#include <mutex>
#include <new>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include <unistd.h>

#include "core/error.hpp"
#include "core/runs.hpp"
#include "core/strides.hpp"
#include "kernels/cuda_library.hpp"
#include "kernels/memory_order.hpp"
#include "software/building.hpp"
#include "software/late_copies.hpp"
#include "software/memory.hpp"

namespace td::software {

namespace {

using kernels::DeviceArrays;
using kernels::DeviceBuilding;
using kernels::MttkrpArgs;
using kernels::NormalEquations;
using kernels::NormKind;
using kernels::SolveRecord;
using kernels::TensorView;
using kernels::reference::ReferenceBackend;

constexpr int devices = 4;
constexpr i64 free_bytes = i64{1} << 30; // where no option says how much copies may take

/// Copies that stay on the device and are counted; they may outlive the backend.
struct Kept {
  std::shared_ptr<Memory> memory;
  std::atomic<i64> bytes = 0;
};

std::shared_ptr<void> keep_block(const std::shared_ptr<Kept> &kept, i64 bytes) {
  void *block = kept->memory->allocate(bytes);
  if (block == nullptr)
    return nullptr;
  kept->bytes += bytes;
  return {block, [kept, bytes](void *p) {
            kept->memory->release(p);
            kept->bytes -= bytes;
          }};
}

class BuiltArrays final : public DeviceArrays {
public:
  BuiltArrays(std::shared_ptr<Kept> kept, const DeviceArrays &made) : kept_(std::move(kept)) {
    for (const Array &array : made.arrays()) {
      auto block = keep_block(kept_, array.bytes);
      if (block == nullptr)
        throw_error(Status::device_memory, "out of device memory: a copy that was built");
      kept_->memory->copy(block.get(), array.data, array.bytes);
      blocks_.push_back(std::move(block));
      arrays_.push_back({blocks_.back().get(), array.bytes});
    }
  }
  std::vector<Array> arrays() const override { return arrays_; }
  void download(std::span<void *const> to_host) const override {
    for (std::size_t k = 0; k < to_host.size(); ++k)
      if (to_host[k] != nullptr)
        kept_->memory->copy(to_host[k], arrays_[k].data, arrays_[k].bytes);
  }

private:
  std::shared_ptr<Kept> kept_;
  std::vector<std::shared_ptr<void>> blocks_;
  std::vector<Array> arrays_;
};

/// A caller's array.
class LentArray final : public DeviceArrays {
public:
  LentArray(std::shared_ptr<Memory> memory, const kernels::DenseView &x)
      : memory_(std::move(memory)), dims_(x.dims.begin(), x.dims.end()),
        strides_(x.strides.begin(), x.strides.end()), x_{dims_, x.type, x.values, strides_} {}
  std::vector<Array> arrays() const override { return {{x_.values, kernels::entries_of(x_) * size_of(x_.type)}}; }
  void download(std::span<void *const> to_host) const override {
    const kernels::InMemoryOrder ordered(x_);
    const auto strides = kernels::strides_of(ordered.view());
    const i64 size = size_of(x_.type);
    for_each_run(ordered.view().dims, std::span(strides).first(dims_.size()), {0, kernels::entries_of(x_)},
                 [&](i64 k, i64 offset, i64 count) {
                   for (i64 n = 0; n < count; ++n)
                     memory_->copy(static_cast<char *>(to_host[0]) + (k + n) * size,
                                   static_cast<const char *>(x_.values) + (offset + n * strides[0]) * size, size);
                 });
  }

private:
  std::shared_ptr<Memory> memory_;
  std::vector<i64> dims_, strides_;
  kernels::DenseView x_;
};

/// A library by which devices exchange: each waits for all, copies what it receives, and waits again.
class SoftwareClique {
public:
  explicit SoftwareClique(std::vector<std::shared_ptr<Memory>> memories)
      : memories_(std::move(memories)), sent_(memories_.size()),
        meeting_(static_cast<std::ptrdiff_t>(memories_.size())) {}

  void exchange(std::size_t rank, const kernels::Transfers &sent, const kernels::Transfers &received) {
    sent_[rank] = sent;
    meeting_.arrive_and_wait();
    std::vector<std::size_t> next(sent_.size(), 0);
    for (const kernels::Transfer &to : received) {
      const auto worker = static_cast<std::size_t>(to.worker);
      std::size_t &k = next[worker];
      while (sent_[worker].at(k).worker != static_cast<int>(rank))
        ++k;
      const kernels::Transfer &from = sent_[worker][k++];
      memories_[rank]->copy(to.memory, memories_[worker]->inside(from.memory), to.bytes);
    }
    meeting_.arrive_and_wait();
  }

private:
  std::vector<std::shared_ptr<Memory>> memories_;
  std::vector<kernels::Transfers> sent_;
  std::barrier<> meeting_;
};

class SoftwareLink final : public kernels::Link {
public:
  SoftwareLink(std::shared_ptr<SoftwareClique> clique, std::size_t rank) : clique_(std::move(clique)), rank_(rank) {}
  void exchange(const kernels::Transfers &sent, const kernels::Transfers &received) override {
    clique_->exchange(rank_, sent, received);
  }

private:
  std::shared_ptr<SoftwareClique> clique_;
  std::size_t rank_;
};

/// What devices that read out of each other's memories share: none goes on before all have read, but for an abort.
class SoftwareReaders {
public:
  explicit SoftwareReaders(std::vector<std::shared_ptr<Memory>> memories) : memories_(std::move(memories)) {}

  void exchange(std::size_t rank, std::span<const kernels::DirectRead> reads) {
    for (const kernels::DirectRead &read : reads)
      memories_[rank]->copy(read.to, memories_[static_cast<std::size_t>(read.worker)]->inside(read.from), read.bytes);
    std::unique_lock lock(mutex_);
    const std::size_t round = round_;
    if (++have_read_ == memories_.size()) {
      have_read_ = 0;
      ++round_;
      changed_.notify_all();
    }
    changed_.wait(lock, [&] { return aborted_ || round_ != round; });
  }
  void abort() noexcept {
    const std::lock_guard lock(mutex_);
    aborted_ = true;
    changed_.notify_all();
  }

private:
  std::vector<std::shared_ptr<Memory>> memories_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t have_read_ = 0;
  std::size_t round_ = 0;
  bool aborted_ = false;
};

class SoftwareReader final : public kernels::DirectLink {
public:
  SoftwareReader(std::shared_ptr<SoftwareReaders> all, std::size_t rank) : all_(std::move(all)), rank_(rank) {}
  void exchange(std::span<const kernels::DirectRead> reads) override { all_->exchange(rank_, reads); }
  void abort() noexcept override { all_->abort(); }

private:
  std::shared_ptr<SoftwareReaders> all_;
  std::size_t rank_;
};

/// What processes, for which threads of one stand, send each other.
class SoftwareBoard {
public:
  void post(int from, int to, i64 number, std::vector<char> bytes) {
    const std::lock_guard lock(mutex_);
    sent_[{from, to, number}] = std::move(bytes);
    changed_.notify_all();
  }
  /// Gives false where it has not been sent after some time.
  bool take(int from, int to, i64 number, std::vector<char> &bytes) {
    constexpr std::chrono::milliseconds patience(2);
    std::unique_lock lock(mutex_);
    std::map<Message, std::vector<char>>::iterator found;
    if (!changed_.wait_for(lock, patience, [&] { return (found = sent_.find({from, to, number})) != sent_.end(); }))
      return false;
    bytes = std::move(found->second);
    sent_.erase(found);
    return true;
  }

private:
  using Message = std::tuple<int, int, i64>; // from, to, and how many went between the two before it
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<Message, std::vector<char>> sent_;
};

/// A stored form where kernels find it.
class InsideView {
public:
  InsideView(const Memory &memory, const TensorView &x) : x_(x) {
    const auto move = [&](auto &...arrays) { ((arrays = memory.inside(arrays)), ...); };
    std::visit(
        [&](auto &view) {
          using View = std::decay_t<decltype(view)>;
          move(view.values);
          if constexpr (std::is_same_v<View, kernels::CooView>) {
            for (std::size_t m = 0; m < view.dims.size(); ++m)
              indices_.push_back(memory.inside(view.indices[m]));
            view.indices = indices_.data();
          } else if constexpr (std::is_same_v<View, kernels::BlcoView>) {
            move(view.keys, view.block_begin, view.block_base);
          } else if constexpr (std::is_same_v<View, kernels::SortedView>) {
            move(view.keys, view.row_index, view.row_begin, view.tile_begin, view.tile_base, view.tile_light);
          }
        },
        x_);
  }
  InsideView(const InsideView &) = delete;
  InsideView &operator=(const InsideView &) = delete;
  operator const TensorView &() const noexcept { return x_; }

private:
  TensorView x_;
  std::vector<const i64 *> indices_;
};

/// The same of what MTTKRP is given beside it.
class InsideArgs {
public:
  InsideArgs(const Memory &memory, const MttkrpArgs &args) : args_(args) {
    for (const ConstMatrix &factor : args.factors)
      factors_.push_back(memory.inside(factor));
    for (const double *exponents : args.exponents)
      exponents_.push_back(memory.inside(exponents));
    args_.factors = factors_;
    args_.exponents = exponents_;
    args_.out = memory.inside(args.out);
  }
  InsideArgs(const InsideArgs &) = delete;
  InsideArgs &operator=(const InsideArgs &) = delete;
  operator const MttkrpArgs &() const noexcept { return args_; }

private:
  MttkrpArgs args_;
  std::vector<ConstMatrix> factors_;
  std::vector<const double *> exponents_;
};

class SoftwareBackend final : public BuildingBackend {
public:
  SoftwareBackend(std::shared_ptr<Memory> memory, const kernels::DeviceSpec &spec)
      : memory_(std::move(memory)), limit_(spec.memory_limit > 0 ? spec.memory_limit : free_bytes) {
    set_exchange(spec.exchange);
    kept_->memory = memory_;
  }

  kernels::Chip chip() const override {
    kernels::Chip chip;
    chip.memory_bytes = limit_;
    return chip;
  }
  std::string describe() const override { return fmt::format("cuda:{}, in software", memory_->ordinal()); }

  // ---- memory ----

  void *allocate(i64 bytes, const char *what) override {
    if (void *memory = memory_->allocate(bytes))
      return memory;
    throw_error(Status::device_memory, "out of device memory: {} bytes for {}", bytes, what);
  }
  void *try_allocate(i64 bytes, const char *) override { return memory_->allocate(bytes); }
  void release(void *memory) noexcept override {
    forget_arrivals_in(memory);
    memory_->release(memory);
  }
  void wait() override { arrive(); }
  void upload(void *to, const void *from_host, i64 bytes) override {
    const kernels::InPhase phase(*this, kernels::Phase::host_copies);
    arrive();
    memory_->copy(to, from_host, bytes);
  }
  void download(void *to_host, const void *from, i64 bytes) override {
    const kernels::InPhase phase(*this, kernels::Phase::host_copies);
    arrive();
    memory_->copy(to_host, from, bytes);
  }
  void begin_download(void *to_host, const void *from, i64 bytes) override {
    arriving_.resize(static_cast<std::size_t>(bytes));
    download(arriving_.data(), from, bytes);
    arriving_to_ = to_host;
    std::memset(to_host, 0x7f, arriving_.size()); // nobody may look before it is there
  }
  void end_download() override { std::memcpy(arriving_to_, arriving_.data(), arriving_.size()); }
  const void *memory() const noexcept override { return memory_.get(); }
  std::shared_ptr<void> keep(i64 bytes, const char *) override {
    return bytes > room() ? nullptr : keep_block(kept_, bytes);
  }
  i64 room() const override { return limit_ - kept_->bytes; }
  void may_evict(std::weak_ptr<kernels::Evictable> evictable) override { evictables_.push_back(std::move(evictable)); }
  void make_room(i64 bytes) override {
    for (const auto &evictable : evictables_)
      if (const auto there = evictable.lock(); there != nullptr && room() < bytes)
        there->evict(memory(), bytes, false);
  }

  void fetch(int buffer, void *to, const void *from_host, i64 bytes) override {
    copies_.fetch(buffer, memory_->inside(to), from_host, bytes);
  }
  void await(int buffer) noexcept override { copies_.await(buffer); }
  void done(int buffer) override { copies_.done(buffer); }

  void borrow(const void *array, std::string_view name) override {
    if (!memory_->holds(array))
      throw_error(Status::argument, "{}: expected an array in the memory of cuda:{}, as space = TD_DEVICE says", name,
                  memory_->ordinal());
  }
  bool holds(const void *array) const override { return memory_->holds(array); }
  std::shared_ptr<const DeviceArrays> lend(const kernels::DenseView &array, std::string_view name) override {
    const Range reach = reach_of(array.dims, array.strides, array.type);
    borrow(array.values, name);
    borrow(static_cast<const char *>(array.values) + reach.end * size_of(array.type) - 1, name);
    return std::make_shared<LentArray>(memory_, array);
  }
  void sum_elements(const kernels::DenseView &x, double scale, i64 block, kernels::ElementSums *sums) override {
    arrive();
    const i64 elements = kernels::entries_of(x);
    for (i64 b = 0; b * block < elements; ++b)
      sums[b] = kernels::sums_of({x.dims, x.type, at(x.values), x.strides, x.largest},
                                 {b * block, std::min(elements, (b + 1) * block)}, scale);
  }
  void find_rows(const i64 *row_index, const i64 *row_begin, std::span<const kernels::RowQuery> wanted,
                 std::span<kernels::RowPlace> found) override {
    arrive();
    ReferenceBackend::find_rows(at(row_index), at(row_begin), wanted, found);
  }
  void follow(void *stream) override {
    if (stream != nullptr)
      throw_error(Status::argument, "stream: no stream of cuda:{}", memory_->ordinal());
  }

  // ---- several devices: a copy that did not wait for what it copies is refused ----

  bool reach(Device &other) override { return dynamic_cast<SoftwareBackend *>(&other) != nullptr; }
  void copy_from(Device &other, void *to, const void *from, i64 bytes) override {
    auto &device = static_cast<SoftwareBackend &>(other);
    if (&device != this && seen_[&device] != device.written_)
      throw_error(Status::internal, "{} copies from {} without having waited for it", describe(), other.describe());
    arrive();
    const void *const there = device.memory_->inside(from);
    is_beside_ ? be_late(to, there, static_cast<std::size_t>(bytes)) : memory_->copy(to, there, bytes);
  }
  void begin_beside() override { is_beside_ = true; }
  void end_beside() noexcept override { is_beside_ = false; }
  void join_beside() noexcept override {
    for (const auto &[to, bytes] : late_)
      memory_->copy(to, bytes.data(), std::ssize(bytes));
    late_.clear();
    for (const Lent &lent : lent_)
      if (std::memcmp(lent.from, lent.bytes.data(), lent.bytes.size()) != 0)
        trouble_ = "what is sent beside other work was written before that had joined";
    lent_.clear();
    arrivals_.splice(arrivals_.end(), arrivals_beside_);
  }
  void raise(kernels::Signal signal) override { written_ += signal == kernels::Signal::written ? 1 : 0; }
  void wait_for(Device &other, kernels::Signal signal) override {
    auto &device = static_cast<SoftwareBackend &>(other);
    if (signal == kernels::Signal::written)
      seen_[&device] = device.written_;
  }
  std::vector<std::unique_ptr<kernels::Link>> link(std::span<Device *const> devices, std::string &) override {
    std::vector<std::shared_ptr<Memory>> memories;
    for (Device *const device : devices)
      memories.push_back(static_cast<SoftwareBackend *>(device)->memory_);
    const auto clique = std::make_shared<SoftwareClique>(memories);
    std::vector<std::unique_ptr<kernels::Link>> ends;
    for (std::size_t rank = 0; rank < memories.size(); ++rank)
      ends.push_back(std::make_unique<SoftwareLink>(clique, rank));
    return ends;
  }

  std::vector<std::unique_ptr<kernels::DirectLink>> link_directly(std::span<Device *const> devices) override {
    std::vector<std::shared_ptr<Memory>> memories;
    std::set<int> ordinals; // each once, as for a GPU
    for (Device *const device : devices) {
      memories.push_back(static_cast<SoftwareBackend *>(device)->memory_);
      ordinals.insert(memories.back()->ordinal());
    }
    std::vector<std::unique_ptr<kernels::DirectLink>> ends;
    if (ordinals.size() < std::max<std::size_t>(devices.size(), 2))
      return ends;
    const auto all = std::make_shared<SoftwareReaders>(memories);
    for (std::size_t rank = 0; rank < memories.size(); ++rank)
      ends.push_back(std::make_unique<SoftwareReader>(all, rank));
    return ends;
  }

  std::unique_ptr<kernels::Link> link_peers(kernels::Peers &peers, std::string &why) override {
    if (peers.largest(board_ == nullptr ? 1 : 0) != 0) {
      struct {
        pid_t process = getpid();
        std::shared_ptr<SoftwareBoard> *board = nullptr;
      } first;
      auto board = std::make_shared<SoftwareBoard>();
      first.board = &board;
      peers.broadcast(&first, sizeof first);
      const bool reached = first.process == getpid();
      if (reached)
        board_ = *first.board;
      const auto size = static_cast<std::size_t>(peers.size());
      sent_.assign(size, 0);
      received_.assign(size, 0);
      if (peers.largest(reached ? 0 : 1) != 0) { // all have the board by now
        why = "GPUs in software exchange within a process";
        board_ = nullptr;
        return nullptr;
      }
    }
    return std::make_unique<SoftwarePeers>(*this, peers);
  }

  // ---- kernels ----

  std::unique_ptr<DeviceBuilding> begin_building(const EntriesView &entries, bool together,
                                                 const kernels::KeyMoves *keys) override {
    if (static_cast<double>(entries.nnz) * 64 > static_cast<double>(room()))
      return nullptr;
    arrive();
    std::vector<const void *> columns; // a caller's, on the host or here
    for (int m = 0; m < entries.order(); ++m)
      columns.push_back(at(entries.indices[m]));
    EntriesView inside = entries;
    inside.indices = columns.data();
    inside.values = at(entries.values);
    return BuildingBackend::begin_building(inside, together, keys);
  }
  std::shared_ptr<const DeviceArrays> built(std::shared_ptr<const DeviceArrays> arrays) override {
    return std::make_shared<BuiltArrays>(kept_, *arrays);
  }
  bool gathers_f32(const TensorView &x) const override { return std::holds_alternative<kernels::SortedView>(x); }
  void to_f32(ConstMatrix a, Matrix to, double *exponents) override {
    arrive();
    ReferenceBackend::to_f32(at(a), at(to), at(exponents));
  }
  void gather_transposed(ConstMatrix from, const i64 *rows, Matrix to) override {
    arrive();
    ReferenceBackend::gather_transposed(at(from), at(rows), at(to));
  }
  void scatter_transposed(ConstMatrix from, const i64 *rows, Matrix to) override {
    arrive();
    ReferenceBackend::scatter_transposed(at(from), at(rows), at(to));
  }
  void gather_rows(ConstMatrix from, const i64 *rows, Matrix to) override {
    arrive();
    ReferenceBackend::gather_rows(at(from), at(rows), at(to));
  }
  void add_rows(ConstMatrix from, const i64 *rows, Matrix to) override {
    arrive();
    ReferenceBackend::add_rows(at(from), at(rows), at(to));
  }
  void set_zero(Matrix a) override {
    arrive();
    ReferenceBackend::set_zero(at(a));
  }
  void first_not_finite(ConstMatrix a, i64 *out) override {
    arrive();
    ReferenceBackend::first_not_finite(at(a), at(out));
  }
  void mttkrp(const TensorView &outside, const MttkrpArgs &outside_args) override {
    arrive();
    const InsideView inside(*memory_, outside);
    const InsideArgs inside_args(*memory_, outside_args);
    const TensorView &x = inside;
    const MttkrpArgs &args = inside_args;
    const bool cuts = std::holds_alternative<kernels::SortedView>(x) || std::holds_alternative<kernels::DenseView>(x);
    const auto other = static_cast<std::size_t>(args.mode == 0 ? 1 : 0);
    const ConstMatrix factor = args.factors[other];
    const i64 cut = cuts && factor.rows > 1 ? (args.entries.size() + 7 * args.rows.size()) % factor.rows : 0;
    if (cut == 0)
      return ReferenceBackend::mttkrp(x, args);
    // The kernels of a GPU cut the sum of a row of such forms by all that a call works on, and so does this one.
    std::vector<ConstMatrix> factors(args.factors.begin(), args.factors.end());
    MttkrpArgs part = args;
    part.factors = factors;
    for (const Range rows : {Range{0, cut}, Range{cut, factor.rows}}) {
      std::vector<std::byte> some(static_cast<std::size_t>(factor.rows * factor.ld * size_of(factor.type)));
      const i64 row_bytes = factor.ld * size_of(factor.type);
      std::copy_n(static_cast<const std::byte *>(factor.data) + rows.begin * row_bytes,
                  (rows.size() - 1) * row_bytes + factor.cols * size_of(factor.type),
                  some.data() + rows.begin * row_bytes);
      factors[other].data = some.data();
      ReferenceBackend::mttkrp(x, part);
      part.add = true;
    }
  }
  void mttkrp_cells(const kernels::CellsView &x, const MttkrpArgs &args) override {
    arrive();
    ReferenceBackend::mttkrp_cells({x.dims, at(x.rows)}, InsideArgs(*memory_, args));
  }
  void unfolding_normal(const TensorView &x, int mode, ConstMatrix omega, Matrix y, bool add) override {
    arrive();
    ReferenceBackend::unfolding_normal(InsideView(*memory_, x), mode, at(omega), at(y), add);
  }
  void gram(ConstMatrix a, double *g) override {
    arrive();
    ReferenceBackend::gram(at(a), at(g));
  }
  void prepare_solve(const kernels::SolveColumns &columns, double ridge, double cutoff,
                     const kernels::PreparedSolve &out) override {
    arrive();
    ReferenceBackend::prepare_solve(columns, ridge, cutoff, out);
    if (!is_beside_)
      return;
    const auto rank_bytes = static_cast<std::size_t>(columns.rank) * sizeof(double);
    for (double *const matrix : {out.v, out.f})
      be_late(matrix, matrix, rank_bytes * static_cast<std::size_t>(columns.rank));
    for (double *const vector : {out.scales.right, out.scales.before, out.scales.solved})
      be_late(vector, vector, rank_bytes);
    be_late(out.record, out.record, sizeof *out.record);
  }
  void hadamard(std::span<const double *const> grams, i64 rank, double ridge, double *v) override {
    arrive();
    ReferenceBackend::hadamard(all_at(grams), rank, ridge, at(v));
  }
  void factor_normal(const double *v, i64 rank, double cutoff, double *f, SolveRecord *record) override {
    arrive();
    ReferenceBackend::factor_normal(at(v), rank, cutoff, at(f), at(record));
  }
  void solve_scales(const kernels::SolveColumns &columns, const kernels::SolveScalesOut &out) override {
    arrive();
    kernels::SolveColumns inside = columns;
    const auto grams = all_at(columns.grams), scales = all_at(columns.scales);
    inside.grams = grams;
    inside.scales = scales;
    inside.own = at(columns.own);
    inside.weights = at(columns.weights);
    ReferenceBackend::solve_scales(inside, {at(out.right), at(out.before), at(out.solved)});
  }
  void solve_normal(const NormalEquations &equations, ConstMatrix m, const kernels::SolveScales &scales,
                    Matrix a) override {
    arrive();
    ReferenceBackend::solve_normal({equations.rank, at(equations.v), at(equations.f), at(equations.record)}, at(m),
                                   {at(scales.right), at(scales.before), at(scales.solved)}, at(a));
  }
  void finish_columns(i64 rank, const double *solved, const double *largest, double *weights, double *scales,
                      double *gram) override {
    arrive();
    ReferenceBackend::finish_columns(rank, at(solved), at(largest), at(weights), at(scales), at(gram));
  }
  void multiply(ConstMatrix m, const double *p, Matrix a) override {
    arrive();
    ReferenceBackend::multiply(at(m), at(p), at(a));
  }
  void column_norms(ConstMatrix a, NormKind kind, double *out) override {
    arrive();
    ReferenceBackend::column_norms(at(a), kind, at(out));
  }
  void weights_from_norms(NormKind kind, i64 rank, double *norms) override {
    arrive();
    ReferenceBackend::weights_from_norms(kind, rank, at(norms));
  }
  void divide_columns(Matrix a, const double *d) override {
    arrive();
    ReferenceBackend::divide_columns(at(a), at(d));
  }
  void column_dots(ConstMatrix a, ConstMatrix b, double *out) override {
    arrive();
    ReferenceBackend::column_dots(at(a), at(b), at(out));
  }
  void combine_rows(ConstMatrix parts, kernels::Combine how, void *out) override {
    arrive();
    ReferenceBackend::combine_rows(at(parts), how, at(out));
  }
  void random_uniform(Matrix a, u64 seed, int mode, i64 first_row) override {
    arrive();
    ReferenceBackend::random_uniform(at(a), seed, mode, first_row);
  }
  void compare(const TensorView &x, const double *weights, std::span<const ConstMatrix> factors, Range entries,
               double *out) override {
    arrive();
    ReferenceBackend::compare(InsideView(*memory_, x), at(weights), all_at(factors), entries, at(out));
  }

private:
  /// Where kernels and copies find it.
  template <class T> T at(T there) const noexcept { return memory_->inside(there); }
  template <class T> std::vector<T> all_at(std::span<const T> there) const {
    std::vector<T> all;
    for (const T &some : there)
      all.push_back(at(some));
    return all;
  }

  /// What is at `from`, in this memory, comes to `to` when join_beside is called: nobody may look before.
  void be_late(void *to, const void *from, std::size_t bytes) {
    const auto *const begin = static_cast<const char *>(memory_->inside(from));
    late_.push_back({static_cast<char *>(to), {begin, begin + bytes}});
    std::memset(memory_->inside(to), 0x7f, bytes);
  }

  /// This process's end of a link. As on a GPU, an exchange is only asked for: what comes is there when work that
  /// follows it begins, or, of an exchange beside the work, when that follows what had joined it. Until then its memory
  /// holds nonsense. What is sent leaves at once, whatever becomes of the process.
  class SoftwarePeers final : public kernels::Link {
  public:
    SoftwarePeers(SoftwareBackend &device, kernels::Peers &peers) : device_(device) { device_.peers_ = &peers; }
    SoftwarePeers(const SoftwarePeers &) = delete;
    SoftwarePeers &operator=(const SoftwarePeers &) = delete;
    ~SoftwarePeers() override { device_.peers_ = nullptr; }
    void exchange(const kernels::Transfers &sent, const kernels::Transfers &received) override {
      device_.exchange_with_peers(sent, received);
    }
    void abort() noexcept override {
      device_.arrivals_.clear();
      device_.arrivals_beside_.clear();
      device_.lent_.clear();
      device_.board_ = nullptr;
    }

  private:
    SoftwareBackend &device_;
  };
  /// What another process sends, and where it goes to; null: nowhere any more.
  struct Arrival {
    int from;
    i64 number;
    char *to;
    i64 bytes;
  };
  /// What is sent beside other work, as it was.
  struct Lent {
    const char *from;
    std::vector<char> bytes;
  };

  void exchange_with_peers(const kernels::Transfers &sent, const kernels::Transfers &received) {
    if (board_ == nullptr)
      throw_error(Status::device, "an exchange after one that failed");
    arrive();
    for (const kernels::Transfer &from : sent) {
      const auto *const begin = static_cast<const char *>(memory_->inside(from.memory));
      const std::vector<char> bytes(begin, begin + from.bytes);
      if (is_beside_)
        lent_.push_back({begin, bytes});
      board_->post(peers_->rank(), from.worker, sent_[static_cast<std::size_t>(from.worker)]++, bytes);
    }
    for (const kernels::Transfer &to : received) {
      auto *const begin = static_cast<char *>(to.memory);
      std::memset(memory_->inside(begin), 0x7f, static_cast<std::size_t>(to.bytes));
      (is_beside_ ? arrivals_beside_ : arrivals_)
          .push_back({to.worker, received_[static_cast<std::size_t>(to.worker)]++, begin, to.bytes});
    }
  }

  /// Waits as a GPU would, and whoever waits for that.
  void arrive() {
    if (!trouble_.empty())
      throw_error(Status::internal, "{}", std::exchange(trouble_, {}));
    for (; !arrivals_.empty(); arrivals_.pop_front()) {
      const Arrival next = arrivals_.front();
      std::vector<char> bytes;
      while (!board_->take(next.from, peers_->rank(), next.number, bytes))
        if (!peers_->on_the_way())
          peers_->largest(0); // throws what all throw
      if (std::ssize(bytes) != next.bytes)
        throw_error(Status::internal, "process {} expects {} bytes of {}, which sends {}", peers_->rank(), next.bytes,
                    next.from, bytes.size());
      if (next.to != nullptr)
        memory_->copy(next.to, bytes.data(), next.bytes);
    }
  }

  /// A block is freed in the order of the work: what it was to receive goes nowhere.
  void forget_arrivals_in(const void *memory) noexcept {
    const char *const begin = static_cast<const char *>(memory);
    const i64 bytes = arrivals_.empty() && arrivals_beside_.empty() ? 0 : memory_->bytes_of(memory);
    const auto is_in = [&](const Arrival &some) { return some.to >= begin && some.to < begin + bytes; };
    for (Arrival &some : arrivals_)
      if (is_in(some))
        some.to = nullptr;
    for (Arrival &some : arrivals_beside_)
      if (is_in(some)) {
        some.to = nullptr;
        trouble_ = "memory was freed that an exchange beside the work receives into";
      }
  }

  std::shared_ptr<Memory> memory_;
  i64 limit_;
  std::shared_ptr<Kept> kept_ = std::make_shared<Kept>();
  LateCopies copies_;
  std::vector<std::byte> arriving_; // a download that has begun
  void *arriving_to_ = nullptr;
  std::vector<std::weak_ptr<kernels::Evictable>> evictables_;
  std::shared_ptr<SoftwareBoard> board_;                   // of processes; null: there is no link
  kernels::Peers *peers_ = nullptr;                        // while there is a link
  std::vector<i64> sent_, received_;                       // [processes] by that board
  std::list<Arrival> arrivals_, arrivals_beside_;          // that have yet to come
  std::vector<Lent> lent_;                                 // to exchanges beside the work
  std::string trouble_;                                    // that the next work is to tell of
  bool is_beside_ = false;                                 // what is exchanged or prepared now
  std::vector<std::pair<char *, std::vector<char>>> late_; // what was, where it goes to
  std::atomic<int> written_ = 0;                           // signals raised
  std::map<const SoftwareBackend *, int> seen_;            // of those of others, the last one waited for
};

/// The memory of a GPU, the same for all contexts; that of a virtual one, of its number among those of its GPU.
std::shared_ptr<Memory> memory_of(int ordinal, int repeat = 0) {
  static std::mutex mutex;
  static std::map<std::pair<int, int>, std::shared_ptr<Memory>> all;
  const std::lock_guard lock(mutex);
  auto &memory = all[{ordinal, repeat}];
  if (memory == nullptr)
    memory = std::make_shared<Memory>(ordinal);
  return memory;
}

std::vector<std::shared_ptr<kernels::Backend>> open(std::string_view build, const kernels::DeviceSpec &spec) {
  if (build != TD_VERSION)
    throw_error(Status::backend_unavailable, "libtd_cuda is of version {}, libtd of {}: expected the same", TD_VERSION,
                build);
  kernels::DeviceSpec all = spec;
  if (all.devices.empty()) {
    all.devices.resize(devices);
    std::iota(all.devices.begin(), all.devices.end(), 0);
  }
  std::vector<std::shared_ptr<kernels::Backend>> backends;
  for (std::size_t worker = 0; worker < all.devices.size(); ++worker) {
    const int ordinal = all.devices[worker];
    if (ordinal >= devices)
      throw_error(Status::backend_unavailable, "device cuda:{}: this machine has {} GPUs, counted from 0", ordinal,
                  devices);
    backends.push_back(std::make_shared<SoftwareBackend>(memory_of(ordinal, all.repeats_before(worker)), spec));
  }
  return backends;
}

/// The runtime's current GPU, for the calls below.
thread_local int current_gpu = 0;

} // namespace

} // namespace td::software

// What a caller who has arrays on a GPU calls of CUDA's runtime: its names, for arrays in these GPUs' memory.
extern "C" {

__attribute__((visibility("default"))) int cudaSetDevice(int ordinal) noexcept {
  td::software::current_gpu = ordinal;
  return 0;
}

__attribute__((visibility("default"))) int cudaMalloc(void **memory, std::size_t bytes) noexcept {
  *memory = td::software::memory_of(td::software::current_gpu)->allocate(static_cast<td::i64>(bytes));
  return *memory == nullptr ? 2 : 0;
}

__attribute__((visibility("default"))) int cudaFree(void *memory) noexcept {
  for (int ordinal = 0; ordinal < td::software::devices; ++ordinal)
    if (td::software::memory_of(ordinal)->holds(memory))
      td::software::memory_of(ordinal)->release(memory);
  return 0;
}

__attribute__((visibility("default"))) int cudaMemcpy(void *to, const void *from, std::size_t bytes, int) noexcept {
  td::software::memory_of(td::software::current_gpu)->copy(to, from, static_cast<td::i64>(bytes));
  return 0;
}

} // extern "C"

extern "C" __attribute__((visibility("default"))) std::int32_t
td_cuda_open(const char *build, const td::kernels::DeviceSpec *spec,
             std::vector<std::shared_ptr<td::kernels::Backend>> *out, std::vector<td::i64> *seen,
             std::string *why) noexcept {
  using td::Status;
  try {
    for (int ordinal = 0; ordinal < td::software::devices && seen != nullptr; ++ordinal)
      seen->push_back(ordinal + 1);
    if (out != nullptr)
      *out = td::software::open(build, *spec);
    return 0;
  } catch (const td::Error &error) {
    *why = error.what();
    return static_cast<std::int32_t>(error.status());
  } catch (const std::bad_alloc &) {
    *why = "out of host memory";
    return static_cast<std::int32_t>(Status::host_memory);
  }
}

// Memory of a GPU for a caller's own arrays, as a test in another language needs it.
extern "C" __attribute__((visibility("default"))) void *td_software_allocate(std::int32_t ordinal, std::int64_t bytes) {
  return td::software::memory_of(ordinal)->allocate(bytes);
}

extern "C" __attribute__((visibility("default"))) void td_software_release(std::int32_t ordinal, void *array) {
  td::software::memory_of(ordinal)->release(array);
}

/// One of to and from is in the GPU's memory.
extern "C" __attribute__((visibility("default"))) void td_software_copy(std::int32_t ordinal, void *to,
                                                                        const void *from, std::int64_t bytes) {
  td::software::memory_of(ordinal)->copy(to, from, bytes);
}

extern "C" __attribute__((visibility("default"))) std::int64_t td_software_fail(std::int32_t ordinal,
                                                                                std::int64_t after) {
  return td::software::memory_of(ordinal)->fail_after(after);
}
