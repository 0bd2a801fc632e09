#include <cmath>
#include <optional>
#include <tuple>

#include <fmt/format.h>

#include "arguments.hpp"
#include "guard.hpp"
#include "handles.hpp"
#include "solvers/fit.hpp"
#include "solvers/magnitude.hpp"
#include "tensor/row_blocks.hpp"
#include "together.hpp"

using namespace td;
using namespace td::c_api;

namespace {

std::shared_ptr<Model> ktensor_of(const td_ktensor *ktensor) { return object_of(ktensor, "ktensor"); }

/// Gives a ktensor that may be here only in a block.
std::shared_ptr<Model> block_of(const td_ktensor *ktensor) { return object_of<td_ktensor>(ktensor, "ktensor"); }

Meeting meeting_of(Processes *processes) { return processes == nullptr ? Meeting{} : tensor::meeting_of(*processes); }

/// Runs body(k, others) for a ktensor, of which all processes call it that have a block.
template <class Body> td_status with_blocks(const td_ktensor *ktensor, Body &&body) {
  return guard([&] {
    const auto k = block_of(ktensor);
    together(
        k->processes.get(), [] {}, [&] { body(*k, meeting_of(k->processes.get())); });
  });
}

/// Does the same with two: each process takes its block of a whole one that is beside one in blocks.
template <class Body> td_status with_blocks(const td_ktensor *a, const td_ktensor *b, Body &&body) {
  return guard([&] {
    const auto ka = object_of<td_ktensor>(a, "a");
    const auto kb = object_of<td_ktensor>(b, "b");
    if (ka->processes != nullptr && kb->processes != nullptr && ka->processes != kb->processes)
      throw_error(Status::unsupported, "a, b: have rows on the processes of two communicators; expected one");
    Processes *const processes = ka->processes != nullptr ? ka->processes.get() : kb->processes.get();
    together(
        processes, [] {},
        [&] {
          require_same_dims(ka->dims(), "a", kb->dims(), "b");
          const RowBlock block = processes == nullptr ? RowBlock{} : tensor::block_of(*processes);
          const auto in_block = [&](const Model &k) {
            return k.block() == block ? std::optional<Ktensor>() : k.cut(block);
          };
          const std::optional<Ktensor> cut_a = in_block(*ka), cut_b = in_block(*kb);
          const Ktensor &block_a = cut_a ? *cut_a : *ka, &block_b = cut_b ? *cut_b : *kb;
          body(block_a, block_b, meeting_of(processes), ka->budget.beside(ka->bytes()).beside(kb->bytes()));
        });
  });
}

/// Before a model is compared with a tensor: copies of it that are scaled, and a backend's.
void require_comparison(const Context &context, const tensor::Tensor &x, const Model &k) {
  MemoryNeed need;
  const auto once = static_cast<double>(Ktensor::need(k.dims(), k.rank(), ValueType::f64).total());
  need.add("copies of the model", 4 * once);
  const bool widened = solvers::compared_type(x, k) != x.type();
  if (solvers::unusual_exponent(x) != 0 || widened)
    need.add("a copy of the tensor in a safe range", (widened ? 4 : 2) * static_cast<double>(x.bytes()));
  context.budget().beside(x.bytes()).beside(k.bytes()).require("comparing a model with a tensor", need);
}

} // namespace

