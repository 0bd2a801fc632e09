#include <cmath>

#include "formats/formats.hpp"
#include "formats/runs.hpp"

namespace td::formats {

void check_dims(std::span<const i64> dims) {
  const auto order = static_cast<i64>(dims.size());
  if (order < min_order || order > max_order)
    throw_error(Status::shape, "order = {}, expected {} to {}", order, min_order, max_order);
  for (i64 m = 0; m < order; ++m)
    if (dims[static_cast<std::size_t>(m)] < 1)
      throw_error(Status::shape, "mode {}: dim = {}, expected 1 or more", m, dims[static_cast<std::size_t>(m)]);
}

namespace {

/// First entry in r whose index in `mode` is outside, or -1.
template <class Index> i64 first_outside(const EntriesView &e, int mode, Range r) {
  const auto *index = static_cast<const Index *>(e.indices[mode]);
  const auto dim = static_cast<u64>(e.dims[static_cast<std::size_t>(mode)]);
  const auto base = static_cast<u64>(e.index_base);
  // Below the base wraps round to a huge number: one comparison tests both ends.
  return first_bad(r, [&](i64 k) { return static_cast<u64>(static_cast<i64>(index[k])) - base >= dim; });
}

template <class Index> [[noreturn]] void throw_outside(const EntriesView &e, i64 k) {
  for (int m = 0; m < e.order(); ++m)
    if (first_outside<Index>(e, m, {k, k + 1}) == k) {
      const i64 dim = e.dims[static_cast<std::size_t>(m)];
      throw_error(Status::index, "entry {}, mode {} (counting from {}): index {} outside {}..{}", k + e.index_base,
                  m + e.index_base, e.index_base, static_cast<const Index *>(e.indices[m])[k], e.index_base,
                  dim - 1 + e.index_base);
    }
  throw_error(Status::internal, "entry {} has no index outside", k);
}

/// The first entry with an index outside and the first that is not finite; -1: none. Of two the first is reported, and
/// of an entry with both its index.
void refuse_bad(const EntriesView &e, i64 outside, i64 not_finite) {
  if (not_finite >= 0 && (outside < 0 || not_finite < outside))
    dispatch(e.value_type, [&](auto zero) {
      throw_error(Status::argument, "entry {} (counting from {}): value {}, expected a finite number",
                  not_finite + e.index_base, e.index_base, static_cast<const decltype(zero) *>(e.values)[not_finite]);
    });
  if (outside >= 0)
    dispatch(e.index_type, [&](auto zero) { throw_outside<decltype(zero)>(e, outside); });
}

} // namespace

void check_shape(const EntriesView &e) {
  check_dims(e.dims);
  if (e.nnz < 0)
    throw_error(Status::shape, "nnz = {}, expected 0 or more", e.nnz);
  if (e.index_base != 0 && e.index_base != 1)
    throw_error(Status::argument, "index_base = {}, expected 0 or 1", e.index_base);
}

void check_entries(const Given &given, kernels::Building &building) {
  const i64 outside = building.first_outside();
  const i64 not_finite = building.first_not_finite();
  if (outside >= 0 || not_finite >= 0)
    refuse_bad(given.on_host(), outside, not_finite);
}

void check_entries(const EntriesView &e, int threads) {
  check_shape(e);
  const i64 outside = dispatch(e.index_type, [&](auto zero) {
    using Index = decltype(zero);
    return first_found(e.nnz, threads, [&](Range r) {
      i64 found = -1;
      for (int m = 0; m < e.order(); ++m) // what was found bounds the search in the modes that follow
        if (const i64 k = first_outside<Index>(e, m, {r.begin, found < 0 ? r.end : found}); k >= 0)
          found = k;
      return found;
    });
  });
  const i64 not_finite = dispatch(e.value_type, [&](auto zero) {
    const auto *values = static_cast<const decltype(zero) *>(e.values);
    const auto bad = [&](i64 k) { return !std::isfinite(values[k]); };
    const i64 before = outside < 0 ? e.nnz : outside; // what comes later is not reported
    return first_found(before, threads, [&](Range r) { return first_bad(r, bad); });
  });
  refuse_bad(e, outside, not_finite);
}

} // namespace td::formats
