#include "plan/tensor.hpp"

#include <algorithm>

#include <fmt/ranges.h>

namespace td::plan {

namespace {

/// What copies sorted by each mode take, apart from their row tables: keys of the other modes' bits, and values.
double sorted_bytes(std::span<const i64> dims, double nnz, ValueType type) {
  const int bits = formats::linear_bits(dims);
  double bytes = 0;
  for (const i64 d : dims)
    bytes += nnz * (bits - index_bits(d) <= 64 ? 8.0 : 16.0) + nnz * static_cast<double>(size_of(type));
  return bytes;
}

bool sorted_fits(std::span<const i64> dims, i64 nnz, ValueType type) {
  const auto available = available_memory();
  return !available || sorted_bytes(dims, static_cast<double>(nnz), type) <= static_cast<double>(*available) / 4;
}

/// "1.2 MB"
std::string size_text(i64 bytes) {
  if (bytes < 1000)
    return fmt::format("{} bytes", bytes);
  double size = static_cast<double>(bytes);
  std::string_view unit;
  for (const std::string_view next : {"kB", "MB", "GB", "TB"}) {
    size /= 1000;
    unit = next;
    if (size < 999.95)
      break;
  }
  return fmt::format("{:.1f} {}", size, unit);
}

std::string count_text(i64 count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

} // namespace

std::shared_ptr<const Tensor> Tensor::make_sparse(const EntriesView &entries, const Options &options, int threads,
                                                  std::string source) {
  formats::check_entries(entries, threads);
  std::shared_ptr<Tensor> x(new Tensor);
  x->dims_.assign(entries.dims.begin(), entries.dims.end());
  x->type_ = entries.value_type;
  x->source_ = std::move(source);
  x->store(entries, options.text("format"), options.text("duplicates") == "error", threads);
  return x;
}

void Tensor::store(const EntriesView &entries, std::string_view format, bool refuse_duplicates, int threads) {
  const int bits = formats::linear_bits(dims_);
  if (bits > formats::max_linear_bits) {
    if (format != "auto" && format != "coo")
      throw_error(Status::unsupported,
                  "format {}: the indices of all modes together need {} bits, expected at most {}; format coo has no "
                  "such limit",
                  format, bits, formats::max_linear_bits);
    auto canonical = formats::build_canonical(entries, refuse_duplicates, threads);
    facts_ = facts_of(canonical.coo.values, threads);
    facts_.duplicates = canonical.duplicates;
    coo_ = std::move(canonical.coo);
    format_ = "coo";
    return;
  }

  formats::Packed packed = formats::build_packed(entries, refuse_duplicates, threads);
  facts_ = facts_of(packed.values, threads);
  facts_.duplicates = packed.duplicates;
  if (format == "auto")
    format = sorted_fits(dims_, packed.nnz(), type_) ? "sorted" : "blco";
  format_ = format;
  if (format == "coo")
    coo_ = formats::unpack(packed, threads);
  else if (format == "blco")
    blco_ = formats::build_blco(std::move(packed), threads);
  else
    for (int m = 0; m < order(); ++m)
      sorted_.push_back(formats::build_sorted(packed, m, threads));
}

std::shared_ptr<const Tensor> Tensor::make_dense(const DenseArrayView &array, int threads, std::string source) {
  std::shared_ptr<Tensor> x(new Tensor);
  x->dense_ = formats::build_dense(array, threads);
  x->dims_ = x->dense_->dims;
  x->type_ = array.value_type;
  x->source_ = std::move(source);
  x->format_ = "dense";
  x->facts_ = facts_of(x->dense_->values, threads);
  return x;
}

i64 Tensor::bytes() const {
  i64 total = 0;
  if (coo_)
    total += coo_->bytes();
  if (blco_)
    total += blco_->bytes();
  if (dense_)
    total += dense_->bytes();
  for (const auto &copy : sorted_)
    total += copy.bytes();
  return total;
}

std::string Tensor::describe() const {
  const std::string shape = fmt::format("{}", fmt::join(dims_, " x "));
  const std::string size = size_text(bytes());
  if (dense_)
    return fmt::format("dense {}, {}, {}, {}", shape, count_text(facts_.nnz, "element", "elements"), name_of(type_),
                       size);
  std::string parts;
  if (!sorted_.empty())
    parts = count_text(order(), "copy", "copies") + ", ";
  else if (blco_)
    parts = count_text(blco_->view().blocks, "block", "blocks") + ", ";
  return fmt::format("sparse {}, {}, {}, {} ({}{})", shape, count_text(facts_.nnz, "entry", "entries"), name_of(type_),
                     format_, parts, size);
}

kernels::TensorView Tensor::view(int mode) const {
  if (dense_)
    return dense_->view();
  if (coo_)
    return coo_->view();
  if (blco_)
    return blco_->view();
  return sorted_[static_cast<std::size_t>(mode)].view();
}

std::vector<i64> Tensor::row_boundaries(int mode, int workers) const {
  const i64 rows = dims_[static_cast<std::size_t>(mode)];
  std::vector<i64> boundary;
  for (int k = 0; k < workers; ++k)
    boundary.push_back(part_of({0, rows}, k, workers).begin);
  boundary.push_back(rows);
  if (sorted_.empty() || facts_.nnz == 0)
    return boundary;
  // The nonempty row at which the entries before it come nearest to k shares of all.
  const auto &copy = sorted_[static_cast<std::size_t>(mode)];
  for (int k = 1; k < workers; ++k) {
    const i64 share = part_of({0, facts_.nnz}, k, workers).begin;
    const i64 *after = std::lower_bound(copy.row_begin.begin(), copy.row_begin.end(), share);
    if (after != copy.row_begin.begin() && share - after[-1] < *after - share)
      --after;
    const i64 row = after - copy.row_begin.begin();
    boundary[static_cast<std::size_t>(k)] = row < copy.row_index.size() ? copy.row_index[row] : rows;
  }
  return boundary;
}

kernels::CooView Tensor::coordinates(std::optional<formats::Coo> &holder, int threads) const {
  if (dense_)
    throw_error(Status::unsupported, "coordinates of a dense tensor, expected a sparse one");
  if (coo_)
    return coo_->view();
  if (blco_)
    holder = formats::decode(*blco_, threads);
  else
    holder = formats::decode(sorted_.front(), threads);
  return holder->view();
}

void Tensor::slice_counts(int mode, i64 *counts) const {
  const auto m = static_cast<std::size_t>(mode);
  if (dense_) {
    std::fill(counts, counts + dims_[m], facts_.nnz / dims_[m]);
    return;
  }
  std::fill(counts, counts + dims_[m], i64{0});
  if (!sorted_.empty()) {
    const auto &copy = sorted_[m];
    for (i64 row = 0; row < copy.row_index.size(); ++row)
      counts[copy.row_index[row]] = copy.row_begin[row + 1] - copy.row_begin[row];
    return;
  }
  std::optional<formats::Coo> holder;
  const auto view = coordinates(holder, 1);
  for (i64 k = 0; k < view.nnz; ++k)
    ++counts[view.indices[mode][k]];
}

} // namespace td::plan
