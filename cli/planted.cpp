#include "planted.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "draw.hpp"

namespace cli {

namespace {

// Streams of the generator: what a number is drawn for.
enum Stream : std::uint64_t { coordinate = 1, value = 2, factor = 3, support = 4, disturbance = 5 };

/// td sums what repeats.
Tensor sparse(td_context *context, const Recipe &recipe, const Coordinates<std::int64_t> &at,
              const std::vector<double> &values) {
  return make<Tensor>(td_tensor_create, context, static_cast<std::int32_t>(recipe.dims.size()), recipe.dims.data(),
                      static_cast<std::int64_t>(values.size()), TD_I64, at.read().data(), 0, TD_F64, values.data(),
                      TD_HOST, nullptr);
}

Tensor dense(td_context *context, const Recipe &recipe, const std::vector<double> &values) {
  return make<Tensor>(td_tensor_create_dense, context, static_cast<std::int32_t>(recipe.dims.size()),
                      recipe.dims.data(), nullptr, TD_F64, values.data(), TD_HOST, nullptr);
}

/// The length of n numbers, of which f gives the k-th.
template <class F> double length_of(std::size_t n, const F &f) {
  double sum = 0;
  for (std::size_t k = 0; k < n; ++k)
    sum += f(k) * f(k);
  return std::sqrt(sum);
}

/// What a normal number is multiplied by that disturbs a value: n noises are as long as the recipe says.
template <class F> double noise_scale(const Recipe &recipe, std::size_t n, const F &value_of) {
  if (recipe.noise == 0)
    return 0;
  const double length = length_of(n, [&](std::size_t k) { return draw_normal(recipe.seed, disturbance, k); });
  return length == 0 ? 0 : recipe.noise * length_of(n, value_of) / length;
}

void disturb(std::vector<double> &values, const Recipe &recipe) {
  const double scale = noise_scale(recipe, values.size(), [&](std::size_t k) { return values[k]; });
  for (std::size_t k = 0; scale != 0 && k < values.size(); ++k)
    values[k] += scale * draw_normal(recipe.seed, disturbance, k);
}

/// The coordinates of a sparse tensor's entries, with their values.
std::vector<double> entries(const td_tensor *x, Coordinates<std::int64_t> &at) {
  const auto n = get<std::int64_t>(td_tensor_nnz, x);
  at = Coordinates<std::int64_t>(at.modes.size(), n);
  std::vector<double> values(static_cast<std::size_t>(n));
  check(td_tensor_get_entries(x, TD_I64, at.write().data(), 0, TD_F64, values.data()));
  return values;
}

AnyCoordinates draw_coordinates(const Recipe &recipe) {
  AnyCoordinates drawn = coordinates_for(recipe.dims, recipe.entries);
  std::visit(
      [&]<class Index>(Coordinates<Index> &at) {
        for (std::size_t m = 0; m < recipe.dims.size(); ++m) {
          const std::int64_t d = recipe.dims[m];
          const Scatter place(d);
          const std::uint64_t shared = m + 1 == recipe.dims.size() ? 1 : static_cast<std::uint64_t>(recipe.fiber);
          in_parallel(recipe.entries, [&](std::int64_t begin, std::int64_t end) {
            for (auto k = static_cast<std::uint64_t>(begin); k < static_cast<std::uint64_t>(end); ++k)
              at.modes[m][k] =
                  static_cast<Index>(place(draw_index(d, recipe.skew, draw(recipe.seed, {coordinate, m, k / shared}))));
          });
        }
      },
      drawn);
  return drawn;
}

/// td drops what was drawn twice by summing it; then each entry gets its value.
EntryArrays scattered(td_context *context, const Recipe &recipe, td_type type) {
  Tensor distinct;
  {
    const AnyCoordinates drawn = draw_coordinates(recipe);
    const std::vector<float> ones(static_cast<std::size_t>(recipe.entries), 1.0f);
    distinct = std::visit(
        [&](const auto &at) {
          return make<Tensor>(td_tensor_create, context, static_cast<std::int32_t>(recipe.dims.size()),
                              recipe.dims.data(), recipe.entries, at.type, at.read().data(), 0, TD_F32, ones.data(),
                              TD_HOST, Options{{"format", "coo"}});
        },
        drawn);
  }
  EntryArrays out(distinct, type);
  const auto value_of = [&](std::uint64_t k) { return 1 + draw(recipe.seed, {value, k}); };
  const double scale = noise_scale(recipe, static_cast<std::size_t>(out.count()), value_of);
  out.set_values([&](std::uint64_t k) {
    return scale == 0 ? value_of(k) : value_of(k) + scale * draw_normal(recipe.seed, disturbance, k);
  });
  return out;
}

/// `size` different slices of a mode.
std::vector<std::int64_t> draw_support(const Recipe &recipe, std::size_t mode, std::uint64_t component,
                                       std::int64_t size) {
  const auto d = recipe.dims[mode];
  const Scatter place(d);
  std::set<std::int64_t> chosen;
  // After this many draws the rest is taken in order: strong skew would make us wait for the rare slices.
  const auto patience = static_cast<std::uint64_t>(4 * size + 16);
  for (std::uint64_t k = 0; k < patience && static_cast<std::int64_t>(chosen.size()) < size; ++k)
    chosen.insert(place(draw_index(d, recipe.skew, draw(recipe.seed, {support, mode, component, k}))));
  for (std::int64_t i = 0; static_cast<std::int64_t>(chosen.size()) < size; ++i)
    chosen.insert(place(i));
  return {chosen.begin(), chosen.end()};
}

/// How many slices of each mode a component covers, so that all components together have about the entries wanted.
std::vector<std::int64_t> support_sizes(const Recipe &recipe) {
  const double wanted = std::max(1.0, static_cast<double>(recipe.entries) / static_cast<double>(recipe.rank));
  std::vector<std::size_t> by_length(recipe.dims.size());
  std::iota(by_length.begin(), by_length.end(), std::size_t{0});
  std::sort(by_length.begin(), by_length.end(),
            [&](std::size_t a, std::size_t b) { return recipe.dims[a] < recipe.dims[b]; });
  std::vector<std::int64_t> sizes(recipe.dims.size());
  // The same number of slices in every mode, where modes are long enough; short ones leave theirs to the others.
  double left = wanted;
  auto modes_left = static_cast<double>(recipe.dims.size());
  for (const auto m : by_length) {
    const auto share = static_cast<std::int64_t>(std::llround(std::pow(left, 1 / modes_left)));
    sizes[m] = std::clamp(share, std::int64_t{1}, recipe.dims[m]);
    left = std::max(1.0, left / static_cast<double>(sizes[m]));
    --modes_left;
  }
  return sizes;
}

Ktensor truth(td_context *context, const Recipe &recipe, const std::vector<std::vector<double>> &factors) {
  Ktensor k = make<Ktensor>(td_ktensor_create, context, static_cast<std::int32_t>(recipe.dims.size()),
                            recipe.dims.data(), recipe.rank, TD_F64);
  for (std::size_t m = 0; m < factors.size(); ++m)
    check(td_ktensor_set_factor(k, static_cast<std::int32_t>(m), factors[m].data(), recipe.dims[m], TD_HOST));
  return k;
}

std::vector<std::vector<double>> zero_factors(const Recipe &recipe) {
  std::vector<std::vector<double>> factors;
  for (const auto d : recipe.dims)
    factors.emplace_back(static_cast<std::size_t>(d) * static_cast<std::size_t>(recipe.rank));
  return factors;
}

Planted plant_dense(td_context *context, const Recipe &recipe) {
  auto factors = zero_factors(recipe);
  for (std::size_t m = 0; m < factors.size(); ++m)
    for (std::size_t k = 0; k < factors[m].size(); ++k)
      factors[m][k] = draw_normal(recipe.seed, factor + 16 * m, k);
  Ktensor k = truth(context, recipe, factors);
  auto values = dense_array<double>(recipe.dims);
  check(td_ktensor_full(k, nullptr, TD_F64, values.data()));
  disturb(values, recipe);
  return {dense(context, recipe, values), std::move(k)};
}

Planted plant_sparse(td_context *context, const Recipe &recipe) {
  const auto order = recipe.dims.size();
  const auto sizes = support_sizes(recipe);
  auto factors = zero_factors(recipe);
  Coordinates<std::int64_t> at(order);
  for (std::uint64_t r = 0; r < static_cast<std::uint64_t>(recipe.rank); ++r) {
    std::vector<std::vector<std::int64_t>> supports;
    for (std::size_t m = 0; m < order; ++m) {
      supports.push_back(draw_support(recipe, m, r, sizes[m]));
      for (const auto i : supports[m])
        factors[m][static_cast<std::size_t>(i) + r * static_cast<std::size_t>(recipe.dims[m])] =
            0.5 + draw(recipe.seed, {factor, m, r, static_cast<std::uint64_t>(i)});
    }
    std::vector<std::size_t> digit(order, 0); // counts through the block, first mode fastest
    for (std::size_t m = 0; m < order;) {
      for (std::size_t j = 0; j < order; ++j)
        at.modes[j].push_back(supports[j][digit[j]]);
      for (m = 0; m < order && ++digit[m] == supports[m].size(); ++m)
        digit[m] = 0;
    }
  }
  Ktensor k = truth(context, recipe, factors);
  // td drops what several components cover by summing it; the ktensor says what stands there.
  std::vector<double> values(at.modes[0].size(), 1.0);
  values = entries(sparse(context, recipe, at, values), at);
  check(td_ktensor_values_at(k, static_cast<std::int64_t>(values.size()), TD_I64, at.read().data(), 0, values.data()));
  disturb(values, recipe);
  return {sparse(context, recipe, at, values), std::move(k)};
}

} // namespace

std::int64_t draw_index(std::int64_t d, double skew, double u) {
  const double x = skew == 0.5 ? u * u : std::pow(u, 1 / (1 - skew)); // u * u: the same bits on every machine
  return std::min(static_cast<std::int64_t>(static_cast<double>(d) * x), d - 1);
}

Planted plant(td_context *context, const Recipe &recipe) {
  if (recipe.rank > 0)
    return recipe.dense ? plant_dense(context, recipe) : plant_sparse(context, recipe);
  if (!recipe.dense)
    return {scattered(context, recipe, TD_F64).build(context, nullptr), {}};
  auto values = dense_array<double>(recipe.dims);
  for (std::size_t k = 0; k < values.size(); ++k)
    values[k] = 1 + draw(recipe.seed, {value, k});
  disturb(values, recipe);
  return {dense(context, recipe, values), {}};
}

EntryArrays plant_arrays(td_context *context, const Recipe &recipe, td_type type) {
  if (recipe.rank == 0 && !recipe.dense)
    return scattered(context, recipe, type);
  return {plant(context, recipe).tensor, type};
}

} // namespace cli
