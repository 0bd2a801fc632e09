// Owning, uninitialised, 64-byte aligned host arrays.
#pragma once

#include <cstring>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

#include "core/checked.hpp"
#include "core/error.hpp"

namespace td {

inline constexpr std::size_t buffer_alignment = 64; // one cache line, one AVX-512 register

namespace detail {
/// Asks the system to back memory that is about to be filled with huge pages, where it has them.
void advise_huge_pages(void *memory, i64 bytes) noexcept;
} // namespace detail

template <class T> class Buffer {
  static_assert(std::is_trivially_copyable_v<T>);

public:
  Buffer() = default;

  /// `what` names the purpose in the error text: "out of host memory: 1600 bytes for <what>".
  Buffer(i64 count, const char *what) : count_(count) {
    const auto bytes = checked_multiply(count, static_cast<i64>(sizeof(T)));
    if (count < 0 || !bytes)
      throw_error(Status::host_memory, "out of host memory: {} elements of {} bytes for {}", count, sizeof(T), what);
    if (count == 0)
      return;
    data_ = static_cast<T *>(
        ::operator new (static_cast<std::size_t>(*bytes), std::align_val_t{buffer_alignment}, std::nothrow));
    if (data_ == nullptr)
      throw_error(Status::host_memory, "out of host memory: {} bytes for {}", *bytes, what);
    detail::advise_huge_pages(data_, *bytes);
  }

  static Buffer zeros(i64 count, const char *what) {
    Buffer b(count, what);
    if (count > 0)
      std::memset(static_cast<void *>(b.data_), 0, static_cast<std::size_t>(b.bytes()));
    return b;
  }

  Buffer(const Buffer &) = delete;
  Buffer &operator=(const Buffer &) = delete;
  Buffer(Buffer &&other) noexcept
      : data_(std::exchange(other.data_, nullptr)), count_(std::exchange(other.count_, 0)) {}
  Buffer &operator=(Buffer &&other) noexcept {
    std::swap(data_, other.data_);
    std::swap(count_, other.count_);
    return *this;
  }
  ~Buffer() { ::operator delete (data_, std::align_val_t{buffer_alignment}); }

  T *data() noexcept { return data_; }
  const T *data() const noexcept { return data_; }
  i64 size() const noexcept { return count_; }
  i64 bytes() const noexcept { return count_ * static_cast<i64>(sizeof(T)); }
  T &operator[](i64 i) noexcept { return data_[i]; }
  const T &operator[](i64 i) const noexcept { return data_[i]; }
  T *begin() noexcept { return data_; }
  T *end() noexcept { return data_ + count_; }
  const T *begin() const noexcept { return data_; }
  const T *end() const noexcept { return data_ + count_; }
  std::span<T> span() noexcept { return {data_, static_cast<std::size_t>(count_)}; }
  std::span<const T> span() const noexcept { return {data_, static_cast<std::size_t>(count_)}; }

private:
  T *data_ = nullptr;
  i64 count_ = 0;
};

/// An array whose element type is known at run time. Value-initialised it is empty.
class ValueBuffer {
public:
  ValueBuffer() = default;
  ValueBuffer(ValueType type, i64 count, const char *what)
      : type_(type), count_(count), bytes_(bytes_of(type, count, what), what) {}

  ValueType type() const noexcept { return type_; }
  i64 size() const noexcept { return count_; }
  i64 bytes() const noexcept { return bytes_.size(); }
  void *data() noexcept { return bytes_.data(); }
  const void *data() const noexcept { return bytes_.data(); }
  template <class T> T *as() noexcept { return reinterpret_cast<T *>(bytes_.data()); }
  template <class T> const T *as() const noexcept { return reinterpret_cast<const T *>(bytes_.data()); }

private:
  static i64 bytes_of(ValueType type, i64 count, const char *what) {
    const auto bytes = checked_multiply(count, size_of(type));
    if (!bytes)
      throw_error(Status::host_memory, "out of host memory: {} elements of {} bytes for {}", count, size_of(type),
                  what);
    return *bytes;
  }

  ValueType type_ = ValueType::f64;
  i64 count_ = 0;
  Buffer<std::byte> bytes_;
};

} // namespace td
