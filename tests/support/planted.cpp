#include "support/planted.hpp"

namespace tdtest {

Planted planted(Random &random, const std::vector<int64_t> &dims, int64_t rank, double zeros, double noise) {
  Planted p{Factors(dims, rank), std::vector<double>(static_cast<std::size_t>(rank), 1.0), Entries(dims)};
  for (auto &factor : p.factors.a)
    for (double &v : factor) {
      const double value = random.uniform();
      v = random.uniform() < zeros ? 0.0 : value;
    }
  const Bounded full = oracle_full(p.factors, p.weights);
  std::vector<int64_t> c(dims.size(), 0);
  for (const long double value : full.value) {
    const double more = noise * random.symmetric();
    if (value != 0)
      p.entries.add(c, static_cast<double>(value) + more);
    for (std::size_t m = 0; m < c.size() && ++c[m] == dims[m]; ++m)
      c[m] = 0;
  }
  return p;
}

} // namespace tdtest
