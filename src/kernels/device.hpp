// A device as the layers above know it: its memory, the order of work on it, and what it may evict.
#pragma once

#include <array>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/views.hpp"

namespace td::kernels {

/// How the workers of a context exchange what is in the memories of their devices, in the order of option "exchange".
enum class Exchange {
  automatic, // peer where all reach each other's memory, else nccl, else host
  nccl,      // by NVIDIA's library
  peer,      // by copies from one device's memory to another's
  host,      // by way of the host
};
std::string_view name_of(Exchange exchange) noexcept;

/// What a device says of its work so far, to others that wait for it.
enum class Signal { written, read };

/// Bytes that go to another worker, or come from it.
struct Transfer {
  int worker = 0;
  void *memory = nullptr;
  i64 bytes = 0;
};
using Transfers = std::vector<Transfer>;

/// One worker's end of what a library has made for some devices to exchange by.
class Link {
public:
  virtual ~Link() = default;
  /// All workers call it, each from a thread of its own. What k sends to m is, in this order, what m receives from k.
  /// Asynchronous, in the order of the device's work. Where it fails for one it fails for all, now or when they wait
  /// for their devices, and the link is of no more use.
  virtual void exchange(const Transfers &sent, const Transfers &received) = 0;
  /// Ends what this worker's device has been asked for and waits for others, who are told of the failure by other ways.
  /// The link is of no more use.
  virtual void abort() noexcept {}
};

/// Bytes that are read out of the memory of another worker's device.
struct DirectRead {
  int worker = 0;
  const void *from = nullptr;
  void *to = nullptr;
  i64 bytes = 0;
};

/// One worker's end of exchanges that devices of one process make by themselves: on each a kernel waits for what the
/// others have written, reads it out of their memories and ends when they have read, too. It takes less time than
/// copies that wait for signals, as long as there is little to read.
class DirectLink {
public:
  static constexpr std::size_t most_reads = 16; // of a worker in one exchange

  virtual ~DirectLink() = default;
  /// All workers call it, each from a thread of its own, and none before all have asked their devices for what is to be
  /// read. Asynchronous, in the order of the device's work.
  virtual void exchange(std::span<const DirectRead> reads) = 0;
  /// Frees all that wait, on devices and threads; what is exchanged afterwards is not read.
  virtual void abort() noexcept = 0;
};

/// The processes of a link, each with a device of its own, agree by it.
class Peers {
public:
  virtual ~Peers() = default;
  virtual int rank() const noexcept = 0;
  virtual int size() const noexcept = 0;
  /// Copies the first process's bytes to all.
  virtual void broadcast(void *data, i64 bytes) = 0;
  /// Gives the largest of the numbers that the processes give. Throws where another one has failed, or what they meet
  /// by fails here.
  virtual int largest(int number) = 0;
  /// Meets those who wait for this process wherever they are, and lets them wait on. A process that waits for its
  /// device, which may wait for the others', calls it now and then, however often: false says that one has failed, as
  /// the functions above say from then on.
  virtual bool on_the_way() = 0;
};

/// Copies on a device that can be evicted.
class Evictable {
public:
  virtual ~Evictable() = default;
  /// Evicts at least so many bytes of a memory(), if it has them; called from any thread. They are free when the calls
  /// that work on them have ended. Where the room is asked for temporarily, copies may come back later.
  virtual void evict(const void *memory, i64 bytes, bool temporary) = 0;
};

/// What a worker's time goes to: work on the numbers, copies between the host and the device as far as work waits for
/// them, what is exchanged with other workers, and waiting for these.
enum class Phase { compute, host_copies, exchange, idle };
inline constexpr std::size_t phases = 4;
/// The part of an iteration that a phase is of.
enum class Stage { mttkrp, rest };
/// Seconds by stage and phase.
using PhaseSeconds = std::array<std::array<double, phases>, 2>;

class PhaseMeter;

/// One worker's device. Functions may run asynchronously in call order; download waits for what came before. A device
/// is used by one thread at a time. Memory errors are thrown as Status::host_memory or device_memory.
class Device {
public:
  virtual ~Device() = default;
  virtual std::string describe() const = 0; // "cpu, 2 threads, AVX-512"

  virtual void *allocate(i64 bytes, const char *what) = 0;
  /// Gives null where a device has too little free memory, for which allocate would evict.
  virtual void *try_allocate(i64 bytes, const char *what) { return allocate(bytes, what); }
  virtual void release(void *memory) noexcept = 0;
  /// The copy is complete when this returns.
  virtual void upload(void *to, const void *from_host, i64 bytes) = 0;
  virtual void download(void *to_host, const void *from, i64 bytes) = 0;
  /// download, of which end_download alone waits, and not for what is called in between. One at a time.
  virtual void begin_download(void *to_host, const void *from, i64 bytes) { download(to_host, from, bytes); }
  virtual void end_download() {}
  /// All that was asked for so far is done when this returns.
  virtual void wait() {}

