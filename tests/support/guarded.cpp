#include "support/guarded.hpp"

#include <cstring>
#include <new>
#include <utility>

#include <sys/mman.h>
#include <unistd.h>

namespace tdtest {

namespace {

// All bits set is a quiet NaN in both types, and not the one that arithmetic makes (which has no payload).
constexpr unsigned char poison_byte = 0xff;

template <class F> auto with_type(td_type type, F &&f) {
  switch (type) {
  case TD_F32:
    return f(float{});
  case TD_I32:
    return f(int32_t{});
  case TD_I64:
    return f(int64_t{});
  default:
    return f(double{});
  }
}

} // namespace

GuardedMemory::GuardedMemory(std::size_t bytes) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t inner = (bytes + page - 1) / page * page;
  mapped_ = inner + 2 * page;
  mapping_ = mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping_ == MAP_FAILED)
    throw std::bad_alloc();
  char *first = static_cast<char *>(mapping_) + page;
  if (inner > 0 && mprotect(first, inner, PROT_READ | PROT_WRITE) != 0) {
    munmap(mapping_, mapped_);
    throw std::bad_alloc();
  }
  data_ = first + inner - bytes;
  std::memset(data_, poison_byte, bytes);
}

GuardedMemory::GuardedMemory(GuardedMemory &&other) noexcept
    : mapping_(std::exchange(other.mapping_, nullptr)), mapped_(std::exchange(other.mapped_, 0)),
      data_(std::exchange(other.data_, nullptr)) {}

GuardedMemory &GuardedMemory::operator=(GuardedMemory &&other) noexcept {
  std::swap(mapping_, other.mapping_);
  std::swap(mapped_, other.mapped_);
  std::swap(data_, other.data_);
  return *this;
}

GuardedMemory::~GuardedMemory() {
  if (mapping_ != nullptr)
    munmap(mapping_, mapped_);
}

std::size_t size_of(td_type type) noexcept { return type == TD_F32 || type == TD_I32 ? 4 : 8; }

Array::Array(td_type type, int64_t count)
    : type_(type), count_(count), memory_(static_cast<std::size_t>(count) * size_of(type)) {}

Array::Array(td_type type, const std::vector<double> &values) : Array(type, static_cast<int64_t>(values.size())) {
  for (int64_t i = 0; i < count_; ++i)
    set(i, values[static_cast<std::size_t>(i)]);
}

Array::Array(td_type type, const std::vector<int64_t> &values)
    : Array(type, std::vector<double>(values.begin(), values.end())) {}

double Array::get(int64_t i) const noexcept {
  return with_type(type_, [&](auto zero) { return static_cast<double>(static_cast<decltype(zero) *>(data())[i]); });
}

void Array::set(int64_t i, double v) noexcept {
  with_type(type_, [&](auto zero) {
    using T = decltype(zero);
    static_cast<T *>(data())[i] = static_cast<T>(v);
  });
}

std::vector<double> Array::values() const {
  std::vector<double> v;
  for (int64_t i = 0; i < count_; ++i)
    v.push_back(get(i));
  return v;
}

Matrix::Matrix(td_type type, int64_t rows, int64_t cols, int64_t ld)
    : rows_(rows), cols_(cols), ld_(ld), array_(type, ld * (cols - 1) + rows) {}

bool Matrix::padding_untouched() const {
  const auto bytes = size_of(array_.type());
  std::vector<unsigned char> poison(bytes, poison_byte);
  for (int64_t r = 0; r + 1 < cols_; ++r)
    for (int64_t i = rows_; i < ld_; ++i)
      if (std::memcmp(static_cast<char *>(data()) + static_cast<std::size_t>(i + r * ld_) * bytes, poison.data(),
                      bytes) != 0)
        return false;
  return true;
}

} // namespace tdtest
