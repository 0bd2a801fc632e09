#include "support/problem.hpp"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <set>
#include <stdexcept>

namespace tdtest {

namespace {

std::size_t size(int64_t n) { return static_cast<std::size_t>(n); }

double random_value(Random &random, td_type type) { return rounded(random.symmetric(), type); }

std::vector<int64_t> random_coordinate(Random &random, const std::vector<int64_t> &dims) {
  std::vector<int64_t> c;
  for (const int64_t d : dims)
    c.push_back(random.below(d));
  return c;
}

int64_t cells(const std::vector<int64_t> &dims) {
  return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
}

/// What compute(matrix) writes into a padded matrix.
template <class Compute> std::vector<double> output_of(td_type type, int64_t rows, int64_t rank, Compute &&compute) {
  const Matrix out(type, rows, rank, rows + 2);
  check(compute(out));
  if (!out.padding_untouched())
    throw std::runtime_error("the padding of an output was written to");
  std::vector<double> values;
  for (int64_t r = 0; r < rank; ++r)
    for (int64_t i = 0; i < rows; ++i)
      values.push_back(out.get(i, r));
  return values;
}

} // namespace

uint64_t base_seed() {
  static const uint64_t seed = [] {
    const char *text = std::getenv("TD_TEST_SEED");
    return text == nullptr ? uint64_t{1997} : std::strtoull(text, nullptr, 10);
  }();
  return seed;
}

bool light() { return std::getenv("TD_TEST_LIGHT") != nullptr; }

void Entries::add(const std::vector<int64_t> &coordinate, double value) {
  for (std::size_t m = 0; m < dims.size(); ++m)
    indices[m].push_back(coordinate[m]);
  values.push_back(value);
}

std::vector<int64_t> Entries::coordinate(int64_t k) const {
  std::vector<int64_t> c;
  for (const auto &column : indices)
    c.push_back(column[size(k)]);
  return c;
}

Entries Entries::permuted(const std::vector<int64_t> &entry_order) const {
  Entries e(dims);
  for (const int64_t k : entry_order)
    e.add(coordinate(k), values[size(k)]);
  return e;
}

Entries Entries::with_modes(const std::vector<int> &modes) const {
  Entries e({});
  for (const int m : modes) {
    e.dims.push_back(dims[size(m)]);
    e.indices.push_back(indices[size(m)]);
  }
  e.values = values;
  return e;
}

double rounded(double v, td_type type) { return type == TD_F32 ? static_cast<double>(static_cast<float>(v)) : v; }

Entries random_entries(Random &random, std::vector<int64_t> dims, int64_t nnz, td_type type) {
  Entries e(std::move(dims));
  for (int64_t k = 0; k < nnz; ++k)
    e.add(random_coordinate(random, e.dims), random_value(random, type));
  return e;
}

Entries random_cells(Random &random, std::vector<int64_t> dims, td_type type) {
  Entries e(std::move(dims));
  std::vector<int64_t> c(e.dims.size(), 0);
  for (int64_t left = cells(e.dims); left > 0; --left) {
    e.add(c, random_value(random, type));
    for (std::size_t m = 0; m < c.size() && ++c[m] == e.dims[m]; ++m)
      c[m] = 0;
  }
  return e;
}

Entries distinct_entries(Random &random, std::vector<int64_t> dims, int64_t nnz, td_type type) {
  Entries e(std::move(dims));
  std::set<std::vector<int64_t>> seen;
  while (e.nnz() < nnz) {
    auto c = random_coordinate(random, e.dims);
    if (seen.insert(c).second)
      e.add(c, random_value(random, type));
  }
  return e;
}

std::vector<int64_t> random_permutation(Random &random, int64_t n) {
  std::vector<int64_t> p(size(n));
  std::iota(p.begin(), p.end(), int64_t{0});
  for (int64_t k = n; k > 1; --k)
    std::swap(p[size(k - 1)], p[size(random.below(k))]);
  return p;
}

Factors::Factors(std::vector<int64_t> d, int64_t r) : dims(std::move(d)), rank(r) {
  for (const int64_t rows : dims)
    a.emplace_back(size(rows * rank), 0.0);
}

Factors random_factors(Random &random, const std::vector<int64_t> &dims, int64_t rank, td_type type) {
  Factors f(dims, rank);
  for (auto &factor : f.a)
    for (double &v : factor)
      v = random_value(random, type);
  return f;
}

Tensor make_sparse(td_context *context, const Entries &entries, const SparseForm &form, const td_options *options) {
  std::vector<Array> columns;
  std::vector<const void *> pointers;
  for (const auto &column : entries.indices) {
    Array shifted(form.index_type, column);
    for (int64_t k = 0; k < shifted.size(); ++k)
      shifted.set(k, shifted.get(k) + form.index_base);
    columns.push_back(std::move(shifted));
    pointers.push_back(columns.back().data());
  }
  const Array values(form.value_type, entries.values);
  return make<Tensor>(td_tensor_create, context, entries.order(), entries.dims.data(), entries.nnz(), form.index_type,
                      pointers.data(), form.index_base, form.value_type, values.data(), TD_HOST, options);
}

Tensor make_dense(td_context *context, const Entries &entries, td_type value_type, const td_options *options) {
  Array values(value_type, std::vector<double>(size(cells(entries.dims)), 0.0));
  for (int64_t k = 0; k < entries.nnz(); ++k) {
    int64_t position = 0;
    for (std::size_t m = entries.dims.size(); m-- > 0;)
      position = position * entries.dims[m] + entries.indices[m][size(k)];
    values.set(position, values.get(position) + entries.values[size(k)]);
  }
  return make<Tensor>(td_tensor_create_dense, context, entries.order(), entries.dims.data(), nullptr, value_type,
                      values.data(), TD_HOST, options);
}

Tensor make_tensor(td_context *context, const std::string &format, const Entries &entries, const SparseForm &form) {
  if (format == "dense")
    return make_dense(context, entries, form.value_type);
  const auto end = format.find('_');
  const Options options{{"format", format.substr(0, end)}, {"empty_rows", end == std::string::npos ? "auto" : "drop"}};
  return make_sparse(context, entries, form, options);
}

Ktensor make_ktensor(td_context *context, const Factors &factors, td_type type, const std::vector<double> &weights) {
  Ktensor k = make<Ktensor>(td_ktensor_create, context, static_cast<int32_t>(factors.dims.size()), factors.dims.data(),
                            factors.rank, type);
  for (std::size_t m = 0; m < factors.dims.size(); ++m) {
    const Array a(type, factors.a[m]);
    check(td_ktensor_set_factor(k, static_cast<int32_t>(m), a.data(), factors.dims[m], TD_HOST));
  }
  if (!weights.empty())
    check(td_ktensor_set_weights(k, weights.data()));
  return k;
}

Factors factors_of(const td_ktensor *k) {
  int32_t order = 0;
  check(td_ktensor_shape(k, &order, nullptr, nullptr, nullptr));
  std::vector<int64_t> dims(size(order));
  int64_t rank = 0;
  td_type type = TD_F64;
  check(td_ktensor_shape(k, nullptr, dims.data(), &rank, &type));
  Factors f(dims, rank);
  for (int32_t m = 0; m < order; ++m) {
    const Array a(type, dims[size(m)] * rank);
    check(td_ktensor_get_factor(k, m, a.data(), dims[size(m)], TD_HOST));
    f.a[size(m)] = a.values();
  }
  return f;
}

std::vector<double> mttkrp(td_context *context, const td_tensor *x, const Factors &factors, int mode, td_type type) {
  const int64_t rank = factors.rank;
  std::vector<Matrix> padded;
  std::vector<const void *> pointers;
  std::vector<int64_t> ld;
  for (std::size_t m = 0; m < factors.dims.size(); ++m) {
    // Padding of 0, 1 and 2 rows, and NaN in the factor of `mode`, which must not be read.
    const int64_t rows = factors.dims[m];
    const int64_t padding = (static_cast<int64_t>(m) + rank) % 3;
    Matrix a(type, rows, rank, rows + padding);
    if (static_cast<int>(m) != mode)
      for (int64_t r = 0; r < rank; ++r)
        for (int64_t i = 0; i < rows; ++i)
          a.set(i, r, factors.at(static_cast<int>(m), i, r));
    ld.push_back(a.ld());
    padded.push_back(std::move(a));
    const bool left_out = static_cast<int>(m) == mode && rank % 2 == 0;
    pointers.push_back(left_out ? nullptr : padded.back().data());
  }
  return output_of(type, factors.dims[size(mode)], rank, [&](const Matrix &out) {
    return td_mttkrp(context, x, mode, rank, pointers.data(), ld.data(), out.data(), out.ld(), TD_HOST);
  });
}

std::vector<double> mttkrp_ktensor(td_context *context, const td_tensor *x, const td_ktensor *k, int mode) {
  std::vector<int64_t> dims(64); // the largest order
  int64_t rank = 0;
  td_type type = TD_F64;
  check(td_ktensor_shape(k, nullptr, dims.data(), &rank, &type));
  return output_of(type, dims[size(mode)], rank, [&](const Matrix &out) {
    return td_mttkrp_ktensor(context, x, mode, k, out.data(), out.ld(), TD_HOST);
  });
}

} // namespace tdtest
