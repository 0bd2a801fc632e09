#include "solvers/mttkrp.hpp"

#include "comm/workers.hpp"
#include "core/error.hpp"
#include "core/relayout.hpp"
#include "solvers/border.hpp"
#include "solvers/products.hpp"
#include "tensor/row_blocks.hpp"

namespace td::solvers {

namespace {

/// Gives a worker's rows of a product to the caller; those of all others, too, where the caller's array is in the first
/// worker's memory.
class Giving {
public:
  Giving(const tensor::Tensor &x, const Worker &worker, int mode, const CallerResult &result)
      : x_(x), worker_(worker), numbering_(x.numbering()), mode_(mode), result_(result) {}

  /// Comes before give(): with the rows that have no number.
  void set_zero(kernels::Backend &backend) const {
    if (numbering_.is_index(mode_))
      return;
    if (!result_.on_device)
      return td::set_zero(result_.columns);
    backend.set_zero(result_.columns);
    backend.wait();
  }

  void give(kernels::Backend &backend, Communicator &others, Matrix product) const {
    if (x_.distribution() != nullptr)
      return give_all(backend, product);
    if (!result_.on_device || others.size() == 1)
      return give_rows(backend, product, worker_.own(mode_));
    worker_.gather(mode_, product);
    if (others.rank() == 0)
      give_rows(backend, product, {{0, product.rows}});
  }

private:
  void give_rows(kernels::Backend &backend, Matrix product, const Ranges &some) const {
    for (const Range &own : some) {
      const Matrix rows = product.slice(own.begin, own.end);
      if (numbering_.is_index(mode_))
        give_columns(backend, rows, {}, result_.columns.columns(own.begin, own.end), result_.on_device);
      else
        give_columns(
            backend, rows,
            numbering_.rows(mode_).subspan(static_cast<std::size_t>(own.begin), static_cast<std::size_t>(own.size())),
            result_.columns, result_.on_device);
    }
  }

  /// Every process has a caller, who gets the rows of all.
  void give_all(kernels::Backend &backend, Matrix product) const {
    const i64 rows = x_.dims()[static_cast<std::size_t>(mode_)];
    const char *const what = "the result of MTTKRP of all processes";
    Buffer<std::byte> staged(rows * product.cols * size_of(product.type), what);
    const Matrix all{staged.data(), product.type, rows, product.cols, product.cols};
    Processes &processes = x_.distribution()->processes();
    const Range mine = tensor::block_of(processes).of(rows);
    worker_.settle(mode_, product, all.slice(mine.begin, mine.end));
    tensor::share_rows(processes, all);
    if (!result_.on_device)
      return scatter_transposed(all, nullptr, result_.columns, {0, rows});
    const DeviceMatrix there(backend, rows, product.cols, product.type, what);
    backend.upload(there.view().data, all.data, staged.size());
    give_columns(backend, there.view(), {}, result_.columns, true);
  }

  const tensor::Tensor &x_;
  const Worker &worker_;
  const formats::Numbering &numbering_;
  int mode_;
  const CallerResult &result_;
};

/// take(replica, backend, others) brings the factors to a worker.
template <class Take>
void run(const Backends &backends, const tensor::Tensor &x, int mode, const CallerResult &result, Take &&take) {
  const formats::Numbering &numbering = x.numbering();
  const i64 rank = result.columns.rows;
  const tensor::Sharding sharding(x, static_cast<int>(backends.size()), false);
  run_workers(
      backends,
      [&](kernels::Backend &backend, Communicator &others) {
        const Worker worker(x, sharding, backend, others);
        Replica replica(backend, x.stored_dims(), rank, x.type());
        take(replica, backend, others);
        const i64 rows = x.stored_dims()[static_cast<std::size_t>(mode)];
        const DeviceMatrix product(backend, rows, rank, x.type(), "the result of MTTKRP");
        // What is wanted once gains nothing from a partial product of a dense tensor; where the option names the groups
        // it is taken through one all the same, so that this path can be reached by itself.
        const auto partial = plan::product_by_itself(x.stored_dims(), x.settings().groups, mode);
        if (x.sparse() ? x.groups().shared(x.groups().group_of(mode)) : partial.has_value()) {
          Products products(x, worker, backend, rank);
          products.reserve(x.sparse() ? 0 : partial->cells);
          products.mttkrp(mode, replica.views(), product.view(), x.sparse() ? nullptr : &*partial);
        } else
          MixedMttkrp(x, worker, backend).mttkrp(mode, replica.views(), product.view());
        const Ranges &own_rows = worker.own(mode);
        std::vector<ConstMatrix> mine;
        for (const Range &own : own_rows)
          mine.push_back(product.view().slice(own.begin, own.end));
        const std::vector<i64> overflowed = first_not_finite(backend, mine);
        for (std::size_t k = 0; k < mine.size(); ++k)
          if (const i64 at = overflowed[k]; at < mine[k].rows * rank)
            throw_error(Status::numerical, "MTTKRP in mode {} overflowed {} at row {}, column {}", mode,
                        name_of(x.type()), numbering.row(mode, own_rows[k].begin + at / rank), at % rank);
        const Giving giving(x, worker, mode, result);
        if (others.rank() == 0)
          giving.set_zero(backend);
        others.barrier();
        giving.give(backend, others, product.view());
        backend.wait(); // the result is the caller's when the call returns
      },
      x.processes());
}

} // namespace

void mttkrp(const Backends &backends, const tensor::Tensor &x, int mode, const CallerFactors &factors,
            const CallerResult &result) {
  std::vector<int> modes;
  std::vector<ConstMatrix> columns;
  for (int m = 0; m < x.order(); ++m)
    if (m != mode) {
      modes.push_back(m);
      columns.push_back(factors.columns[static_cast<std::size_t>(m)]);
    }
  std::vector<i64> found;
  if (factors.on_device)
    found = first_not_finite(*backends.front(), columns);
  else
    for (const ConstMatrix &a : columns)
      found.push_back(td::first_not_finite(a, total_threads(backends)));
  for (std::size_t k = 0; k < columns.size(); ++k) {
    const ConstMatrix &a = columns[k];
    if (const i64 at = found[k]; at < a.rows * a.cols)
      throw_error(Status::argument, "factor {}: entry at row {}, column {} is not finite", modes[k], at % a.cols,
                  at / a.cols);
  }
  run(backends, x, mode, result, [&](Replica &replica, kernels::Backend &backend, Communicator &others) {
    const bool of_first = factors.on_device && x.processes() == nullptr; // else each worker can reach them
    for (int m = 0; m < x.order(); ++m) {
      if (m == mode)
        continue;
      if (!of_first || others.rank() == 0)
        take_columns(backend, factors.columns[static_cast<std::size_t>(m)], factors.on_device, x.numbering().rows(m),
                     replica[m]);
      if (of_first && others.size() > 1) {
        std::vector<Ranges> all_of_first(static_cast<std::size_t>(others.size()));
        all_of_first.front() = {{0, replica[m].rows}};
        others.allgather_rows(replica[m], all_of_first);
      }
    }
  });
}

void mttkrp(const Backends &backends, const tensor::Tensor &x, int mode, const Ktensor &factors,
            const CallerResult &result) {
  run(backends, x, mode, result, [&](Replica &replica, kernels::Backend &, Communicator &) {
    for (int m = 0; m < x.order(); ++m)
      if (m != mode)
        replica.upload(m, factors.factor(m), x.numbering().rows(m));
  });
}

} // namespace td::solvers
