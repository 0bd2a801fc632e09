#include "kernels/host/host_backend.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <new>

#include <sys/mman.h>

#include "core/buffer.hpp"
#include "core/parallel.hpp"
#include "core/relayout.hpp"

namespace td::kernels::host {

namespace {

// Rows of a large factor are fetched in no order, and with 4 KiB pages each fetch also misses the translation cache: on
// a tensor with delicious' proportions MTTKRP took 27 ns a nonzero with small pages and 20 with huge ones.
constexpr std::uintptr_t huge_page = std::uintptr_t{2} << 20;
constexpr i64 worth_huge_pages = i64{8} << 20;
constexpr i64 relayout_grain = 1024;     // rows that are worth a thread
constexpr i64 copy_grain = i64{4} << 20; // bytes that are: memory seen for the first time is cleared by who touches it

/// Lets the system use huge pages. Only advice: whether it is taken makes no difference but for speed.
void advise_huge_pages([[maybe_unused]] void *memory, [[maybe_unused]] i64 bytes) {
#ifdef MADV_HUGEPAGE
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  const std::uintptr_t first = (begin + huge_page - 1) / huge_page * huge_page;
  const std::uintptr_t last = (begin + static_cast<std::uintptr_t>(bytes)) / huge_page * huge_page;
  if (first < last)
    madvise(reinterpret_cast<void *>(first), last - first, MADV_HUGEPAGE);
#endif
}

} // namespace

void *HostBackend::allocate(i64 bytes, const char *what) {
  if (bytes == 0)
    return nullptr;
  void *memory =
      bytes < 0 ? nullptr
                : ::operator new (static_cast<std::size_t>(bytes), std::align_val_t{buffer_alignment}, std::nothrow);
  if (memory == nullptr)
    throw_error(Status::host_memory, "out of host memory: {} bytes for {}", bytes, what);
  if (bytes >= worth_huge_pages)
    advise_huge_pages(memory, bytes);
  return memory;
}

void HostBackend::release(void *memory) noexcept { ::operator delete (memory, std::align_val_t{buffer_alignment}); }

void HostBackend::upload(void *to, const void *from_host, i64 bytes) {
  parallel_ranges(threads(), bytes, copy_grain, [&](Range some) {
    std::memcpy(static_cast<char *>(to) + some.begin, static_cast<const char *>(from_host) + some.begin,
                static_cast<std::size_t>(some.size()));
  });
}

void HostBackend::download(void *to_host, const void *from, i64 bytes) { upload(to_host, from, bytes); }

void HostBackend::to_f32(ConstMatrix a, Matrix to, double *exponents) {
  if (exponents != nullptr) {
    column_norms(a, NormKind::max, exponents);
    std::transform(exponents, exponents + a.cols, exponents, [](double largest) {
      int exponent = 0;
      if (std::isfinite(largest))
        std::frexp(largest, &exponent);
      return static_cast<double>(exponent);
    });
  }
  parallel_ranges(threads(), a.rows, 1024, [&](Range part) {
    for (i64 i = part.begin; i < part.end; ++i)
      for (i64 r = 0; r < to.cols; ++r) {
        double x = r < a.cols ? a.row<double>(i)[r] : 0;
        if (exponents != nullptr && r < a.cols)
          x = std::ldexp(x, -static_cast<int>(exponents[r]));
        to.row<float>(i)[r] = static_cast<float>(x);
      }
  });
}

void HostBackend::gather_transposed(ConstMatrix from, const i64 *rows, Matrix to) {
  parallel_ranges(threads(), to.rows, relayout_grain, [&](Range some) { td::gather_transposed(from, rows, to, some); });
}

void HostBackend::scatter_transposed(ConstMatrix from, const i64 *rows, Matrix to) {
  parallel_ranges(threads(), from.rows, relayout_grain,
                  [&](Range some) { td::scatter_transposed(from, rows, to, some); });
}

void HostBackend::gather_rows(ConstMatrix from, const i64 *rows, Matrix to) {
  const auto row_bytes = static_cast<std::size_t>(to.cols * size_of(to.type));
  parallel_ranges(threads(), to.rows, relayout_grain, [&](Range some) {
    for (i64 k = some.begin; k < some.end; ++k)
      std::memcpy(to.slice(k, k + 1).data, from.slice(rows[k], rows[k] + 1).data, row_bytes);
  });
}

void HostBackend::add_rows(ConstMatrix from, const i64 *rows, Matrix to) {
  dispatch(to.type, [&](auto zero) {
    using T = decltype(zero);
    parallel_ranges(threads(), from.rows, relayout_grain, [&](Range some) {
      for (i64 k = some.begin; k < some.end; ++k)
        std::transform(from.row<T>(k), from.row<T>(k) + from.cols, to.row<T>(rows[k]), to.row<T>(rows[k]),
                       std::plus<>());
    });
  });
}

void HostBackend::set_zero(Matrix a) { td::set_zero(a); }

void HostBackend::first_not_finite(ConstMatrix a, i64 *at) { *at = td::first_not_finite(a, threads()); }

void HostBackend::hadamard(std::span<const double *const> grams, i64 rank, double ridge, double *v) {
  for (i64 k = 0; k < rank * rank; ++k) {
    double product = 1;
    for (const double *gram : grams)
      product *= gram[k];
    v[k] = product;
  }
  for (i64 r = 0; r < rank; ++r)
    v[r * rank + r] += ridge;
}

void HostBackend::weights_from_norms(NormKind kind, i64 rank, double *norms) {
  for (double *w = norms; w < norms + rank; ++w)
    if (*w != 0)
      *w = kind == NormKind::two ? std::sqrt(*w) : std::max(*w, 1.0);
}

void HostBackend::solve_scales(const SolveColumns &columns, const SolveScalesOut &out) {
  for (i64 r = 0; r < columns.rank; ++r) {
    double product = 1;
    for (const double *scales : columns.scales)
      product *= scales[r];
    out.right[r] = 1 / product;
    const double weight = columns.weights != nullptr ? columns.weights[r] : 0;
    out.before[r] = weight / columns.own[r];
    out.solved[r] = std::isfinite(weight) && weight > 0 ? std::ldexp(1.0, solved_exponent(std::ilogb(weight))) : 1;
  }
}

void HostBackend::finish_columns(i64 rank, const double *solved, const double *largest, double *weights, double *scales,
                                 double *gram) {
  for (i64 r = 0; r < rank; ++r) {
    const double length = largest[r] / solved[r];
    weights[r] = length != 0 && length < 1 ? 1 : length; // a NaN stays
    scales[r] = weights[r] == 0 ? 1 : weights[r] * solved[r];
  }
  for (i64 r = 0; r < rank; ++r)
    for (i64 s = 0; s < rank; ++s)
      gram[r * rank + s] = gram[r * rank + s] / scales[std::min(r, s)] / scales[std::max(r, s)];
}

void HostBackend::combine_rows(ConstMatrix parts, Combine how, void *out) {
  dispatch(parts.type, [&](auto zero) {
    using T = decltype(zero);
    for (i64 r = 0; r < parts.cols; ++r) {
      auto x = static_cast<double>(parts.row<T>(0)[r]);
      for (i64 i = 1; i < parts.rows; ++i) {
        const auto y = static_cast<double>(parts.row<T>(i)[r]);
        if (how == Combine::sum)
          x += y;
        else if (y > x || std::isnan(y))
          x = y;
      }
      static_cast<T *>(out)[r] = static_cast<T>(x);
    }
  });
}

// All of them work in one memory.
void HostBackend::copy_from(Device &, void *to, const void *from, i64 bytes) { upload(to, from, bytes); }

} // namespace td::kernels::host
