#include "solvers/start.hpp"

#include <algorithm>
#include <cmath>

#include "plan/needs.hpp"
#include "solvers/eigenvectors.hpp"
#include "solvers/magnitude.hpp"
#include "solvers/replica.hpp"
#include "tensor/row_blocks.hpp"
#include "tensor/spans.hpp"
#include "tensor/whole.hpp"

namespace td::solvers {

namespace {

/// Column r of a factor := a vector, turned so that its entry of largest magnitude is positive.
void set_column(Matrix a, i64 r, std::span<const double> vector) {
  const auto largest =
      std::max_element(vector.begin(), vector.end(), [](double x, double y) { return std::abs(x) < std::abs(y); });
  const double sign = *largest < 0 ? -1 : 1;
  dispatch(a.type, [&](auto zero) {
    using T = decltype(zero);
    for (i64 i = 0; i < a.rows; ++i)
      a.row<T>(i)[r] = static_cast<T>(sign * vector[static_cast<std::size_t>(i)]);
  });
}

/// A copy in which a mode comes first, so that slabs hold whole fibers of it.
formats::Dense with_mode_first(const tensor::Tensor &x, int mode, int threads) {
  const kernels::DenseView view = x.dense()->view(); // streamed, so that it is in host memory
  const auto all = kernels::strides_of(view);
  std::vector<i64> dims(view.dims.begin(), view.dims.end());
  std::vector<i64> strides(all.begin(), all.begin() + std::ssize(dims));
  std::rotate(dims.begin(), dims.begin() + mode, dims.begin() + mode + 1);
  std::rotate(strides.begin(), strides.begin() + mode, strides.begin() + mode + 1);
  return formats::build_dense({dims, strides, view.type, view.values}, threads);
}

void set_columns(Matrix a, const Eigenvectors &eigen) {
  for (i64 r = 0; r < eigen.count; ++r)
    set_column(
        a, r, std::span(eigen.vectors).subspan(static_cast<std::size_t>(r * a.rows), static_cast<std::size_t>(a.rows)));
}

/// y := X_(n) X_(n)^T omega where each process has some of the fibers whole: the sum of what it is of these. Process 0
/// asks for it, so that none has to know how many times. The columns are exchanged on the host.
class SharedNormal {
public:
  SharedNormal(kernels::Backend &backend, const tensor::Tensor &x, int mode)
      : backend_(backend), processes_(*x.processes()), mode_(mode), rows_(x.dims()[static_cast<std::size_t>(mode)]),
        fibers_(tensor::fibers_of(x, mode, backend.threads())) {}

  /// Process 0 calls this for each product.
  void multiply(ConstMatrix omega, Matrix y) {
    i64 columns = omega.cols;
    processes_.broadcast(&columns, sizeof columns);
    make_room(columns);
    std::vector<double> rows = download(omega);
    for (i64 i = 0; i < rows_; ++i)
      std::copy_n(rows.data() + i * omega.ld, columns, numbers_.data() + i * columns);
    work();
    rows = download(y); // what lies between its rows stays
    for (i64 i = 0; i < rows_; ++i)
      std::copy_n(numbers_.data() + i * columns, columns, rows.data() + i * y.ld);
    backend_.upload(y.data, rows.data(), std::ssize(rows) * i64{sizeof(double)});
  }
  void end() {
    i64 none = 0;
    processes_.broadcast(&none, sizeof none);
  }

  /// The other processes serve its calls until it ends.
  void serve() {
    for (i64 columns = 0;;) {
      processes_.broadcast(&columns, sizeof columns);
      if (columns == 0)
        return;
      make_room(columns);
      work();
    }
  }

private:
  /// A matrix with what lies between its rows.
  std::vector<double> download(const ConstMatrix &a) const {
    std::vector<double> rows(static_cast<std::size_t>((a.rows - 1) * a.ld + a.cols));
    backend_.download(rows.data(), a.data, std::ssize(rows) * i64{sizeof(double)});
    return rows;
  }

  void make_room(i64 columns) {
    if (omega_.bytes() == rows_ * columns * i64{sizeof(double)})
      return;
    numbers_.resize(static_cast<std::size_t>(rows_ * columns));
    omega_ = DeviceMatrix(backend_, rows_, columns, ValueType::f64, "columns that processes multiply");
    y_ = DeviceMatrix(backend_, rows_, columns, ValueType::f64, "columns that processes multiply");
  }

  void work() {
    processes_.broadcast(numbers_.data(), omega_.bytes());
    backend_.upload(omega_.view().data, numbers_.data(), omega_.bytes());
    if (fibers_.empty) {
      backend_.set_zero(y_.view());
    } else {
      tensor::Placement placement = fibers_.entries ? resident_.on(backend_, 0, fibers_.entries->view())
                                                    : resident_.on(backend_, 0, fibers_.elements.view());
      placement.unfolding_normal(backend_, mode_, omega_.view(), y_.view(), plan::span_entries(placement.entries()));
    }
    backend_.download(numbers_.data(), y_.view().data, y_.bytes());
    processes_.all_reduce(numbers_, Reduction::sum);
  }

