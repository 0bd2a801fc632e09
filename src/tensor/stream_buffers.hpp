// Buffers on a device through which ranges of a stored form's entries pass.
#pragma once

#include <vector>

#include "comm/communicator.hpp"
#include "kernels/backend.hpp"
#include "tensor/resident_form.hpp"

namespace td::tensor {

/// How workers gather a form of which the device of each holds a range of entries: what is worked on next comes from
/// all of them. All call the same functions of their placements, also who has no rows to compute.
struct Gather {
  Communicator &others;
  std::vector<Range> held; // [workers] of entries; together each once
  std::vector<Range> rows; // [workers] that they compute
};

/// A range of entries that passes through a buffer; `gathered` from all workers, else one brings it by itself.
struct Passing {
  Range entries;
  bool gathered = false;
};

/// With a Gather a worker brings what it holds: what is resident from there, the rest from the host.
class StreamBuffers {
public:
  StreamBuffers(kernels::Backend &backend, const kernels::TensorView &host, const Selection *some,
                const detail::ResidentForm &kept, const std::vector<Passing> &ranges, const Gather *gather);
  StreamBuffers(const StreamBuffers &) = delete;
  StreamBuffers &operator=(const StreamBuffers &) = delete;
  ~StreamBuffers(); // waits until nothing is copied to them any more

  void start();
  /// The next range, as soon as it is there.
  FormView take();
  /// Its buffer is filled again.
  void give_back();

private:
  /// What of a range this worker brings, and of that what comes from the host.
  Range own_of(const Passing &range) const;
  Range missing_of(const Passing &range) const;
  /// Where an array's element is in the buffer of a range that it belongs to.
  char *place_of(std::size_t number, Range range, i64 entry);
  /// Adds what is resident, and what others hold, to what was fetched.
  void complete(const Passing &range);
  void fetch_next();

  kernels::Backend &backend_;
  const kernels::TensorView &host_;
  const Selection *some_;
  const detail::ResidentForm &kept_;
  const std::vector<Passing> &ranges_;
  const Gather *gather_;
  std::vector<FormArray> arrays_; // of entries
  std::vector<i64> places_;       // of these in a buffer
  std::vector<kernels::DeviceBuffer> memory_;
  std::size_t fetched_ = 0;
  std::size_t taken_ = 0;
};

} // namespace td::tensor