  /// Gives a number to the moment at which all that was asked for so far is done.
  virtual void mark(std::size_t moment);
  /// The time from one marked moment to another; waits for both.
  virtual double seconds_between(std::size_t first, std::size_t second);

  /// Names the memory that the kernels work on: null for the host's, else the same for all backends of one GPU.
  virtual const void *memory() const noexcept { return nullptr; }
  /// Whether that is memory which the host does not work in: a GPU's.
  bool has_own_memory() const noexcept { return memory() != nullptr; }

  // ---- for memory() that is not the host's: copies that stay there, and copies that pass through ----

  /// Memory for a copy that serves all backends with this memory() and may outlive the backend. Null if it does not fit
  /// the memory or what the backend may keep.
  virtual std::shared_ptr<void> keep(i64 bytes, const char *what);

  /// How many bytes keep can still give, with some memory left to work in.
  virtual i64 room() const;

  /// What may be evicted when an allocation fails.
  virtual void may_evict(std::weak_ptr<Evictable>) {}
  /// Evicts now, until keep can give so many bytes or nobody has more.
  virtual void make_room(i64 /*bytes*/) {}

  /// Makes copies out of this host memory as fast as they can be while the result lives; null where there is nothing
  /// to do or nothing can be done.
  virtual std::shared_ptr<const void> pin(const void *, i64 /*bytes*/) { return nullptr; }

  // Copies to buffers beside the kernels. Buffers have small numbers; each goes round fetch, await, work, done.

  /// Copies into memory of this buffer when the work before its last done() has ended.
  virtual void fetch(int buffer, void *to, const void *from_host, i64 bytes);
  /// The same of rows of so many bytes, which are `pitch` bytes apart on the host and follow each other in the buffer.
  virtual void fetch_rows(int buffer, void *to, const void *from_host, i64 bytes, i64 rows, i64 pitch);
  /// What is called from now on works when all that was fetched into the buffer is there.
  virtual void await(int /*buffer*/) noexcept {}
  /// Says that what was called so far works on the buffer, or allocated it.
  virtual void done(int /*buffer*/) {}

  /// Comes before a caller's array in this memory() is copied: what is called from now on works after all that the
  /// caller has started on the device, or on the stream that is followed. Throws Status::argument, naming the array, if
  /// it is somewhere else.
  virtual void borrow(const void *array, std::string_view name);
  /// Whether an address is one of this memory() that the host cannot read.
  virtual bool holds(const void *) const { return false; }
  /// The caller's stream, which must outlive this or be followed no longer; null: none. Throws Status::argument if it
  /// is no stream of the device.
  virtual void follow(void *stream);

  // ---- what its time goes to, while a PhaseMeter measures that ----

  /// What is asked for from now on is of this phase, or stage. These give the one before.
  Phase enter_phase(Phase next);
  Stage enter_stage(Stage next);

  // ---- for several workers, whose devices exchange what is in their memories ----

  /// What the context asks for. A device that works in the host's memory has `host` where others have memory of their
  /// own.
  Exchange exchange() const noexcept { return exchange_; }
  void set_exchange(Exchange exchange) noexcept { exchange_ = exchange; }
  /// Lets copy_from copy out of the other's memory() from now on; false where that cannot be.
  virtual bool reach(Device & /*other*/) { return false; }
  virtual void copy_from(Device &other, void *to, const void *from, i64 bytes);
  /// Says that what was called so far has, when it is done, written or read what others wait for.
  virtual void raise(Signal) {}
  /// What is called from now on works after what the other was asked for before it last raised the signal: before this
  /// call, as the caller sees to.
  virtual void wait_for(Device & /*other*/, Signal) {}
  /// What is exchanged until end_beside, by copy_from, raise, wait_for and links, and what Kernels::prepare_solve
  /// computes, follows what was asked for before, and what is asked for afterwards need not wait for it until
  /// join_beside. A device may do it in order with the rest.
  virtual void begin_beside() {}
  virtual void end_beside() noexcept {}
  /// What is called from now on works after all that went on beside.
  virtual void join_beside() noexcept {}
  /// A worker's end each of a link between devices, of which this is the first; it is made once for the same devices.
  /// None, with the reason, where it cannot be.
  virtual std::vector<std::unique_ptr<Link>> link(std::span<Device *const> devices, std::string &why);
  /// The same for exchanges by kernels, of devices that all reach each other; none where that cannot be.
  virtual std::vector<std::unique_ptr<DirectLink>> link_directly(std::span<Device *const> devices);
  /// This process's end of a link between the devices of several processes, which all call it; they are connected once,
  /// and anew where a link broke. Null for all where it cannot be for one, which has a reason. While it lives, whatever
  /// waits for the device on the host throws where another process has failed; the peers must outlive it.
  virtual std::unique_ptr<Link> link_peers(Peers &peers, std::string &why);

private:
  friend class PhaseMeter;
  std::vector<i64> moments_; // of a device that works at once, in nanoseconds
  PhaseMeter *meter_ = nullptr;
  Exchange exchange_ = Exchange::automatic;
};

/// It measures, while it lives, what a device's time goes to: by marks where one phase ends and another begins, so that
/// seconds of all phases add up to the time that passed on the device. They are read when asked for, an iteration late,
/// so that nothing waits for a device to come that far.
class PhaseMeter {
public:
  explicit PhaseMeter(Device &device);
  PhaseMeter(const PhaseMeter &) = delete;
  PhaseMeter &operator=(const PhaseMeter &) = delete;
  ~PhaseMeter() { device_.meter_ = nullptr; }

