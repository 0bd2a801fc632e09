// Numbers that come from ktensors: norms, inner products, values, matches.
#include <algorithm>
#include <cmath>

#include <fmt/ranges.h>

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
    const auto mode = static_cast<std::size_t>(m);
    if (a.dims()[mode] != b.dims()[mode])
      throw_error(Status::shape, "ktensors with dims[{}] = {} and {}: expected the same dims", m, a.dims()[mode],
                  b.dims()[mode]);
  }
}

// Pairs of components whose products are there at a time, so that memory grows with the ranks and not with their
// product: 2 MiB of a Gram matrix and twice that of terms.
constexpr i64 pairs_at_once = i64{1} << 18;

/// Calls body(begin, end) for ranges of a's components, each with all of b's.
template <class Body> void for_pairs(const Ktensor &a, const Ktensor &b, Body &&body) {
  const i64 step = std::clamp<i64>(pairs_at_once / b.rank(), 1, a.rank());
  for (i64 begin = 0; begin < a.rank(); begin += step)
    body(begin, std::min(begin + step, a.rank()));
}

Scaled inner_product(const Ktensor &a, const Ktensor &b, const Meeting &others) {
  std::vector<ColumnScales> scales_b;
  for (int m = 0; m < b.order(); ++m)
    scales_b.push_back(column_scales(b.factor(m), plain_exponent, others));
  ScaledSum total;
  std::vector<Scaled> terms; // one a pair of components
  for_pairs(a, b, [&](i64 begin, i64 end) {
    terms.clear();
    for (i64 r = begin; r < end; ++r) {
      for (double wb : b.weights())
        terms.push_back(Scaled(a.weights()[static_cast<std::size_t>(r)]) * Scaled(wb));
    }
    for (int m = 0; m < a.order(); ++m) {
      const ConstMatrix columns = a.factor(m).columns(begin, end);
      const ColumnScales sa = column_scales(columns, plain_exponent, others);
      const ColumnScales &sb = scales_b[static_cast<std::size_t>(m)];
      const std::vector<double> gram = scaled_gram(columns, sa, b.factor(m), sb, others);
      std::size_t t = 0;
      for (i64 ea : sa.exponent) {
        for (i64 eb : sb.exponent) {
          terms[t] = terms[t] * Scaled(gram[t], ea + eb);
          ++t;
        }
      }
    }
    for (const Scaled &term : terms)
      total.add(term);
  });
  return total.total();
}

/// The lengths of a matrix's columns, and what products with them need.
struct Lengths {
  ColumnScales scales;
  std::vector<double> squares; // of the scaled columns

  Lengths(ConstMatrix a, const Meeting &others)
      : scales(column_scales(a, plain_exponent, others)), squares(scaled_squares(a, scales, others)) {}
  Scaled length(std::size_t r) const { return Scaled(std::sqrt(squares[r]), scales.exponent[r]); }
};

/// |cosine| of two columns with these sums of squares and this inner product. The root of a square is exact, so that a
/// column and itself give 1. Two columns of zeros are alike, and one is like no other.
double cosine(double inner, double squares_a, double squares_b) {
  if (squares_a == 0 || squares_b == 0)
    return squares_a == squares_b ? 1.0 : 0.0;
  return std::min(1.0, std::abs(inner) / std::sqrt(squares_a * squares_b));
}

double entry(ConstMatrix a, i64 i, i64 r) {
  return dispatch(a.type, [&](auto zero) { return static_cast<double>(a.row<decltype(zero)>(i)[r]); });
}

/// The value where its plain sum of products overflowed on the way.
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

[[noreturn]] void refuse_value(std::span<const i64> coordinate, ValueType type) {
  throw_error(Status::numerical, "the model's value at ({}), counting from 0, is beyond the largest number in {}",
              fmt::join(coordinate, ", "), name_of(type));
}

/// The value at one coordinate, with room for the products.
double value_at(const Ktensor &k, std::span<const i64> coordinate, std::vector<double> &products) {
  products.assign(k.weights().begin(), k.weights().end());
  for (int m = 1; m < k.order(); ++m)
    multiply_row(k.factor(m), coordinate[static_cast<std::size_t>(m)], products, products);
  const double plain = sum_of_products(k.factor(0), coordinate[0], products);
  if (std::isfinite(plain))
    return plain;
  const double value = careful_value_at(k, coordinate);
  if (!std::isfinite(value))
    refuse_value(coordinate, ValueType::f64);
  return value;
}

} // namespace

double Ktensor::norm(const Meeting &others) const {
  const Scaled square = inner_product(*this, *this, others);
  return square.over_power(square.exponent()) < 0 ? 0.0 : square.root().value();
}

double dot(const Ktensor &a, const Ktensor &b, const Meeting &others) {
  check_same_dims(a, b);
  return inner_product(a, b, others).value();
}

