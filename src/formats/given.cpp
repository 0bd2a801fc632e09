#include "formats/given.hpp"

namespace td::formats {

const EntriesView &Given::on_host() const {
  if (device_ == nullptr || view_.nnz == 0)
    return view_;
  if (!copies_.empty())
    return copied_;
  std::vector<Buffer<std::byte>> copies;
  const auto copy = [&](const void *array, i64 element_bytes) {
    const auto bytes = checked_multiply(view_.nnz, element_bytes);
    if (!bytes)
      throw_error(Status::shape, "nnz = {}: arrays of more than 2^63 - 1 bytes", view_.nnz);
    auto &to = copies.emplace_back(*bytes, "a copy of a caller's array");
    device_->download(to.data(), array, *bytes);
    return to.data();
  };
  columns_.clear();
  for (int m = 0; m < view_.order(); ++m)
    columns_.push_back(copy(view_.indices[m], size_of(view_.index_type)));
  copied_ = view_;
  copied_.indices = columns_.data();
  copied_.values = copy(view_.values, size_of(view_.value_type));
  copies_ = std::move(copies);
  return copied_;
}

} // namespace td::formats
