// Copies to buffers beside the kernels (kernels::Device::fetch), made as late as they may be, to buffers that are
// spoilt as early as they may be: work that does not wait for its copy, or a copy that does not wait for the work
// before, shows in the numbers or is refused.
#pragma once

#include <cstring>
#include <map>
#include <vector>

#include "core/error.hpp"
#include "core/types.hpp"

namespace td::software {

class LateCopies {
public:
  void fetch(int buffer, void *to, const void *from_host, i64 bytes) {
    Buffer &b = buffers_[buffer];
    if (!b.free)
      throw_error(Status::internal, "buffer {} is fetched into while it is worked on", buffer);
    std::memset(to, 0x7f, static_cast<std::size_t>(bytes));
    b.copies.push_back({to, from_host, bytes});
  }
  void await(int buffer) noexcept {
    Buffer &b = buffers_[buffer];
    for (const Copy &copy : b.copies)
      std::memcpy(copy.to, copy.from, static_cast<std::size_t>(copy.bytes));
    b.copies.clear();
    b.free = false;
  }
  void done(int buffer) {
    Buffer &b = buffers_[buffer];
    if (!b.copies.empty())
      throw_error(Status::internal, "buffer {} is done with before its copies were there", buffer);
    b.free = true;
  }
  std::size_t buffers() const noexcept { return buffers_.size(); }

private:
  struct Copy {
    void *to;
    const void *from;
    i64 bytes;
  };
  struct Buffer {
    std::vector<Copy> copies;
    bool free = false;
  };
  std::map<int, Buffer> buffers_;
};

} // namespace td::software
