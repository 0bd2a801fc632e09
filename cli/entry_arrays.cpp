#include "entry_arrays.hpp"

#include <cstring>
#include <numeric>

#include <fmt/format.h>

#include "draw.hpp"

namespace cli {

namespace {

/// to[k] = from[order[k]] for elements of so many bytes.
void gather(const std::vector<std::size_t> &order, std::size_t element, const void *from, void *to) {
  const auto *source = static_cast<const std::byte *>(from);
  auto *target = static_cast<std::byte *>(to);
  for (std::size_t k = 0; k < order.size(); ++k)
    std::memcpy(target + k * element, source + order[k] * element, element);
}

} // namespace

std::vector<const void *> Coordinates::read() const {
  std::vector<const void *> out;
  for (const auto &m : modes)
    out.push_back(m.data());
  return out;
}

std::vector<void *> Coordinates::write() {
  std::vector<void *> out;
  for (auto &m : modes)
    out.push_back(m.data());
  return out;
}

std::size_t dense_size(const std::vector<std::int64_t> &dims) {
  double n = 1;
  std::size_t size = 1;
  for (const auto d : dims) {
    n *= static_cast<double>(d);
    size *= static_cast<std::size_t>(d);
  }
  if (n > 0x1p53) // far above any memory; size may have wrapped around
    throw Failure(exit_memory, fmt::format("a dense tensor of {:.3g} elements does not fit", n));
  return size;
}

EntryArrays::EntryArrays(const td_tensor *x, td_type type)
    : dims_(dims_of(x)), sparse_(get<std::int64_t>(td_tensor_get_i64, x, "sparse") != 0), type_(type),
      nnz_(get<std::int64_t>(td_tensor_nnz, x)), at_(sparse_ ? dims_.size() : 0, nnz_),
      values_(static_cast<std::size_t>(nnz_) * (type == TD_F32 ? sizeof(float) : sizeof(double))) {
  if (sparse_)
    check(td_tensor_get_entries(x, TD_I64, at_.write().data(), 0, type, values_.data()));
  else
    check(td_tensor_get_dense(x, nullptr, type, values_.data()));
}

Tensor EntryArrays::build(td_context *context, const td_options *options) const {
  const auto order = static_cast<std::int32_t>(dims_.size());
  if (!sparse_)
    return make<Tensor>(td_tensor_create_dense, context, order, dims_.data(), nullptr, type_, values_.data(), TD_HOST,
                        options);
  return make<Tensor>(td_tensor_create, context, order, dims_.data(), nnz_, TD_I64, at_.read().data(), 0, type_,
                      values_.data(), TD_HOST, options);
}

void EntryArrays::shuffle() {
  std::vector<std::size_t> order(static_cast<std::size_t>(nnz_));
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t k = order.size(); k > 1; --k) // Fisher and Yates
    std::swap(order[k - 1], order[draw_bits(0, {k}) % k]);
  for (auto &mode : at_.modes) {
    std::vector<std::int64_t> moved(mode.size());
    gather(order, sizeof(std::int64_t), mode.data(), moved.data());
    mode = std::move(moved);
  }
  std::vector<std::byte> moved(values_.size());
  gather(order, type_ == TD_F32 ? sizeof(float) : sizeof(double), values_.data(), moved.data());
  values_ = std::move(moved);
}

} // namespace cli
