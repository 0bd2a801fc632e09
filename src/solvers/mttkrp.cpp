#include "solvers/mttkrp.hpp"

#include <algorithm>

#include "comm/workers.hpp"
#include "core/buffer.hpp"
#include "core/error.hpp"
#include "core/relayout.hpp"
#include "solvers/products.hpp"
#include "tensor/row_blocks.hpp"

namespace td::solvers {

namespace {

// Matrices pass between callers, whose matrices are column-major and lie in host memory or a backend's, and workers. A
// caller's matrix is given as one of its columns: row r of it is column r.

constexpr i64 staging_bytes = i64{32} << 20; // columns that pass between host and device at a time

/// The rows' list where the backend's kernels read it; null for none.
class RowList {
public:
  RowList(kernels::Backend &backend, std::span<const i64> rows) : rows_(rows.empty() ? nullptr : rows.data()) {
    if (rows.empty() || !backend.has_own_memory())
      return;
    copy_ = kernels::DeviceBuffer(backend, static_cast<i64>(rows.size_bytes()), "a list of rows");
    backend.upload(copy_.data(), rows.data(), copy_.bytes());
    rows_ = static_cast<const i64 *>(copy_.data());
  }
  const i64 *data() const noexcept { return rows_; }

private:
  const i64 *rows_;
  kernels::DeviceBuffer copy_;
};

/// Calls body(columns, staging) for ranges of columns of a host matrix, with room for them on the device.
template <class Body> void for_staged_columns(kernels::Backend &backend, i64 columns, i64 column_bytes, Body &&body) {
  const i64 step = std::clamp<i64>(staging_bytes / std::max<i64>(column_bytes, 1), 1, std::max<i64>(columns, 1));
  const kernels::DeviceBuffer staging(backend, step * column_bytes, "columns on their way between host and device");
  for (i64 begin = 0; begin < columns; begin += step)
    body(Range{begin, std::min(begin + step, columns)}, staging.data());
}

/// Calls copy(host, device, bytes) for what follows one another of a host matrix's columns, and without gaps on the
/// device.
template <class Copy> void copy_columns(const ConstMatrix &host, Range columns, void *staging, Copy &&copy) {
  const i64 column = host.cols * size_of(host.type);
  auto *to = static_cast<char *>(staging);
  const ConstMatrix some = host.slice(columns.begin, columns.end);
  if (host.ld == host.cols)
    return copy(some.data, to, columns.size() * column);
  for (i64 r = 0; r < columns.size(); ++r)
    copy(some.slice(r, r + 1).data, to + r * column, column);
}

/// Calls body(some, staged) for ranges of the worker's rows, with room for them on the host.
template <class Body> void for_host_rows(const ConstMatrix &a, Body &&body) {
  const i64 row_bytes = a.cols * size_of(a.type);
  const i64 step = std::clamp<i64>(staging_bytes / row_bytes, 1, std::max<i64>(a.rows, 1));
  Buffer<std::byte> rows(std::min(step, a.rows) * row_bytes, "rows on their way between host and device");
  for (i64 begin = 0; begin < a.rows; begin += step) {
    const Range some{begin, std::min(begin + step, a.rows)};
    body(some, Matrix{rows.data(), a.type, some.size(), a.cols, a.cols});
  }
}

/// to[k, r] := from[r, rows[k]]; with no rows: k itself. `on_device`: from is in the backend's memory(), else
/// in the host's.
void take_columns(kernels::Backend &backend, ConstMatrix from, bool on_device, std::span<const i64> rows, Matrix to) {
  if (on_device || !backend.has_own_memory())
    return backend.gather_transposed(from, RowList(backend, rows).data(), to);
  if (!rows.empty()) { // only the rows that are needed go to the device
    for_host_rows(to, [&](Range some, Matrix staged) {
      gather_transposed(from, rows.data() + some.begin, staged, {0, some.size()});
      backend.upload(to.slice(some.begin, some.end).data, staged.data, staged.rows * staged.cols * size_of(to.type));
    });
    return;
  }
  const ConstMatrix host(from.data, from.type, from.rows, to.rows, from.ld);
  for_staged_columns(backend, from.rows, to.rows * size_of(from.type), [&](Range some, void *staging) {
    copy_columns(host, some, staging,
                 [&](const void *at, void *device, i64 bytes) { backend.upload(device, at, bytes); });
    backend.gather_transposed({staging, from.type, some.size(), to.rows, to.rows}, nullptr,
                              to.columns(some.begin, some.end));
  });
}

/// to[r, rows[k]] := from[k, r]; the other elements of `to` are not written.
void give_columns(kernels::Backend &backend, ConstMatrix from, std::span<const i64> rows, Matrix to, bool on_device) {
  if (on_device || !backend.has_own_memory())
    return backend.scatter_transposed(from, RowList(backend, rows).data(), to);
  if (!rows.empty()) {
    for_host_rows(from, [&](Range some, Matrix staged) {
      backend.download(staged.data, from.slice(some.begin, some.end).data,
                       staged.rows * staged.cols * size_of(to.type));
      scatter_transposed(staged, rows.data() + some.begin, to, {0, some.size()});
    });
    return;
  }
  const ConstMatrix host(to.data, to.type, to.rows, from.rows, to.ld);
  for_staged_columns(backend, to.rows, from.rows * size_of(to.type), [&](Range some, void *staging) {
    backend.scatter_transposed(from.columns(some.begin, some.end), nullptr,
                               {staging, to.type, some.size(), from.rows, from.rows});
    copy_columns(host, some, staging, [&](const void *at, void *device, i64 bytes) {
      backend.download(const_cast<void *>(at), device, bytes);
    });
  });
}

/// Finds in each of these matrices in the backend's memory the smallest i * cols + r at which it is not finite, rows *
/// cols where all of it is. The caller waits once for all of them.
std::vector<i64> first_not_finite(kernels::Backend &backend, std::span<const ConstMatrix> matrices) {
  std::vector<i64> at(matrices.size());
  if (matrices.empty())
    return at;
  const i64 bytes = static_cast<i64>(at.size() * sizeof(i64));
  const kernels::DeviceBuffer found(backend, bytes, "where matrices are not finite");
  for (std::size_t k = 0; k < matrices.size(); ++k)
    backend.first_not_finite(matrices[k], static_cast<i64 *>(found.data()) + k);
  backend.download(at.data(), found.data(), bytes);
  return at;
}

/// Gives a worker's rows of a product to the caller; those of all others, too, where the caller's array is in the first
/// worker's memory.
class Giving {
public:
  Giving(const tensor::Tensor &x, const Worker &worker, int mode, const CallerResult &result)
      : x_(x), worker_(worker), numbering_(x.numbering()), mode_(mode), result_(result) {}

  /// Comes before give(): with the rows that have no number.
  void set_zero(kernels::Backend &backend) const {
    if (numbering_.is_index(mode_) || x_.distribution() != nullptr)
      return;
    if (!result_.on_device)
      return td::set_zero(result_.columns);
    backend.set_zero(result_.columns);
    backend.wait();
  }

  void give(kernels::Backend &backend, Communicator &others, Matrix product) const {
    if (x_.distribution() != nullptr)
      return worker_.settle(mode_, product, result_.block);
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

void give(Processes &processes, kernels::Backend &backend, Matrix all, const CallerResult &result) {
  tensor::share_rows(processes, all);
  if (!result.on_device)
    return scatter_transposed(all, nullptr, result.columns, {0, all.rows});
  const DeviceMatrix there(backend, all.rows, all.cols, all.type, "the result of MTTKRP of all processes");
  backend.upload(there.view().data, all.data, all.rows * all.cols * size_of(all.type));
  give_columns(backend, there.view(), {}, result.columns, true);
  backend.wait(); // the result is the caller's when the call returns
}

} // namespace td::solvers