  kernels::Backend &backend_;
  Processes &processes_;
  int mode_;
  i64 rows_;
  tensor::Fibers fibers_;
  tensor::Resident resident_;
  DeviceMatrix omega_, y_;
  std::vector<double> numbers_; // of one of them, on the host
};

/// Gives a factor of random numbers in the host's memory.
Buffer<std::byte> random_factor(kernels::Backend &backend, i64 rows, i64 rank, ValueType type, u64 seed, int mode) {
  const DeviceMatrix there(backend, rows, rank, type, "a factor of the start");
  backend.random_uniform(there.view(), seed, mode, 0);
  Buffer<std::byte> here(there.bytes(), "a factor of the start");
  backend.download(here.data(), there.view().data, here.size());
  return here;
}

/// Process 0 finds a factor of the start at a time, of which all get their blocks, and decides how long it may take.
void find_shared(Ktensor &start, kernels::Backend &backend, const tensor::Tensor &x, u64 seed,
                 const std::function<bool()> &time_is_up) {
  Processes &processes = *x.processes();
  for (int m = 0; m < start.order(); ++m) {
    char late = time_is_up() ? 1 : 0;
    processes.broadcast(&late, sizeof late);
    if (late != 0)
      return;
    SharedNormal normal(backend, x, m);
    if (processes.rank() != 0) {
      normal.serve();
      tensor::deal_rows(processes, {}, start.factor(m));
      continue;
    }
    const i64 rows = start.dims()[static_cast<std::size_t>(m)];
    const Buffer<std::byte> whole = random_factor(backend, rows, start.rank(), start.type(), seed, m);
    const Matrix a{const_cast<std::byte *>(whole.data()), start.type(), rows, start.rank(), start.rank()};
    const auto multiply = [&](ConstMatrix omega, Matrix y) { normal.multiply(omega, y); };
    set_columns(a,
                leading_eigenvectors(backend, multiply, m, a.rows, std::min(start.rank(), a.rows), seed, time_is_up));
    normal.end();
    tensor::deal_rows(processes, a, start.factor(m));
  }
}

} // namespace

Ktensor random_start(kernels::Backend &backend, std::span<const i64> dims, i64 rank, ValueType type, u64 seed,
                     RowBlock block) {
  Ktensor start = Ktensor::unfilled(dims, rank, type, {}, block);
  std::vector<i64> rows;
  for (int m = 0; m < start.order(); ++m)
    rows.push_back(start.rows(m).size());
  const Replica replica(backend, rows, rank, type);
  for (int m = 0; m < start.order(); ++m)
    backend.random_uniform(replica[m], seed, m, start.rows(m).begin);
  for (int m = 0; m < start.order(); ++m)
    replica.download(m, start.factor(m), {});
  return start;
}

Ktensor nvecs_start(kernels::Backend &backend, const tensor::Tensor &given, i64 rank, u64 seed,
                    const std::function<bool()> &time_is_up) {
  const RowBlock block = given.distribution() != nullptr ? tensor::block_of(*given.processes()) : RowBlock{};
  Ktensor start = random_start(backend, given.dims(), rank, given.type(), seed, block);
  const ScaledTensor x(given, unusual_exponent(given), given.type(), backend.threads());
  if (x->distribution() != nullptr) {
    find_shared(start, backend, *x, seed, time_is_up);
    return start;
  }
  std::optional<formats::Coo> holder;
  std::optional<formats::Coo> fibers;
  std::optional<formats::Dense> turned;
  std::optional<kernels::CooView> coordinates;
  if (x->sparse())
    coordinates = x->coordinates(holder, backend.threads());
  for (int m = 0; m < start.order() && !time_is_up(); ++m) {
    const Matrix a = start.factor(m);
    fibers.reset(); // at most one such copy at a time
    if (coordinates)
      fibers = formats::build_fibers(*coordinates, m, backend.threads());
    tensor::Resident resident;
    tensor::Placement placement = fibers ? resident.on(backend, 0, fibers->view()) : x->view(m, backend);
    int mode = m;
    if (!fibers && placement.streamed() && m == x->slab_mode()) {
      turned = with_mode_first(*x, m, backend.threads());
      placement = resident.on(backend, 0, turned->view());
      mode = 0;
    }
    const i64 at_once = plan::span_entries(placement.entries());
    const auto normal = [&](ConstMatrix omega, Matrix y) {
      placement.unfolding_normal(backend, mode, omega, y, at_once);
    };
    set_columns(a, leading_eigenvectors(backend, normal, m, a.rows, std::min(rank, a.rows), seed, time_is_up));
  }
  return start;
}

void check_shape(std::string_view name, const Ktensor &k, const tensor::Tensor &x, i64 rank) {
  if (!std::equal(k.dims().begin(), k.dims().end(), x.dims().begin(), x.dims().end())) {
    for (int m = 0; m < std::min(k.order(), x.order()); ++m) {
      const auto mode = static_cast<std::size_t>(m);
      if (k.dims()[mode] != x.dims()[mode])
        throw_error(Status::shape, "{}: dims[{}] = {}; expected the tensor's {}", name, m, k.dims()[mode],
                    x.dims()[mode]);
    }
    throw_error(Status::shape, "{}: order {}; expected the tensor's {}", name, k.order(), x.order());
  }
  if (k.rank() != rank)
    throw_error(Status::shape, "{}: rank {}; expected {}", name, k.rank(), rank);
}

Ktensor given_start(const Ktensor &init, const tensor::Tensor &x, i64 rank) {
  check_shape("init", init, x, rank);
  Processes *const processes = x.processes();
  Ktensor start = processes != nullptr && init.whole() ? tensor::deal(*processes, init) : init.copy();
  for (i64 i = 0; i < start.factor(0).rows; ++i) {
    dispatch(start.type(), [&](auto zero) {
      using T = decltype(zero);
      T *row = start.factor(0).row<T>(i);
      for (std::size_t r = 0; r < start.weights().size(); ++r) {
        row[r] = static_cast<T>(static_cast<double>(row[r]) * start.weights()[r]);
        if (!std::isfinite(row[r]))
          throw_error(Status::argument, "init: weight {} of component {} times row {} of the first factor overflows",
                      start.weights()[r], r, start.rows(0).begin + i);
      }
    });
  }
  std::fill(start.weights().begin(), start.weights().end(), 1.0);
  return start;
}

} // namespace td::solvers
