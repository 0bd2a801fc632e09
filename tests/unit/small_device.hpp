// A device with memory of its own and little of it, in software, for tests of what is kept there and what passes
// through. It copies as late as it may and spoils buffers as early as it may, so that work which does not wait for its
// copy, or a copy that does not wait for the work before, shows in the numbers.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstring>

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "software/building.hpp"
#include "software/late_copies.hpp"

namespace td::test {

/// What is kept there, also after the device's end.
struct SmallMemory {
  std::atomic<i64> kept = 0;
  std::atomic<i64> downloaded = 0; // bytes of what was built
  std::atomic<bool> fails = false; // whether these downloads do
};

class BuiltArrays final : public kernels::DeviceArrays {
public:
  BuiltArrays(std::shared_ptr<SmallMemory> memory, std::shared_ptr<const DeviceArrays> arrays)
      : memory_(std::move(memory)), arrays_(std::move(arrays)) {
    memory_->kept += bytes();
  }
  BuiltArrays(const BuiltArrays &) = delete;
  BuiltArrays &operator=(const BuiltArrays &) = delete;
  ~BuiltArrays() override { memory_->kept -= bytes(); }

  std::vector<Array> arrays() const override { return arrays_->arrays(); }
  void download(std::span<void *const> to_host) const override {
    const auto all = arrays();
    for (std::size_t k = 0; k < to_host.size(); ++k)
      memory_->downloaded += to_host[k] == nullptr ? 0 : all[k].bytes;
    if (memory_->fails)
      throw_error(Status::host_memory, "out of host memory: a test's download");
    arrays_->download(to_host);
  }

private:
  i64 bytes() const {
    i64 sum = 0;
    for (const Array &array : arrays())
      sum += array.bytes;
    return sum;
  }
  std::shared_ptr<SmallMemory> memory_;
  std::shared_ptr<const DeviceArrays> arrays_;
};

class SmallDevice : public software::BuildingBackend {
public:
  /// `bytes` that copies may take.
  explicit SmallDevice(i64 bytes) : limit_(bytes) {}

  const void *memory() const noexcept override { return this; }
  i64 room() const override { return limit_ - kept(); }
  std::unique_ptr<kernels::DeviceBuilding> begin_building(const EntriesView &entries, bool together,
                                                          const kernels::KeyMoves *keys) override {
    return building_ > room() ? nullptr : BuildingBackend::begin_building(entries, together, keys);
  }
  i64 room_to_build(const EntriesView &, bool) const override { return building_; }
  std::shared_ptr<const kernels::DeviceArrays> built(std::shared_ptr<const kernels::DeviceArrays> arrays) override {
    EXPECT_GE(room(), building_) << "building takes what it may not";
    return std::make_shared<BuiltArrays>(memory_, std::move(arrays));
  }
  bool gathers_f32(const kernels::TensorView &x) const override {
    return std::holds_alternative<kernels::SortedView>(x);
  }
  void to_f32(ConstMatrix a, Matrix to, double *exponents) override {
    ReferenceBackend::to_f32(a, to, exponents);
    ++roundings_;
  }
  std::shared_ptr<void> keep(i64 bytes, const char *) override {
    if (bytes > room())
      return nullptr;
    memory_->kept += bytes;
    uploaded_ += bytes;
    return {new char[static_cast<std::size_t>(bytes) + 1], [bytes, memory = memory_](const void *p) {
              memory->kept -= bytes;
              delete[] static_cast<const char *>(p);
            }};
  }
  void may_evict(std::weak_ptr<kernels::Evictable> evictable) override { evictables_.push_back(std::move(evictable)); }

  void make_room(i64 bytes) override {
    if (room() < bytes)
      run_short(bytes);
  }

  void download(void *to_host, const void *from, i64 bytes) override {
    downloads_ += bytes;
    ReferenceBackend::download(to_host, from, bytes);
  }
  /// Bytes since the last call, but of what was built.
  i64 take_downloads() { return std::exchange(downloads_, 0); }

  void fetch(int buffer, void *to, const void *from_host, i64 bytes) override {
    copies_.fetch(buffer, to, from_host, bytes);
    fetched_ += bytes;
  }
  void await(int buffer) noexcept override { copies_.await(buffer); }
  void done(int buffer) override { copies_.done(buffer); }

  /// Asks for memory as an allocation does that fails, or as building does, temporarily.
  void run_short(i64 bytes, bool temporary = false) {
    for (const auto &evictable : evictables_)
      if (const auto there = evictable.lock())
        there->evict(this, bytes, temporary);
  }
  void set_limit(i64 bytes) { limit_ = bytes; }
  /// Bytes that building is to take, of those that copies may.
  void set_building(i64 bytes) { building_ = bytes; }
  i64 kept() const { return memory_->kept; }
  const std::shared_ptr<SmallMemory> &own() const { return memory_; }
  /// Bytes kept since the last call, but for what was built.
  i64 take_uploaded() { return std::exchange(uploaded_, 0); }
  /// Bytes since the last call.
  i64 take_fetched() { return std::exchange(fetched_, 0); }
  /// Matrices since the last call.
  int take_roundings() { return std::exchange(roundings_, 0); }
  std::size_t buffers() const { return copies_.buffers(); }

private:
  i64 limit_;
  i64 building_ = 0;
  i64 fetched_ = 0;
  int roundings_ = 0;
  i64 uploaded_ = 0;
  i64 downloads_ = 0;
  std::shared_ptr<SmallMemory> memory_ = std::make_shared<SmallMemory>(); // copies may outlive the device
  software::LateCopies copies_;
  std::vector<std::weak_ptr<kernels::Evictable>> evictables_;
};

} // namespace td::test
