#include "solvers/mttkrp.hpp"

#include <limits>

#include <fmt/format.h>

#include "arguments.hpp"
#include "core/checked.hpp"
#include "core/relayout.hpp"
#include "guard.hpp"
#include "handles.hpp"
#include "space.hpp"

using namespace td;
using namespace td::c_api;

namespace {

void require_ld(std::int64_t ld, i64 rows, std::string_view name) {
  if (ld < rows)
    throw_error(Status::shape, "{}: ld = {} < rows = {}", name, ld, rows);
}

void run(const Context &context, const plan::Tensor &x, int mode, std::span<const ConstMatrix> factors, Matrix result,
         Space &space, void *out, std::int64_t ld_out) {
  solvers::mttkrp(context.backends, x, mode, factors, result);
  if (const auto bad = find_not_finite(result))
    throw_error(Status::numerical, "MTTKRP in mode {} overflowed {} at row {}, column {}", mode, name_of(x.type()),
                bad->first, bad->second);
  space.give(result, out, ld_out, "out");
}

/// One past the last element of a column-major factor.
i64 last_element(std::span<const i64> dims, int mode, i64 rank, i64 ld) {
  const auto before = checked_multiply(rank - 1, ld);
  const i64 rows = dims[static_cast<std::size_t>(mode)];
  if (!before || *before > std::numeric_limits<i64>::max() - rows)
    throw_error(Status::shape, "factor {}: ld = {} times {} columns is more than 2^63 - 1", mode, ld, rank);
  return *before + rows;
}

std::vector<ConstMatrix> factors_of(const Ktensor &k) {
  std::vector<ConstMatrix> factors;
  for (int m = 0; m < k.order(); ++m)
    factors.push_back(k.factor(m));
  return factors;
}

} // namespace

extern "C" {

td_status td_mttkrp(td_context *context, const td_tensor *tensor, int32_t mode, int64_t rank,
                    const void *const *factors, const int64_t *ld, void *out, int64_t ld_out, td_space space) {
  return guard([&] {
    const auto c = object_of(context, "context");
    const auto x = object_of(tensor, "tensor");
    require_mode(mode, x->order());
    require(factors, "factors");
    require(ld, "ld");
    require(out, "out");
    Space where(*c, space);
    const auto dims = x->dims();
    require_ld(ld_out, dims[static_cast<std::size_t>(mode)], "out");
    for (int m = 0; m < x->order(); ++m) {
      if (m == mode)
        continue;
      if (factors[m] == nullptr)
        throw_error(Status::argument, "factors[{}]: null pointer", m);
      require_ld(ld[m], dims[static_cast<std::size_t>(m)], fmt::format("factor {}", m));
    }
    Ktensor k(dims, rank, x->type());
    for (int m = 0; m < x->order(); ++m)
      if (m != mode)
        k.set_factor(m,
                     where.readable(factors[m], 0, last_element(dims, m, rank, ld[m]), size_of(x->type()),
                                    fmt::format("factor {}", m)),
                     ld[m]);
    run(*c, *x, mode, factors_of(k), k.factor(mode), where, out, ld_out);
    c->say_shortage();
  });
}

td_status td_mttkrp_ktensor(td_context *context, const td_tensor *tensor, int32_t mode, const td_ktensor *ktensor,
                            void *out, int64_t ld_out, td_space space) {
  return guard([&] {
    const auto c = object_of(context, "context");
    const auto x = object_of(tensor, "tensor");
    const auto k = object_of(ktensor, "ktensor");
    require_mode(mode, x->order());
    require(out, "out");
    Space where(*c, space);
    const auto dims = x->dims();
    require_same_dims(k->dims(), "ktensor", dims, "tensor");
    if (k->type() != x->type())
      throw_error(Status::type, "ktensor is {}, tensor is {}: expected the same type", name_of(k->type()),
                  name_of(x->type()));
    require_ld(ld_out, dims[static_cast<std::size_t>(mode)], "out");
    const i64 rows = dims[static_cast<std::size_t>(mode)];
    ValueBuffer result(x->type(), checked_multiply(rows, k->rank()).value_or(-1), "the result of MTTKRP");
    run(*c, *x, mode, factors_of(*k), {result.data(), x->type(), rows, k->rank(), k->rank()}, where, out, ld_out);
    c->say_shortage();
  });
}

} // extern "C"