void values_at(const Ktensor &k, const EntriesView &coordinates, double *values) {
  const std::size_t order = k.dims().size();
  std::vector<i64> coordinate(order);
  std::vector<double> products;
  const i64 base = coordinates.index_base;
  dispatch(coordinates.index_type, [&](auto zero) {
    using I = decltype(zero);
    const auto index = [&](std::size_t m, i64 e) -> i64 { return static_cast<const I *>(coordinates.indices[m])[e]; };
    for (i64 e = 0; e < coordinates.nnz; ++e) // all are checked before a value is written
      for (std::size_t m = 0; m < order; ++m)
        if (const i64 i = index(m, e); i < base || i - base >= k.dims()[m])
          throw_error(Status::index, "entry {}, mode {} (counting from {}): index {} outside {}..{}", e + base,
                      static_cast<i64>(m) + base, base, i, base, k.dims()[m] - 1 + base);
    for (i64 e = 0; e < coordinates.nnz; ++e) {
      for (std::size_t m = 0; m < order; ++m)
        coordinate[m] = index(m, e) - base;
      values[e] = value_at(k, coordinate, products);
    }
  });
}

void full(const Ktensor &k, std::span<const i64> given_strides, ValueType type, void *values) {
  const std::vector<i64> strides = output_strides(k.dims(), given_strides, type);
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
        const T value = static_cast<T>(std::isfinite(plain) ? plain : careful_value_at(k, coordinate));
        if (!std::isfinite(value))
          refuse_value(coordinate, type);
        out[offset + i * strides[0]] = value;
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

Score score(const Ktensor &a, const Ktensor &b, bool use_weights, const MemoryBudget &budget, const Meeting &others) {
  check_same_dims(a, b);
  const auto ra = static_cast<std::size_t>(a.rank());
  const auto rb = static_cast<std::size_t>(b.rank());
  MemoryNeed need;
  need.add("how well components match", 8 * static_cast<double>(ra) * static_cast<double>(rb));
  budget.require(fmt::format("the score of ktensors of rank {} and {}", ra, rb), need);

  std::vector<Lengths> lengths_b;
  std::vector<Scaled> wb(b.weights().begin(), b.weights().end());
  for (int m = 0; m < b.order(); ++m) {
    lengths_b.emplace_back(b.factor(m), others);
    for (std::size_t s = 0; s < rb; ++s)
      wb[s] = wb[s] * lengths_b.back().length(s);
  }
  const bool turned = ra > rb;
  const std::size_t rows = std::min(ra, rb);
  const std::size_t cols = std::max(ra, rb);
  std::vector<double> benefit(rows * cols); // of components of a and b, of which the fewer are the rows
  for_pairs(a, b, [&](i64 first, i64 last) {
    const auto begin = static_cast<std::size_t>(first);
    const auto count = static_cast<std::size_t>(last - first);
    std::vector<double> match(count * rb, 1.0); // product of the cosines of each pair
    std::vector<Scaled> wa(a.weights().begin() + first, a.weights().begin() + last);
    for (int m = 0; m < a.order(); ++m) {
      const ConstMatrix columns = a.factor(m).columns(first, last);
      const Lengths lengths_a(columns, others);
      const Lengths &of_b = lengths_b[static_cast<std::size_t>(m)];
      const std::vector<double> gram = scaled_gram(columns, lengths_a.scales, b.factor(m), of_b.scales, others);
      for (std::size_t r = 0; r < count; ++r) {
        wa[r] = wa[r] * lengths_a.length(r);
        for (std::size_t s = 0; s < rb; ++s)
          match[r * rb + s] *= cosine(gram[r * rb + s], lengths_a.squares[r], of_b.squares[s]);
      }
    }
    for (std::size_t r = 0; r < count; ++r) {
      for (std::size_t s = 0; s < rb; ++s) { // 1 - |wa - wb| / max(wa, wb) for the magnitudes, as they are normalized
        const double weighted = use_weights ? ratio_of_magnitudes(wa[r], wb[s]) : 1;
        benefit[turned ? s * cols + begin + r : (begin + r) * cols + s] = match[r * rb + s] * weighted;
      }
    }
  });

  const std::vector<i64> column_of = best_assignment(benefit, static_cast<i64>(rows), static_cast<i64>(cols));
  Score result;
  result.match.assign(ra, -1);
  for (std::size_t row = 0; row < rows; ++row) {
    const auto column = static_cast<std::size_t>(column_of[row]);
    result.value += benefit[row * cols + column];
    result.match[turned ? column : row] = static_cast<i64>(turned ? row : column);
  }
  result.value /= static_cast<double>(rows); // a sum of ones is exact
  return result;
}

} // namespace td