extern "C" {

td_status td_ktensor_create(td_context *context, int32_t order, const int64_t *dims, int64_t rank, td_type type,
                            td_ktensor **out) {
  return guard([&] {
    require_out(out, "out");
    const auto c = object_of(context, "context");
    const auto shape = dims_view(order, dims);
    *out = make_handle<td_ktensor>(
        std::make_shared<Model>(Ktensor(shape, rank, value_type(type, "type"), c->budget()), c->budget()));
  });
}

td_status td_ktensor_copy(const td_ktensor *ktensor, td_ktensor **out) {
  return guard([&] {
    require_out(out, "out");
    const auto k = block_of(ktensor);
    *out = make_handle<td_ktensor>(
        std::make_shared<Model>(k->copy(k->budget.beside(k->bytes())), k->budget, k->processes));
  });
}

void td_ktensor_destroy(td_ktensor *ktensor) { drop_handle(ktensor); }

td_status td_ktensor_shape(const td_ktensor *ktensor, int32_t *order, int64_t *dims, int64_t *rank, td_type *type) {
  return guard([&] {
    const auto k = block_of(ktensor);
    if (order != nullptr)
      *order = k->order();
    if (dims != nullptr)
      std::copy(k->dims().begin(), k->dims().end(), dims);
    if (rank != nullptr)
      *rank = k->rank();
    if (type != nullptr)
      *type = static_cast<td_type>(k->type());
  });
}

td_status td_ktensor_set_factor(td_ktensor *ktensor, int32_t mode, const void *a, int64_t ld, td_space space) {
  return guard([&] {
    const auto k = ktensor_of(ktensor);
    require_mode(mode, k->order());
    require(a, "a");
    require_host(space);
    k->set_factor(mode, a, ld);
  });
}

td_status td_ktensor_get_factor(const td_ktensor *ktensor, int32_t mode, void *a, int64_t ld, td_space space) {
  return guard([&] {
    const auto k = ktensor_of(ktensor);
    require_mode(mode, k->order());
    require(a, "a");
    require_host(space);
    k->get_factor(mode, a, ld);
  });
}

td_status td_ktensor_set_weights(td_ktensor *ktensor, const double *weights) {
  return guard([&] {
    const auto k = ktensor_of(ktensor);
    require(weights, "weights");
    for (i64 r = 0; r < k->rank(); ++r)
      if (!std::isfinite(weights[r]))
        throw_error(Status::argument, "weights[{}] = {}: expected a finite number", r, weights[r]);
    std::copy_n(weights, k->rank(), k->weights().begin());
  });
}

td_status td_ktensor_get_weights(const td_ktensor *ktensor, double *weights) {
  return guard([&] {
    const auto k = block_of(ktensor);
    require(weights, "weights");
    std::copy(k->weights().begin(), k->weights().end(), weights);
  });
}

td_status td_ktensor_normalize(td_ktensor *ktensor) {
  return with_blocks(ktensor, [](Model &k, const Meeting &others) { k.normalize(others); });
}

td_status td_ktensor_arrange(td_ktensor *ktensor) {
  return with_blocks(ktensor, [](Model &k, const Meeting &others) { k.arrange(others); });
}

td_status td_ktensor_fixsigns(td_ktensor *ktensor) {
  return with_blocks(ktensor, [](Model &k, const Meeting &others) { k.fixsigns(others); });
}

td_status td_ktensor_norm(const td_ktensor *ktensor, double *norm) {
  return with_blocks(ktensor, [&](const Model &k, const Meeting &others) {
    require(norm, "norm");
    *norm = finite(k.norm(others), "the norm");
  });
}

td_status td_ktensor_dot(const td_ktensor *a, const td_ktensor *b, double *dot) {
  return with_blocks(a, b, [&](const Ktensor &ka, const Ktensor &kb, const Meeting &others, const MemoryBudget &) {
    require(dot, "dot");
    *dot = finite(td::dot(ka, kb, others), "the inner product");
  });
}

td_status td_ktensor_dot_tensor(td_context *context, const td_ktensor *ktensor, const td_tensor *tensor, double *dot) {
  return guard([&] {
    const auto c = object_of(context, "context");
    const auto k = ktensor_of(ktensor);
    const auto x = tensor_for(*c, tensor);
    require_whole(*x, "td_ktensor_dot_tensor");
    require(dot, "dot");
    require_same_dims(k->dims(), "ktensor", x->dims(), "tensor");
    require_comparison(*c, *x, *k);
    *dot = finite(solvers::dot(*c->backends.front(), *x, *k), "the inner product");
  });
}

td_status td_ktensor_fit(td_context *context, const td_ktensor *ktensor, const td_tensor *tensor, double *fit,
                         double *explained, double *relative, double *residual) {
  return guard([&] {
    const auto c = object_of(context, "context");
    const auto k = ktensor_of(ktensor);
    const auto x = tensor_for(*c, tensor);
    require_whole(*x, "td_ktensor_fit");
    require_same_dims(k->dims(), "ktensor", x->dims(), "tensor");
    require_comparison(*c, *x, *k);
    const solvers::Fit f = solvers::fit(*c->backends.front(), *x, *k);
    const std::tuple<double *, double, const char *> results[] = {{fit, f.fit, "the fit"},
                                                                  {explained, f.explained, "the explained part"},
                                                                  {relative, f.relative, "the relative residual"},
                                                                  {residual, f.residual, "the residual"}};
    for (const auto &[out, value, name] : results) // all are checked before one is written
      if (out != nullptr)
        finite(value, name);
    for (const auto &[out, value, name] : results)
      if (out != nullptr)
        *out = value;
  });
}

td_status td_ktensor_values_at(const td_ktensor *ktensor, int64_t n, td_type index_type, const void *const *indices,
                               int32_t index_base, double *values) {
  return guard([&] {
    const auto k = ktensor_of(ktensor);
    const EntriesView view = coordinates_view(k->dims(), n, index_type, indices, index_base);
    if (n > 0)
      require(values, "values");
    td::values_at(*k, view, values);
  });
}

td_status td_ktensor_full(const td_ktensor *ktensor, const int64_t *strides, td_type value_type, void *values) {
  return guard([&] {
    const auto k = ktensor_of(ktensor);
    const auto type = c_api::value_type(value_type, "value_type");
    require(values, "values");
    td::full(*k, strides_view(k->order(), strides), type, values);
  });
}

td_status td_ktensor_score(const td_ktensor *a, const td_ktensor *b, int32_t use_weights, double *score,
                           int64_t *match) {
  return with_blocks(a, b,
                     [&](const Ktensor &ka, const Ktensor &kb, const Meeting &others, const MemoryBudget &budget) {
                       require(score, "score");
                       const Score s = td::score(ka, kb, use_weights != 0, budget, others);
                       *score = s.value;
                       if (match != nullptr)
                         std::copy(s.match.begin(), s.match.end(), match);
                     });
}

td_status td_ktensor_local_rows(const td_ktensor *ktensor, int32_t mode, int64_t *first, int64_t *count) {
  return guard([&] {
    const auto k = block_of(ktensor);
    require_mode(mode, k->order());
    const Range rows = k->rows(mode);
    if (first != nullptr)
      *first = rows.begin;
    if (count != nullptr)
      *count = rows.size();
  });
}

td_status td_ktensor_get_local_factor(const td_ktensor *ktensor, int32_t mode, void *a, int64_t ld, td_space space) {
  return guard([&] {
    const auto k = block_of(ktensor);
    require_mode(mode, k->order());
    if (k->rows(mode).size() > 0)
      require(a, "a");
    require_host(space);
    k->get_factor(mode, a, ld);
  });
}

td_status td_ktensor_gather(const td_ktensor *ktensor, td_ktensor **out) {
  return guard([&] {
    if (out != nullptr)
      *out = nullptr;
    const auto k = block_of(ktensor);
    together(
        k->processes.get(), [&] { take_back(out); },
        [&] {
          require_out(out, "out");
          const MemoryBudget budget = k->budget.beside(k->bytes());
          *out = make_handle<td_ktensor>(std::make_shared<Model>(
              k->processes == nullptr ? k->copy(budget) : tensor::gather(*k->processes, *k, budget), k->budget));
        });
  });
}

} // extern "C"
