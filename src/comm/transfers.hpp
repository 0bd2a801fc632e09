// What workers offer each other, and who takes what of it.
#pragma once

#include <span>

#include "core/error.hpp"
#include "kernels/device.hpp"

namespace td {

/// Goes through what one worker offers to all, for a worker that takes what is for it in order.
class Offered {
public:
  Offered(const kernels::Transfers &all, int taker) : all_(all), taker_(taker) {}

  /// The next one for the taker. Throws Status::internal where that is not as many bytes as it expects.
  const kernels::Transfer &take(const kernels::Transfer &expected) {
    while (next_ < all_.size() && all_[next_].worker != taker_)
      ++next_;
    if (next_ == all_.size() || all_[next_].bytes != expected.bytes)
      throw_error(Status::internal, "worker {} expects {} bytes of worker {}, which sends others", taker_,
                  expected.bytes, expected.worker);
    return all_[next_++];
  }

private:
  const kernels::Transfers &all_;
  int taker_;
  std::size_t next_ = 0;
};

} // namespace td