  /// An iteration ends and the next begins. What the one before took has to be read by now.
  void cut();
  /// What the iteration took that the last cut ended.
  PhaseSeconds read();

private:
  friend class Device;
  struct Key {
    Stage stage = Stage::rest;
    Phase phase = Phase::compute;
  };
  /// The marks have numbers above those that solvers use.
  static std::size_t moment(std::size_t bank, std::size_t k) noexcept { return first_moment + 2 * k + bank; }
  void enter(Key next);

  static constexpr std::size_t first_moment = 4096;
  Device &device_;
  Key now_;
  std::size_t bank_ = 0;
  std::array<std::vector<Key>, 2> segments_; // of this iteration and the one before, by turns
};

/// What is asked for while it lives is of a phase. Its end is a mark, which may throw as any call does; where something
/// else was thrown there is none.
class InPhase {
public:
  InPhase(Device &device, Phase phase) : device_(device), before_(device.enter_phase(phase)) {}
  InPhase(const InPhase &) = delete;
  InPhase &operator=(const InPhase &) = delete;
  ~InPhase() noexcept(false) {
    if (std::uncaught_exceptions() == thrown_)
      device_.enter_phase(before_);
  }

private:
  Device &device_;
  Phase before_;
  int thrown_ = std::uncaught_exceptions();
};

/// What is exchanged or prepared while it lives goes beside other work of the device.
class Beside {
public:
  explicit Beside(Device &device) : device_(device) { device_.begin_beside(); }
  Beside(const Beside &) = delete;
  Beside &operator=(const Beside &) = delete;
  ~Beside() { device_.end_beside(); }

private:
  Device &device_;
};

/// A device that cannot copy out of the memory of another; null: there is none.
struct Unreached {
  Device *from = nullptr;
  Device *memory = nullptr;
  bool any() const noexcept { return from != nullptr; }
};
/// Lets each copy out of the memories of all others from now on, and gives the first that cannot.
Unreached reach_all(std::span<Device *const> devices);

/// How devices exchange, and why so.
struct ExchangeChoice {
  Exchange way = Exchange::automatic;
  std::string why;
};
/// What is asked for of the first, or what can be.
ExchangeChoice exchange_between(std::span<Device *const> devices);

/// A device's memory, owned.
class DeviceBuffer {
public:
  DeviceBuffer() = default;
  DeviceBuffer(Device &device, i64 bytes, const char *what)
      : device_(&device), data_(device.allocate(bytes, what)), bytes_(bytes) {}
  /// Empty where try_allocate gives none.
  static DeviceBuffer of_free(Device &device, i64 bytes, const char *what) {
    DeviceBuffer buffer;
    buffer.data_ = device.try_allocate(bytes, what);
    if (buffer.data_ != nullptr) {
      buffer.device_ = &device;
      buffer.bytes_ = bytes;
    }
    return buffer;
  }
  DeviceBuffer(const DeviceBuffer &) = delete;
  DeviceBuffer &operator=(const DeviceBuffer &) = delete;
  DeviceBuffer(DeviceBuffer &&other) noexcept { swap(other); }
  DeviceBuffer &operator=(DeviceBuffer &&other) noexcept {
    swap(other);
    return *this;
  }
  ~DeviceBuffer() {
    if (device_ != nullptr)
      device_->release(data_);
  }
  void *data() const noexcept { return data_; }
  double *f64() const noexcept { return static_cast<double *>(data_); }
  i64 bytes() const noexcept { return bytes_; }

private:
  void swap(DeviceBuffer &other) noexcept {
    std::swap(device_, other.device_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
  }
  Device *device_ = nullptr;
  void *data_ = nullptr;
  i64 bytes_ = 0;
};

} // namespace td::kernels
