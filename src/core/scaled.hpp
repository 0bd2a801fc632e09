// Numbers with an exponent of their own, for products that leave the range of double on the way to a result within it.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>

#include "core/types.hpp"

namespace td {

/// mantissa * 2^exponent with 0.5 <= |mantissa| < 1, or zero.
class Scaled {
public:
  Scaled() = default;
  explicit Scaled(double value, i64 exponent = 0) {
    int e = 0;
    mantissa_ = std::frexp(value, &e);
    exponent_ = mantissa_ == 0 ? 0 : e + exponent;
  }

  bool is_zero() const noexcept { return mantissa_ == 0; }
  i64 exponent() const noexcept { return exponent_; }

  friend Scaled operator*(Scaled a, Scaled b) { return Scaled(a.mantissa_ * b.mantissa_, a.exponent_ + b.exponent_); }
  friend Scaled operator/(Scaled a, Scaled b) { return Scaled(a.mantissa_ / b.mantissa_, a.exponent_ - b.exponent_); }
  Scaled root() const { // of a number that is not negative
    const i64 odd = exponent_ & 1;
    return Scaled(std::sqrt(std::ldexp(mantissa_, static_cast<int>(odd))), (exponent_ - odd) / 2);
  }

  /// The value divided by 2^e: infinite or zero where it is out of range, never NaN.
  double over_power(i64 e) const {
    return std::ldexp(mantissa_, static_cast<int>(std::clamp<i64>(exponent_ - e, -4000, 4000)));
  }
  double value() const { return over_power(0); }

private:
  double mantissa_ = 0;
  i64 exponent_ = 0;
};

/// A sum whose terms may be out of range where the sum is not.
class ScaledSum {
public:
  void add(Scaled term) {
    if (term.is_zero())
      return;
    if (!any_ || term.exponent() > exponent_) { // the total is brought to the largest exponent so far
      total_ = Scaled(total_, exponent_).over_power(term.exponent());
      exponent_ = term.exponent();
      any_ = true;
    }
    total_ += term.over_power(exponent_);
  }
  Scaled total() const { return Scaled(total_, exponent_); }

private:
  double total_ = 0;
  i64 exponent_ = 0;
  bool any_ = false;
};

inline Scaled sum(std::span<const Scaled> terms) {
  ScaledSum sum;
  for (const Scaled &term : terms)
    sum.add(term);
  return sum.total();
}

/// |smaller| / |larger| of two numbers; 1 for two zeros.
inline double ratio_of_magnitudes(Scaled a, Scaled b) {
  if (a.is_zero() || b.is_zero())
    return a.is_zero() && b.is_zero() ? 1.0 : 0.0;
  const double x = std::abs((a / b).value());
  return std::min(x, 1 / x);
}

} // namespace td
