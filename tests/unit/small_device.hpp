// A device with memory of its own and little of it, in software, for tests of what is kept there and what passes
// through. It copies as late as it may and spoils buffers as early as it may, so that work which does not wait for its
// copy, or a copy that does not wait for the work before, shows in the numbers.
#pragma once

#include <algorithm>
#include <cstring>
#include <map>

#include <gtest/gtest.h>

#include "kernels/reference/backend.hpp"

namespace td::test {

class SmallDevice final : public kernels::reference::ReferenceBackend {
public:
  /// `bytes` that copies may take.
  explicit SmallDevice(i64 bytes) : limit_(bytes) {}

  const void *memory() const noexcept override { return this; }
  i64 room() const override { return limit_ - *kept_; }
  std::shared_ptr<const void> keep(const void *host, i64 bytes, const char *) override {
    if (bytes > room())
      return nullptr;
    *kept_ += bytes;
    auto *copy = new char[static_cast<std::size_t>(bytes) + 1];
    if (bytes > 0) // of an empty list there is no address
      std::memcpy(copy, host, static_cast<std::size_t>(bytes));
    return {copy, [bytes, kept = kept_](const void *p) {
              *kept -= bytes;
              delete[] static_cast<const char *>(p);
            }};
  }
  void ask_when_short(std::weak_ptr<kernels::Keeper> keeper) override { keepers_.push_back(std::move(keeper)); }

  void make_room(i64 bytes) override {
    if (room() < bytes)
      run_short(bytes);
  }

  void fetch(int buffer, void *to, const void *from_host, i64 bytes) override {
    Buffer &b = buffers_[buffer];
    EXPECT_TRUE(b.free) << "fetched to what is being worked on";
    std::memset(to, 0x7f, static_cast<std::size_t>(bytes));
    b.copies.push_back({to, from_host, bytes});
    fetched_ += bytes;
  }
  void await(int buffer) noexcept override {
    Buffer &b = buffers_[buffer];
    for (const Copy &copy : b.copies)
      std::memcpy(copy.to, copy.from, static_cast<std::size_t>(copy.bytes));
    b.copies.clear();
    b.free = false;
  }
  void done(int buffer) override {
    Buffer &b = buffers_[buffer];
    EXPECT_TRUE(b.copies.empty()) << "given back before it was there";
    b.free = true;
  }

  /// Asks for memory as an allocation does that fails.
  void run_short(i64 bytes) {
    for (const auto &keeper : keepers_)
      if (const auto there = keeper.lock())
        there->give_back(this, bytes);
  }
  void set_limit(i64 bytes) { limit_ = bytes; }
  i64 kept() const { return *kept_; }
  /// Bytes since the last call.
  i64 take_fetched() { return std::exchange(fetched_, 0); }
  std::size_t buffers() const { return buffers_.size(); }

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
  i64 limit_;
  i64 fetched_ = 0;
  std::shared_ptr<i64> kept_ = std::make_shared<i64>(0); // copies may outlive the device
  std::map<int, Buffer> buffers_;
  std::vector<std::weak_ptr<kernels::Keeper>> keepers_;
};

} // namespace td::test
