// Numbers that come from ktensors: norms, inner products, values, matches.
#include <algorithm>
#include <cmath>

#include "core/assignment.hpp"
#include "core/columns.hpp"
#include "core/error.hpp"
#include "core/ktensor.hpp"
#include "core/strides.hpp"

namespace td {

namespace {

void check_same_dims(const Ktensor &a, const Ktensor &b) {
  if (a.order() != b.order())
    throw_error(Status::shape, "ktensors of order {} and {}: expected the same dims", a.order(), b.order());
  for (int m = 0; m < a.order(); ++m) {
    if (a.factor(m).rows != b.factor(m).rows)
      throw_error(Status::shape, "ktensors with dims[{}] = {} and {}: expected the same dims", m, a.factor(m).rows,
                  b.factor(m).rows);
  }
}

Scaled inner_product(const Ktensor &a, const Ktensor &b) {
  std::vector<Scaled> terms; // one a pair of components
  for (double wa : a.weights()) {
    for (double wb : b.weights())
      terms.push_back(Scaled(wa) * Scaled(wb));
  }
  for (int m = 0; m < a.order(); ++m) {
    const ColumnScales sa = column_scales(a.factor(m));
    const ColumnScales sb = column_scales(b.factor(m));
    const std::vector<double> gram = scaled_gram(a.factor(m), sa, b.factor(m), sb);
    std::size_t t = 0;
    for (i64 ea : sa.exponent) {
      for (i64 eb : sb.exponent) {
        terms[t] = terms[t] * Scaled(gram[t], ea + eb);
        ++t;
      }
    }
  }
  return sum(terms);
}

double entry(ConstMatrix a, i64 i, i64 r) {
  return dispatch(a.type, [&](auto zero) { return static_cast<double>(a.row<decltype(zero)>(i)[r]); });
}

/// For values whose plain sum of products overflowed on the way.
double careful_value_at(const Ktensor &k, std::span<const i64> coordinate) {
  std::vector<Scaled> terms(k.weights().begin(), k.weights().end());
  for (i64 r = 0; r < k.rank(); ++r) {
    Scaled &term = terms[static_cast<std::size_t>(r)];
    for (int m = 0; m < k.order(); ++m)
      term = term * Scaled(entry(k.factor(m), coordinate[static_cast<std::size_t>(m)], r));
  }
  return sum(terms).value();
}

/// products[r] := before[r] * a[i, r]
void multiply_row(ConstMatrix a, i64 i, std::span<const double> before, std::span<double> products) {
  dispatch(a.type, [&](auto zero) {
    const auto *row = a.row<decltype(zero)>(i);
    for (std::size_t r = 0; r < products.size(); ++r)
      products[r] = before[r] * static_cast<double>(row[r]);
  });
}

double sum_of_products(ConstMatrix a, i64 i, std::span<const double> products) {
  return dispatch(a.type, [&](auto zero) {
    const auto *row = a.row<decltype(zero)>(i);
    double total = 0;
    for (std::size_t r = 0; r < products.size(); ++r)
      total += products[r] * static_cast<double>(row[r]);
    return total;
  });
}

/// value_at with room for the products.
double value_with(const Ktensor &k, std::span<const i64> coordinate, std::vector<double> &products) {
  products.assign(k.weights().begin(), k.weights().end());
  for (int m = 1; m < k.order(); ++m)
    multiply_row(k.factor(m), coordinate[static_cast<std::size_t>(m)], products, products);
  const double plain = sum_of_products(k.factor(0), coordinate[0], products);
  return std::isfinite(plain) ? plain : careful_value_at(k, coordinate);
}

std::vector<i64> element_strides(const Ktensor &k, std::span<const i64> given) {
  element_count(k.dims());
  check_output_strides(k.dims(), given);
  std::vector<i64> strides(given.begin(), given.end());
  if (given.empty()) {
    i64 next = 1;
    for (i64 d : k.dims()) {
      strides.push_back(next);
      next *= d;
    }
  }
  return strides;
}

} // namespace

double Ktensor::norm() const {
  const Scaled square = inner_product(*this, *this);
  return square.over_power(square.exponent()) < 0 ? 0.0 : square.root().value();
}

double dot(const Ktensor &a, const Ktensor &b) {
  check_same_dims(a, b);
  return inner_product(a, b).value();
}

double value_at(const Ktensor &k, std::span<const i64> coordinate) {
  std::vector<double> products;
  return value_with(k, coordinate, products);
}

void values_at(const Ktensor &k, const EntriesView &coordinates, double *values) {
  std::vector<i64> coordinate(k.dims().size());
  std::vector<double> products;
  const i64 base = coordinates.index_base;
  dispatch(coordinates.index_type, [&](auto zero) {
    using I = decltype(zero);
    for (i64 e = 0; e < coordinates.nnz; ++e) {
      for (std::size_t m = 0; m < coordinate.size(); ++m) {
        const i64 i = static_cast<const I *>(coordinates.indices[m])[e];
        if (i < base || i - base >= k.dims()[m])
          throw_error(Status::index, "entry {}, mode {} (counting from {}): index {} outside {}..{}", e + base,
                      static_cast<i64>(m) + base, base, i, base, k.dims()[m] - 1 + base);
        coordinate[m] = i - base;
      }
      values[e] = value_with(k, coordinate, products);
    }
  });
}

void full(const Ktensor &k, std::span<const i64> given_strides, ValueType type, void *values) {
  const std::vector<i64> strides = element_strides(k, given_strides);
  const std::size_t order = k.dims().size();
  // products[m] holds weights times the rows of modes m .. order - 1 at the current coordinate, so that a step of
  // mode m costs m products of R numbers; most steps are of mode 1.
  std::vector<std::vector<double>> products(order + 1, std::vector<double>(k.weights().begin(), k.weights().end()));
  std::vector<i64> coordinate(order, 0);
  std::size_t changed = order; // modes below this one have to be multiplied again
  dispatch(type, [&](auto zero) {
    using T = decltype(zero);
    T *out = static_cast<T *>(values);
    while (true) {
      i64 offset = 0;
      for (std::size_t m = 1; m < order; ++m)
        offset += coordinate[m] * strides[m];
      for (std::size_t m = changed; m-- > 1;)
        multiply_row(k.factor(static_cast<int>(m)), coordinate[m], products[m + 1], products[m]);
      for (i64 i = 0; i < k.dims()[0]; ++i) {
        const double plain = sum_of_products(k.factor(0), i, products[1]);
        coordinate[0] = i;
        out[offset + i * strides[0]] = static_cast<T>(std::isfinite(plain) ? plain : careful_value_at(k, coordinate));
      }
      std::size_t m = 1;
      while (m < order && ++coordinate[m] == k.dims()[m])
        coordinate[m++] = 0;
      if (m == order)
        return;
      changed = m + 1;
    }
  });
}

Score score(const Ktensor &a, const Ktensor &b, bool use_weights) {
  check_same_dims(a, b);
  const auto ra = static_cast<std::size_t>(a.rank());
  const auto rb = static_cast<std::size_t>(b.rank());
  std::vector<Scaled> wa(a.weights().begin(), a.weights().end());
  std::vector<Scaled> wb(b.weights().begin(), b.weights().end());
  std::vector<double> match(ra * rb, 1.0); // product of the cosines of each pair
  for (int m = 0; m < a.order(); ++m) {
    const ColumnScales sa = column_scales(a.factor(m));
    const ColumnScales sb = column_scales(b.factor(m));
    const std::vector<double> na = scaled_norms(a.factor(m), sa);
    const std::vector<double> nb = scaled_norms(b.factor(m), sb);
    const std::vector<double> gram = scaled_gram(a.factor(m), sa, b.factor(m), sb);
    for (std::size_t r = 0; r < ra; ++r) {
      for (std::size_t s = 0; s < rb; ++s) {
        const double lengths = na[r] * nb[s];
        match[r * rb + s] *= lengths > 0 ? std::min(1.0, std::abs(gram[r * rb + s]) / lengths) : 0.0;
      }
    }
    for (std::size_t r = 0; r < ra; ++r)
      wa[r] = wa[r] * Scaled(na[r], sa.exponent[r]);
    for (std::size_t s = 0; s < rb; ++s)
      wb[s] = wb[s] * Scaled(nb[s], sb.exponent[s]);
  }
  if (use_weights) {
    for (std::size_t r = 0; r < ra; ++r) {
      for (std::size_t s = 0; s < rb; ++s) // 1 - |wa - wb| / max(wa, wb) for the magnitudes, as they are normalized
        match[r * rb + s] *= ratio_of_magnitudes(wa[r], wb[s]);
    }
  }

  const bool turned = ra > rb;
  const std::size_t rows = std::min(ra, rb);
  const std::size_t cols = std::max(ra, rb);
  std::vector<double> benefit(rows * cols);
  for (std::size_t r = 0; r < ra; ++r) {
    for (std::size_t s = 0; s < rb; ++s)
      benefit[turned ? s * cols + r : r * cols + s] = match[r * rb + s];
  }
  const std::vector<i64> column_of = best_assignment(benefit, static_cast<i64>(rows), static_cast<i64>(cols));
  Score result;
  result.match.assign(ra, -1);
  for (std::size_t row = 0; row < rows; ++row) {
    const auto column = static_cast<std::size_t>(column_of[row]);
    result.value += benefit[row * cols + column] / static_cast<double>(rows);
    result.match[turned ? column : row] = static_cast<i64>(turned ? row : column);
  }
  return result;
}

} // namespace td
