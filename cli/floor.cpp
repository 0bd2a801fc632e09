#include "floor.hpp"

#include <algorithm>

#include "tensor_facts.hpp"

namespace cli {

Limits limits_of(td_context *context, const Machine &host) {
  const std::int64_t dims[] = {1, 1};
  const Plan plan = make<Plan>(td_plan_create, context, 2, dims, std::int64_t{1}, TD_F64, std::int64_t{1}, nullptr);
  const auto rate = [&](const char *key) { return get<double>(td_plan_get_f64, plan, key); };
  if (get<std::int64_t>(td_plan_get_i64, plan, "device_bytes.peak") == 0) // all is in the host's memory
    return {host.read, host.f64, host.f32, false};
  const auto gpus = static_cast<double>(get<std::int64_t>(td_plan_get_i64, plan, "workers"));
  return {gpus * rate("rate.read"), gpus * rate("rate.operations"), 2 * gpus * rate("rate.operations"), true};
}

// A sweep reads each of the copies of "sorted" once, whether each mode has its own or modes share partial products: an
// even part of all for each mode. The one copy of other formats is read in every mode. Each mode writes its nonempty
// rows once; rows of the other factors are taken to be in cache. A dense tensor may be bound by arithmetic instead: a
// multiplication and an addition an element and a column.
Floors::Floors(const td_tensor *x, const Limits &limits) : bandwidth_(limits.read) {
  const bool sparse = get<std::int64_t>(td_tensor_get_i64, x, "sparse") != 0;
  const bool f32 = get<td_type>(td_tensor_type, x) == TD_F32;
  element_ = f32 ? sizeof(float) : sizeof(double);
  rate_ = f32 ? limits.f32 : limits.f64;
  operations_ = sparse ? 0 : 2 * static_cast<double>(get<std::int64_t>(td_tensor_nnz, x));
  for (const Slices &mode : slices(x))
    rows_.push_back(static_cast<double>(mode.nonempty));
  const double parts = text(td_tensor_get_str, x, "format") == "sorted" ? static_cast<double>(rows_.size()) : 1;
  stored_bytes_ = static_cast<double>(get<std::int64_t>(td_tensor_get_i64, x, "bytes")) / parts;
}

std::vector<Floor> Floors::of(std::int64_t rank) const {
  std::vector<Floor> out;
  const auto columns = static_cast<double>(rank);
  for (const double rows : rows_) {
    Floor f;
    f.bytes = stored_bytes_ + rows * columns * element_;
    f.operations = operations_ * columns;
    f.seconds = std::max(f.bytes / bandwidth_, f.operations / rate_);
    out.push_back(f);
  }
  return out;
}

} // namespace cli
