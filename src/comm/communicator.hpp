// A communicator is how the workers of one computation meet. The solver is written for one worker and knows the others
// only through this.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/views.hpp"
#include "kernels/backend.hpp"

namespace td {

/// Numbers of all workers that become one.
struct Reduced {
  std::span<double> data;
  kernels::Combine how = kernels::Combine::sum;
};

/// Every worker calls the same functions in the same order with the same sizes. Results are bitwise the same on all
/// workers: sums are taken in worker order. If a worker fails it calls abort(), and every worker that waits or will
/// wait throws WorkerAborted; where the workers are processes, what went wrong, as it is reported to all of them.
///
/// Numbers that are summed, rows and what is exchanged are in the memory of the worker's device; they follow what was
/// asked of the device before, and what is asked of it afterwards follows them. What is broadcast is on the host.
class Communicator {
public:
  virtual ~Communicator() = default;
  virtual int rank() const noexcept = 0;
  virtual int size() const noexcept = 0;
  virtual void barrier() = 0;
  /// data := sum over workers.
  virtual void allreduce_sum(std::span<double> data) = 0;
  virtual void allreduce_max(std::span<double> data) = 0;
  /// The same of several arrays; where each exchange takes time of its own, in one.
  virtual void allreduce(std::span<const Reduced> all);
  /// out := sum over workers of their `partial`, of which each worker gets the rows owned[rank]. Row-contiguous; out
  /// may be partial. `owned` is the same on every worker.
  virtual void reduce_rows(ConstMatrix partial, Matrix out, std::span<const Ranges> owned) = 0;
  /// Each worker holds rows owned[rank] of `a`; afterwards each holds all rows. `owned` is the same on every worker.
  virtual void allgather_rows(Matrix a, std::span<const Ranges> owned) = 0;
  /// allgather_rows and allreduce; where each exchange takes time of its own, in one.
  virtual void gather_and_reduce(Matrix a, std::span<const Ranges> owned, std::span<const Reduced> sums) {
    allgather_rows(a, owned);
    allreduce(sums);
  }
  /// allgather_rows, of which what is asked of the device until end_exchanges() need not wait: it may neither read the
  /// rows of others in `a` nor write own ones that were sent. Several may have begun; other functions may be called
  /// meanwhile.
  virtual void begin_gather(Matrix a, std::span<const Ranges> owned) { allgather_rows(a, owned); }
  /// What is asked of the device afterwards follows all gathers and exchanges that have begun.
  virtual void end_exchanges() {}
  /// Whether one that has begun goes on beside the work of the device.
  virtual bool exchanges_beside() const noexcept { return false; }
  /// What k sends to m is, in this order, what m receives from k. Nobody sends to itself.
  virtual void exchange(const kernels::Transfers &sent, const kernels::Transfers &received) = 0;
  /// exchange, of which what is asked of the device until end_exchanges() need not wait: it may neither look at what is
  /// received nor write what is sent.
  virtual void begin_exchange(const kernels::Transfers &sent, const kernels::Transfers &received) {
    exchange(sent, received);
  }
  /// exchange and allreduce; where each exchange takes time of its own, in one.
  virtual void exchange_and_reduce(const kernels::Transfers &sent, const kernels::Transfers &received,
                                   std::span<const Reduced> sums) {
    exchange(sent, received);
    allreduce(sums);
  }
  /// Copies worker 0's bytes to all.
  virtual void broadcast(void *data, i64 bytes) = 0;
  virtual void abort() noexcept = 0;
};

/// Thrown in a worker because another one failed; that other's error is the one to report.
struct WorkerAborted {};

/// Whatever is thrown while gathers or exchanges have begun: memory that is freed behind it outlives them.
struct JoinAtEnd {
  kernels::Device &device;
  ~JoinAtEnd() { device.join_beside(); }
};

/// A communicator for one worker.
std::unique_ptr<Communicator> make_self_communicator();

/// Communicators for `size` workers that are threads of this process; element k is for worker k. They share state
/// that lives until the last one is destroyed. Numbers and rows are in host memory.
std::vector<std::unique_ptr<Communicator>> make_thread_communicators(int size);

/// One for a worker whose device has memory of its own, by way of the host: numbers and rows go there, `others`
/// exchanges them, and they go back. The literal definition that faster ways are tested against.
/// At most `most` bytes of rows are on the host at a time, if that is a row or more.
std::unique_ptr<Communicator> make_staged_communicator(kernels::Device &device, std::unique_ptr<Communicator> others,
                                                       i64 most = i64{32} << 20);
/// Bytes of the host that such a one takes for a matrix with rows of so many bytes.
i64 staged_bytes(i64 rows, i64 row_bytes, i64 most = i64{32} << 20);

/// One that tells the worker's device what is exchanged and how long it waits for others, for a PhaseMeter. `devices`
/// are those of all workers where they are this process's and have memory of their own, else none. `others` must live
/// as long.
std::unique_ptr<Communicator> make_measured_communicator(Communicator &others, kernels::Backend &device,
                                                         std::vector<kernels::Device *> devices);

class Processes;
/// A communicator whose workers are the processes, one each, with what is in the memory of their devices: the caller's
/// functions exchange it, or where devices have memory of their own a library of theirs, or these by way of the host,
/// as the device is asked for. All processes call it. Throws Status::backend_unavailable, with the reason, where what
/// is asked for cannot be. `processes` must live as long.
std::unique_ptr<Communicator> make_process_communicator(Processes &processes, kernels::Backend &device);

/// One a worker whose devices have memory of their own, in the order of the devices, as wanted: copies from device to
/// device, a library of theirs, or by way of the host; or the first of these that can be. Throws
/// Status::backend_unavailable, with the reason, where what is wanted cannot be.
std::vector<std::unique_ptr<Communicator>> make_device_communicators(const std::vector<kernels::Backend *> &devices,
                                                                     kernels::Exchange wanted);
/// Bytes that such a one takes on its device: for sums of so many numbers, and of a matrix of which a worker owns so
/// many rows, of so many bytes.
i64 exchange_bytes(kernels::Exchange exchange, i64 workers, i64 numbers, i64 rows, i64 row_bytes);

} // namespace td
