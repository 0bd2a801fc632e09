#include "solvers/mttkrp.hpp"

#include <fmt/format.h>

#include "arguments.hpp"
#include "core/buffer.hpp"
#include "core/strides.hpp"
#include "guard.hpp"
#include "handles.hpp"
#include "space.hpp"
#include "tensor/planned.hpp"
#include "tensor/row_blocks.hpp"
#include "together.hpp"

using namespace td;
using namespace td::c_api;

namespace {

/// Before MTTKRP allocates. Where nothing limits it but the machine, little work is not held up by being planned.
void require_room(const Context &context, const tensor::Tensor &x, i64 rank, int mode) {
  if (rank < 1)
    throw_error(Status::shape, "rank = {}: expected at least 1", rank);
  const double workers = static_cast<double>(context.backends.size());
  const auto backends = context.backends_of(0); // each worker has a part as large as this one's
  const Options options = for_worker(context, options_in(context, nullptr));
  const plan::Groups &groups = x.groups();
  double rows = workers * static_cast<double>(groups.cell_count(groups.group_of(mode)));
  for (const i64 dim : x.dims())
    rows += 2 * workers * static_cast<double>(dim);
  if (context.memory_limit > 0 || context.budget().concerns(saturated(8 * rows * static_cast<double>(rank))))
    tensor::require_mttkrp(x, {options, rank, backends, ""}, mode);
}

solvers::CallerResult result_of(const Space &where, void *out, const tensor::Tensor &x, int mode, i64 rank, i64 ld) {
  const i64 rows = x.dims()[static_cast<std::size_t>(mode)];
  require_columns("out", x.type(), rows, rank, ld);
  where.borrow(out, "out");
  return {{out, x.type(), rank, rows, ld}, where.gpu() != nullptr};
}

/// Factors on a GPU := copies on the host, where each of several workers of a process reads them.
void to_host(solvers::CallerFactors &given, std::vector<Buffer<std::byte>> &copies, kernels::Backend *gpu) {
  for (ConstMatrix &a : given.columns) {
    if (gpu == nullptr || a.data == nullptr)
      continue;
    const i64 bytes = ((a.rows - 1) * a.ld + a.cols) * size_of(a.type);
    auto &copy = copies.emplace_back(bytes, "a copy of a caller's factor");
    gpu->download(copy.data(), a.data, bytes);
    a.data = copy.data();
  }
  given.on_device = false;
}

/// Calls multiply(worker, result) on each worker. Where processes share the tensor each is left with a block of the
/// result's rows, which its first worker has; all rows then are in memory once a process.
template <class Multiply>
void run_mttkrp(const Context &context, const solvers::CallerResult &result, Multiply &&multiply) {
  if (context.processes == nullptr)
    return multiply(0, result);
  const ConstMatrix &columns = result.columns;
  Buffer<std::byte> rows(columns.cols * columns.rows * size_of(columns.type), "the result of MTTKRP of all processes");
  const Matrix all{rows.data(), columns.type, columns.cols, columns.rows, columns.rows};
  run_on_workers(context, [&](int worker) {
    const Range mine = tensor::block_of(*context.others_of(worker)).of(all.rows);
    solvers::CallerResult block = result;
    block.block = all.slice(mine.begin, mine.end);
    multiply(worker, block);
  });
  solvers::give(*context.processes, *context.backends.front(), all, result);
}

} // namespace

extern "C" {

td_status td_mttkrp(td_context *context, const td_tensor *tensor, int32_t mode, int64_t rank,
                    const void *const *factors, const int64_t *ld, void *out, int64_t ld_out, td_space space) {
  return guard([&] {
    const auto c = object_of(context, "context");
    together(
        *c, [] {},
        [&] {
          const Parts parts = parts_for(*c, tensor);
          const auto &x = parts.front();
          require_mode(mode, x->order());
          require(factors, "factors");
          require(ld, "ld");
          require(out, "out");
          const Space where(*c, space);
          require_room(*c, *x, rank, mode);
          const solvers::CallerResult result = result_of(where, out, *x, mode, rank, ld_out);
          const auto dims = x->dims();
          std::vector<Buffer<std::byte>> copies;
          solvers::CallerFactors given{std::vector<ConstMatrix>(dims.size()), where.gpu() != nullptr};
          for (std::size_t m = 0; m < dims.size(); ++m) {
            if (static_cast<int>(m) == mode)
              continue;
            if (factors[m] == nullptr)
              throw_error(Status::argument, "factors[{}]: null pointer", m);
            const std::string name = fmt::format("factor {}", m);
            require_columns(name, x->type(), dims[m], rank, ld[m]);
            where.borrow(factors[m], name);
            given.columns[m] = {factors[m], x->type(), rank, dims[m], ld[m]};
          }
          if (c->workers != nullptr)
            to_host(given, copies, where.gpu());
          run_mttkrp(*c, result, [&](int worker, const solvers::CallerResult &own) {
            solvers::mttkrp(c->backends_of(worker), *parts[static_cast<std::size_t>(worker)], mode, given, own);
          });
          c->say_shortage();
        });
  });
}

td_status td_mttkrp_ktensor(td_context *context, const td_tensor *tensor, int32_t mode, const td_ktensor *ktensor,
                            void *out, int64_t ld_out, td_space space) {
  return guard([&] {
    const auto c = object_of(context, "context");
    together(
        *c, [] {},
        [&] {
          const Parts parts = parts_for(*c, tensor);
          const auto &x = parts.front();
          const auto k = object_of(ktensor, "ktensor");
          require_mode(mode, x->order());
          require(out, "out");
          const Space where(*c, space);
          require_same_dims(k->dims(), "ktensor", x->dims(), "tensor");
          if (k->type() != x->type())
            throw_error(Status::type, "ktensor is {}, tensor is {}: expected the same type", name_of(k->type()),
                        name_of(x->type()));
          const solvers::CallerResult result = result_of(where, out, *x, mode, k->rank(), ld_out);
          require_room(*c, *x, k->rank(), mode);
          run_mttkrp(*c, result, [&](int worker, const solvers::CallerResult &own) {
            solvers::mttkrp(c->backends_of(worker), *parts[static_cast<std::size_t>(worker)], mode, *k, own);
          });
          c->say_shortage();
        });
  });
}

} // extern "C"
