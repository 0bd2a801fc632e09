// Calls of td.h's functions in any order, with handles in every state, sizes of every kind, and callbacks that call
// back and end handles. tests/checks/fuzz_api.sh sees that no function is missing.
#include "api_inputs.hpp"

using namespace tdtest;

namespace {

constexpr int deepest = 2; // calls from callbacks of calls from callbacks

void run_some(World &w, Bytes &bytes, int steps);

// ---- callbacks ----

/// The report that is lent is given to td, too; then other calls are made, and anything may be ended.
std::int32_t progress(const td_report *so_far, void *user) {
  World &w = *static_cast<World *>(user);
  Bytes &bytes = *w.bytes;
  double fit = 2;
  expect(td_report_get_f64(so_far, "fit", &fit) == TD_OK && fit <= 1, "fit is at most 1");
  if (bytes.one_in(4))
    makes<td_report>(w, true, [&](td_report **out) { return td_report_copy(so_far, out); });
  run_some(w, bytes, bytes.below(3));
  return bytes.one_in(8) ? 1 : 0;
}

void log(std::int32_t level, const char *text, void *user) {
  expect(level >= 1 && level <= 3 && text[0] != '\0', "the log hears of something");
  World &w = *static_cast<World *>(user);
  if (w.depth < deepest && w.bytes != nullptr)
    run_some(w, *w.bytes, 1);
}

// ---- one step for each noun and verb ----

template <class Handle> Given<Handle> pick(World &w, Bytes &bytes) { return w.of<Handle>().pick(bytes); }

/// Everything with (handle, key, value) and its text.
template <class Handle, class I64, class F64, class Str>
void ask_by_name(World &w, Bytes &bytes, I64 get_i64, F64 get_f64, Str get_str) {
  const auto some = pick<Handle>(w, bytes);
  const char *name = fact_name(bytes);
  std::int64_t whole = 0;
  double real = 0;
  done_or_refused(some.good, [&] { return get_i64(some.handle, name, &whole); });
  done_or_refused(some.good, [&] { return get_f64(some.handle, name, &real); });
  expect_no_nan(real);
  gives_text(bytes, some.good, [&](char *buf, std::int64_t cap, std::int64_t *needed) {
    return get_str(some.handle, name, buf, cap, needed);
  });
}

template <class Handle, class Get> void ask_series(World &w, Bytes &bytes, Get get) {
  const auto some = pick<Handle>(w, bytes);
  const Exact<double> values(bytes.below(20));
  std::int64_t n = 0;
  const char *name = fact_name(bytes);
  if (done_or_refused(some.good, [&] { return get(some.handle, name, values.data(), values.size(), &n); }) < 0)
    return;
  for (std::int64_t k = 0; k < std::min(n, values.size()); ++k)
    expect_no_nan(values[k]);
}

template <class Handle, class Describe> void describe(World &w, Bytes &bytes, Describe describe_it) {
  const auto some = pick<Handle>(w, bytes);
  gives_text(bytes, some.good, [&](char *buf, std::int64_t cap, std::int64_t *needed) {
    return describe_it(some.handle, buf, cap, needed);
  });
}

template <class Handle, class Copy> void copy(World &w, Bytes &bytes, Copy copy_it) {
  const auto some = pick<Handle>(w, bytes);
  makes<Handle>(w, some.good, [&](Handle **out) { return copy_it(some.handle, out); });
}

void library(World &, Bytes &bytes) {
  expect(td_version() >= 0 && td_abi_version() == TD_ABI_VERSION, "the library has a version");
  expect(td_has_feature("cpu") == 1 && td_has_feature(bytes.text().c_str()) <= 1 && td_has_feature(nullptr) == 0,
         "a feature is there or not");
  expect(td_status_name(bytes.number32()) != nullptr, "every status has a name");
  const Exact<char> text(bytes.below(30));
  td_last_error(text.size() == 0 ? nullptr : text.data(), text.size());
  td_last_error(nullptr, bytes.number() < 0 ? -1 : 0);
}

void make_options(World &w, Bytes &bytes) {
  if (bytes.one_in(4))
    return copy<td_options>(w, bytes, td_options_copy);
  makes<td_options>(w, true, [](td_options **out) { return td_options_create(out); });
}

void set_options(World &w, Bytes &bytes) {
  const auto o = pick<td_options>(w, bytes);
  for (int n = 1 + bytes.below(4); n > 0; --n) {
    const ListedOption &row = listed_options()[bytes.byte() % listed_options().size()];
    const std::string text = option_text(row, bytes);
    done_or_refused(o.good, [&] { return td_options_set_str(o.handle, row.name.c_str(), text.c_str()); });
    const std::string name = option_name(bytes);
    if (bytes.one_in(2))
      done_or_refused(o.good, [&] { return td_options_set_i64(o.handle, name.c_str(), bytes.number()); });
    else
      done_or_refused(o.good, [&] { return td_options_set_f64(o.handle, name.c_str(), bytes.real()); });
  }
}

void get_options(World &w, Bytes &bytes) {
  const auto o = w.options.pick_or_null(bytes);
  const std::string name = option_name(bytes);
  std::int64_t whole = 0;
  double real = 0;
  done_or_refused(o.good, [&] { return td_options_get_i64(o.handle, name.c_str(), &whole); });
  done_or_refused(o.good, [&] { return td_options_get_f64(o.handle, name.c_str(), &real); });
  expect_no_nan(real);
  gives_text(bytes, o.good, [&](char *buf, std::int64_t cap, std::int64_t *needed) {
    return td_options_get_str(o.handle, name.c_str(), buf, cap, needed);
  });
  gives_text(bytes, true, [&](char *buf, std::int64_t cap, std::int64_t *needed) {
    return td_option_describe(bytes.below(99), buf, cap, needed);
  });
}

/// A communicator of one process.
td_communicator *communicator(std::int32_t rank, std::int32_t size) {
  const auto reduce = [](double *, std::int64_t, std::int32_t, void *) -> std::int32_t { return 0; };
  const auto exchange = [](const void *sent, const std::int64_t *bytes, void *received, const std::int64_t *,
                           void *) -> std::int32_t {
    if (bytes[0] > 0)
      std::memcpy(received, sent, static_cast<std::size_t>(bytes[0]));
    return 0;
  };
  const auto broadcast = [](void *, std::int64_t, std::int32_t, void *) -> std::int32_t { return 0; };
  td_communicator *made = nullptr;
  done_or_refused(rank == 0 && size == 1, [&] {
    return td_communicator_create(
        rank, size, reduce, exchange, broadcast, [](td_status, void *) {}, nullptr, nullptr, &made);
  });
  return made;
}

void make_context(World &w, Bytes &bytes) {
  if (bytes.one_in(8))
    return copy<td_context>(w, bytes, td_context_share);
  static constexpr const char *devices[] = {"cpu",   "cpu:1", "reference", "cpu:2", "auto",
                                            "cpu:3", "cpu:0", "cuda",      "?"};
  const OptionsFor options(w, bytes);
  const std::string made_up = bytes.text();
  const int b = bytes.byte();
  const char *const device = b < 240 ? devices[b % 9] : made_up.c_str();
  if (b % 4 == 3) { // of many processes none could go on alone
    td_communicator *const alone = communicator(b % 64 == 3 ? bytes.number32() : 0, b % 64 == 7 ? -1 : 1);
    makes<td_context>(w, options.given.good && alone != nullptr, [&](td_context **out) {
      return td_context_create_distributed(device, options.bounds(), alone, out);
    });
    td_communicator_destroy(alone);
    return;
  }
  makes<td_context>(w, options.given.good,
                    [&](td_context **out) { return td_context_create(device, options.bounds(), out); });
}

void use_context(World &w, Bytes &bytes) {
  const auto c = pick<td_context>(w, bytes);
  done_or_refused(c.good, [&] { return td_context_set_log(c.handle, bytes.one_in(3) ? nullptr : log, &w); });
  expect(td_context_set_stream(c.handle, bytes.number32(), nullptr) < 0 || c.good, "a bad handle is refused");
  describe<td_context>(w, bytes, td_context_describe);
}

void make_sparse(World &w, Bytes &bytes) {
  const auto c = pick<td_context>(w, bytes);
  const OptionsFor options(w, bytes);
  const Shape shape(bytes, true);
  const std::int64_t count = bytes.one_in(30) ? bytes.number() : bytes.below(40);
  const std::int64_t there = std::clamp<std::int64_t>(count, 0, 1000);
  if (count > there && count < std::int64_t{1} << 60)
    return; // would be read
  const td_type index_type = bytes.one_in(20) ? bytes.number32() : bytes.one_in(2) ? TD_I32 : TD_I64;
  const std::int32_t base = bytes.one_in(20) ? bytes.number32() : bytes.below(2);
  const td_type type = type_of_values(bytes);
  const Coordinates indices(bytes, shape, there, index_type, base);
  const Exact<char> values = values_of(bytes, type, there);
  const bool no_array = bytes.one_in(40);
  makes<td_tensor>(w, c.good && options.given.good, [&](td_tensor **out) {
    return td_tensor_create(c.handle, shape.order, shape.dims.data(), count, index_type,
                            no_array ? nullptr : indices.get(), base, type, values.data(),
                            bytes.one_in(30) ? TD_DEVICE : TD_HOST, options.get(), out);
  });
}

void make_dense(World &w, Bytes &bytes) {
  const auto c = pick<td_context>(w, bytes);
  const OptionsFor options(w, bytes);
  const bool large = bytes.one_in(10);
  const Shape shape(bytes, large);
  if (shape.elements > static_cast<double>(most_elements) && shape.elements < 1e19)
    return; // would be read
  const td_type type = type_of_values(bytes);
  const bool is_sound = shape.elements >= 1 && shape.elements <= static_cast<double>(most_elements);
  const std::int64_t elements = is_sound ? static_cast<std::int64_t>(shape.elements) : 1;
  // Without gaps, backwards from the last element, or all from one.
  const int kind = is_sound ? bytes.below(4) : 0;
  const Exact<std::int64_t> strides(shape.dims.size());
  std::int64_t step = 1;
  for (std::int64_t m = 0; m < strides.size(); ++m) {
    strides[m] = kind == 1 ? -step : kind == 2 ? 0 : step;
    step *= kind == 0 ? 1 : shape.dims[m];
  }
  const std::int64_t there = kind == 2 ? 1 : elements;
  const Exact<char> &values = w.lent.emplace_back(values_of(bytes, type, there));
  const char *first = values.data() + (kind == 1 ? values.size() - values.size() / there : 0);
  const bool as_block = bytes.one_in(4);
  const Exact<std::int64_t> offset(shape.dims.size()); // zeros: one block is all of the tensor, or wrong
  for (std::int64_t m = 0; m < offset.size(); ++m)
    offset[m] = as_block && bytes.one_in(16) ? bytes.number32() : 0;
  makes<td_tensor>(w, c.good && options.given.good, [&](td_tensor **out) {
    if (as_block)
      return td_tensor_create_dense_block(c.handle, shape.order, shape.dims.data(), offset.data(), shape.dims.data(),
                                          kind == 0 ? nullptr : strides.data(), type, first, TD_HOST, options.get(),
                                          out);
    return td_tensor_create_dense(c.handle, shape.order, shape.dims.data(), kind == 0 ? nullptr : strides.data(), type,
                                  first, TD_HOST, options.get(), out);
  });
}

void use_tensor(World &w, Bytes &bytes) {
  const auto x = pick<td_tensor>(w, bytes);
  std::int64_t nnz = -1;
  double norm = 0;
  done_or_refused(x.good, [&] { return td_tensor_nnz(x.handle, &nnz); });
  done_or_refused(x.good, [&] { return td_tensor_norm(x.handle, &norm); });
  expect(std::isfinite(norm), "a norm is finite or refused");
  ask_by_name<td_tensor>(w, bytes, td_tensor_get_i64, td_tensor_get_f64, td_tensor_get_str);
  describe<td_tensor>(w, bytes, td_tensor_describe);
  if (bytes.one_in(4))
    copy<td_tensor>(w, bytes, td_tensor_share);
}

void take_tensor(World &w, Bytes &bytes) {
  const auto x = pick<td_tensor>(w, bytes);
  if (!is_small(x))
    return;
  const std::int32_t mode = bytes.number32();
  const td_type type = type_of_values(bytes);
  const std::int64_t each = type == TD_F64 ? 8 : 4;
  Facts facts;
  std::int64_t nnz = 0;
  if (x.good) {
    facts = facts_of(x.handle);
    td_tensor_nnz(x.handle, &nnz);
  }
  const auto order = static_cast<std::int32_t>(facts.dims.size());
  const Exact<std::int64_t> counts(mode >= 0 && mode < order ? facts.dims[static_cast<std::size_t>(mode)] : 0);
  if (done_or_refused(x.good, [&] { return td_tensor_slice_counts(x.handle, mode, counts.data()); }) == TD_OK) {
    std::int64_t sum = 0;
    for (std::int64_t i = 0; i < counts.size(); ++i)
      sum += counts[i];
    expect(sum == nnz, "slices hold all entries");
  }
  std::vector<Exact<std::int32_t>> columns;
  std::vector<void *> pointers;
  for (std::int32_t m = 0; m < order; ++m)
    pointers.push_back(bytes.one_in(8) ? nullptr : columns.emplace_back(nnz).data());
  const Exact<char> values(nnz * each);
  const td_status status = done_or_refused(x.good, [&] {
    return td_tensor_get_entries(x.handle, TD_I32, pointers.data(), bytes.below(3), type, values.data());
  });
  if (status == TD_OK && type == facts.type)
    expect_values_finite(values, type);
  if (facts.elements > static_cast<double>(most_elements))
    return;
  const Exact<char> full(static_cast<std::int64_t>(facts.elements) * each);
  if (done_or_refused(x.good, [&] { return td_tensor_get_dense(x.handle, nullptr, type, full.data()); }) == TD_OK &&
      type == facts.type)
    expect_values_finite(full, type);
}

void make_ktensor(World &w, Bytes &bytes) {
  if (bytes.one_in(6))
    return copy<td_ktensor>(w, bytes, bytes.one_in(2) ? td_ktensor_copy : td_ktensor_gather);
  const auto c = pick<td_context>(w, bytes);
  const Shape shape(bytes, bytes.one_in(10));
  if (shape.elements > 1e6 && shape.elements < 1e19)
    return; // as large as there is memory
  const std::int64_t rank = bytes.below(10);
  makes<td_ktensor>(w, c.good, [&](td_ktensor **out) {
    return td_ktensor_create(c.handle, shape.order, shape.dims.data(), rank, type_of_values(bytes), out);
  });
}

void set_ktensor(World &w, Bytes &bytes) {
  const auto k = pick<td_ktensor>(w, bytes);
  if (!is_small(k))
    return;
  const Facts facts = k.good ? facts_of(k.handle) : Facts{};
  const auto order = static_cast<std::int32_t>(facts.dims.size());
  for (std::int32_t m = 0; m < std::max(order, 1); ++m) {
    const std::int32_t mode = bytes.one_in(12) ? bytes.number32() : m;
    const std::int64_t rows = mode >= 0 && mode < order ? facts.dims[static_cast<std::size_t>(mode)] : 1;
    const std::int64_t ld = rows + (bytes.one_in(4) ? bytes.below(5) - 2 : 0);
    const std::int64_t count = std::max<std::int64_t>(0, (facts.rank - 1) * std::max(ld, rows) + rows);
    const Exact<char> a = values_of(bytes, facts.type, count);
    const td_space space = bytes.one_in(30) ? bytes.number32() : TD_HOST;
    done_or_refused(k.good, [&] { return td_ktensor_set_factor(k.handle, mode, a.data(), ld, space); });
    const Exact<char> back(a.size());
    if (done_or_refused(k.good, [&] { return td_ktensor_get_factor(k.handle, mode, back.data(), ld, space); }) == TD_OK)
      expect_values_finite(back, facts.type);
    if (done_or_refused(k.good, [&] { return td_ktensor_get_local_factor(k.handle, mode, back.data(), ld, space); }) ==
        TD_OK)
      expect_values_finite(back, facts.type);
  }
  const Exact<double> weights(facts.rank);
  for (std::int64_t r = 0; r < facts.rank; ++r)
    weights[r] = bytes.real();
  done_or_refused(k.good, [&] { return td_ktensor_set_weights(k.handle, weights.data()); });
  if (done_or_refused(k.good, [&] { return td_ktensor_get_weights(k.handle, weights.data()); }) == TD_OK)
    expect_finite(weights);
}

void change_ktensor(World &w, Bytes &bytes) {
  const auto k = pick<td_ktensor>(w, bytes);
  static constexpr td_status (*changes[])(td_ktensor *) = {td_ktensor_normalize, td_ktensor_arrange,
                                                           td_ktensor_fixsigns};
  done_or_refused(k.good, [&] { return changes[bytes.below(3)](k.handle); });
  double norm = 0;
  done_or_refused(k.good, [&] { return td_ktensor_norm(k.handle, &norm); });
  expect_no_nan(norm);
}

void compare_ktensors(World &w, Bytes &bytes) {
  const auto a = pick<td_ktensor>(w, bytes);
  const auto b = pick<td_ktensor>(w, bytes);
  const auto x = pick<td_tensor>(w, bytes);
  const auto c = pick<td_context>(w, bytes);
  double dot = 0, score = 0, fit = 0, explained = 0, relative = 0, residual = 0;
  done_or_refused(a.good && b.good, [&] { return td_ktensor_dot(a.handle, b.handle, &dot); });
  expect_no_nan(dot);
  const Exact<std::int64_t> match(a.good ? facts_of(a.handle).rank : 0);
  const bool matched = !bytes.one_in(3);
  done_or_refused(a.good && b.good, [&] {
    return td_ktensor_score(a.handle, b.handle, bytes.below(2), &score, matched ? match.data() : nullptr);
  });
  expect_no_nan(score);
  std::int64_t first = 0, count = 0;
  done_or_refused(a.good, [&] { return td_ktensor_local_rows(a.handle, 0, &first, &count); });
  const bool good = a.good && x.good && c.good;
  done_or_refused(good, [&] { return td_ktensor_dot_tensor(c.handle, a.handle, x.handle, &dot); });
  expect_no_nan(dot);
  done_or_refused(good, [&] {
    return td_ktensor_fit(c.handle, a.handle, x.handle, &fit, &explained, &relative,
                          bytes.one_in(3) ? nullptr : &residual);
  });
  for (const double v : {fit, explained, relative, residual})
    expect_no_nan(v);
  expect(fit <= 1 && explained <= 1 && relative >= 0 && residual >= 0, "a fit is at most 1");
}

void take_ktensor(World &w, Bytes &bytes) {
  const auto k = pick<td_ktensor>(w, bytes);
  if (!is_small(k))
    return;
  const Facts facts = k.good ? facts_of(k.handle) : Facts{};
  Shape shape(bytes, false); // as the ktensor's, most of the time
  const std::int64_t count = bytes.below(10);
  const std::int32_t base = bytes.below(2);
  const auto order = static_cast<std::int64_t>(facts.dims.size());
  shape.dims = Exact<std::int64_t>(order);
  for (std::int64_t m = 0; m < order; ++m)
    shape.dims[m] = facts.dims[static_cast<std::size_t>(m)];
  const Coordinates indices(bytes, shape, count, TD_I64, base);
  const Exact<double> values(count);
  done_or_refused(k.good,
                  [&] { return td_ktensor_values_at(k.handle, count, TD_I64, indices.get(), base, values.data()); });
  for (std::int64_t i = 0; i < count; ++i)
    expect_no_nan(values[i]);
  if (facts.elements > static_cast<double>(most_elements))
    return;
  const Exact<double> full(static_cast<std::int64_t>(facts.elements));
  done_or_refused(k.good, [&] { return td_ktensor_full(k.handle, nullptr, TD_F64, full.data()); });
  for (std::int64_t i = 0; i < full.size(); ++i)
    expect_no_nan(full[i]);
}

/// Sets and asks for names of modes and labels of indices, as often as not in as many labels as the mode has indices.
template <class Handle, class SetName, class GetName, class SetLabels, class GetLabel, class GetLabels>
void use_labels(World &w, Bytes &bytes, SetName set_name, GetName get_name, SetLabels set_labels, GetLabel get_label,
                GetLabels get_labels) {
  const auto some = pick<Handle>(w, bytes);
  const Facts facts = some.good ? facts_of(some.handle) : Facts{};
  const auto order = static_cast<std::int32_t>(facts.dims.size());
  const std::int32_t mode = order == 0 || bytes.one_in(12) ? bytes.number32() : bytes.below(order);
  const std::int64_t dim = mode >= 0 && mode < order ? facts.dims[static_cast<std::size_t>(mode)] : 1;
  const std::string name = bytes.text();
  done_or_refused(some.good, [&] { return set_name(some.handle, mode, name.c_str()); });
  gives_text(bytes, some.good && mode >= 0 && mode < order, [&](char *buf, std::int64_t cap, std::int64_t *needed) {
    return get_name(some.handle, mode, buf, cap, needed);
  });
  std::string labels;
  for (std::int64_t i = 0; i < std::min<std::int64_t>(dim, 40); ++i)
    labels += std::string(bytes.text().c_str()) + '\0';
  const Exact<char> text(static_cast<std::int64_t>(labels.size()) - (bytes.one_in(6) ? 1 : 0));
  std::copy_n(labels.begin(), text.size(), text.data());
  done_or_refused(some.good, [&] { return set_labels(some.handle, mode, text.data(), text.size()); });
  const std::int64_t index =
      bytes.one_in(12) ? bytes.number() : bytes.below(static_cast<int>(std::min<std::int64_t>(dim, 40)));
  gives_text(bytes, some.good && mode >= 0 && mode < order && index >= 0 && index < dim,
             [&](char *buf, std::int64_t cap, std::int64_t *needed) {
               return get_label(some.handle, mode, index, buf, cap, needed);
             });
  const Exact<char> back(bytes.below(60));
  std::int64_t needed = -1;
  if (done_or_refused(some.good, [&] { return get_labels(some.handle, mode, back.data(), back.size(), &needed); }) ==
      TD_OK)
    expect(needed == 0 || needed >= dim, "each index has a label or none");
}

void use_tensor_labels(World &w, Bytes &bytes) {
  use_labels<td_tensor>(w, bytes, td_tensor_set_mode_name, td_tensor_get_mode_name, td_tensor_set_labels,
                        td_tensor_get_label, td_tensor_get_labels);
}

void use_ktensor_labels(World &w, Bytes &bytes) {
  use_labels<td_ktensor>(w, bytes, td_ktensor_set_mode_name, td_ktensor_get_mode_name, td_ktensor_set_labels,
                         td_ktensor_get_label, td_ktensor_get_labels);
  const auto k = pick<td_ktensor>(w, bytes);
  const Exact<std::int64_t> indices(bytes.below(9));
  const Exact<double> values(indices.size());
  std::int64_t found = 0;
  const std::int32_t mode = bytes.number32();
  if (done_or_refused(k.good, [&] {
        return td_ktensor_get_leading(k.handle, mode, bytes.below(9), indices.size(), indices.data(), values.data(),
                                      &found);
      }) != TD_OK)
    return;
  expect(found >= 0 && found <= indices.size(), "no more lead than were asked for");
  for (std::int64_t i = 1; i < found; ++i)
    expect(std::abs(values[i - 1]) >= std::abs(values[i]), "the largest comes first");
}

void multiply(World &w, Bytes &bytes) {
  const auto c = pick<td_context>(w, bytes);
  const auto x = pick<td_tensor>(w, bytes);
  const auto k = pick<td_ktensor>(w, bytes);
  if (!is_small(x) || !is_small(k))
    return;
  const Facts facts = x.good ? facts_of(x.handle) : Facts{};
  const auto order = static_cast<std::int32_t>(facts.dims.size());
  const std::int32_t mode = bytes.number32();
  const std::int64_t rank = bytes.one_in(12) ? bytes.number() : 1 + bytes.below(9);
  const std::int64_t columns = rank >= 1 && rank <= 100 ? rank : 1;
  if (rank > columns && rank < std::int64_t{1} << 60)
    return; // would be read
  const std::int64_t rows = mode >= 0 && mode < order ? facts.dims[static_cast<std::size_t>(mode)] : 1;
  const std::int64_t ld_out = rows + (bytes.one_in(4) ? bytes.below(5) - 2 : 0);
  std::vector<Exact<char>> arrays;
  std::vector<const void *> factors;
  const Exact<std::int64_t> ld(order);
  for (std::int32_t m = 0; m < order; ++m) {
    const std::int64_t dim = facts.dims[static_cast<std::size_t>(m)];
    ld[m] = dim + (bytes.one_in(6) ? bytes.below(5) - 1 : 0);
    arrays.push_back(values_of(bytes, facts.type, m == mode ? 0 : (columns - 1) * std::max(ld[m], dim) + dim));
    factors.push_back(m == mode || bytes.one_in(60) ? nullptr : arrays.back().data());
  }
  const std::int64_t each = facts.type == TD_F64 ? 8 : 4;
  const std::int64_t wide = x.good && k.good ? std::max(columns, facts_of(k.handle).rank) : columns;
  const Exact<char> out(((wide - 1) * std::max(ld_out, rows) + rows) * each);
  if (done_or_refused(c.good && x.good, [&] {
        return td_mttkrp(c.handle, x.handle, mode, rank, factors.data(), ld.data(), out.data(), ld_out,
                         bytes.one_in(30) ? TD_DEVICE : TD_HOST);
      }) == TD_OK)
    expect_values_finite(out, facts.type);
  if (done_or_refused(c.good && x.good && k.good, [&] {
        return td_mttkrp_ktensor(c.handle, x.handle, mode, k.handle, out.data(), ld_out, TD_HOST);
      }) == TD_OK)
    expect_values_finite(out, facts.type);
}

void decompose(World &w, Bytes &bytes) {
  const auto c = pick<td_context>(w, bytes);
  const auto x = pick<td_tensor>(w, bytes);
  const auto init = w.ktensors.pick_or_null(bytes);
  const OptionsFor options(w, bytes);
  const std::int64_t rank = bytes.one_in(12)                               ? bytes.number()
                            : init.good && init.handle && !bytes.one_in(8) ? facts_of(init.handle).rank
                                                                           : 1 + bytes.below(6);
  const bool good = c.good && x.good && init.good && options.given.good;
  td_report *report = nullptr;
  const bool ask = !bytes.one_in(4);
  const bool callback = w.depth < deepest && !bytes.one_in(3);
  makes<td_ktensor>(w, good, [&](td_ktensor **model) {
    const td_status status = td_cpals(c.handle, x.handle, rank, init.handle, options.bounds(),
                                      callback ? progress : nullptr, &w, model, ask ? &report : nullptr);
    expect(status >= 0 || report == nullptr, "a failed call leaves a null handle");
    expect(status != TD_STOPPED || callback, "only a callback stops");
    if (status < 0)
      return status;
    double fit = 2;
    if (report != nullptr)
      expect(td_report_get_f64(report, "fit", &fit) == TD_OK && fit <= 1, "fit is at most 1");
    const Facts facts = facts_of(*model);
    expect(facts.rank == rank, "the model has the rank asked for");
    const Exact<double> weights(facts.rank);
    expect(td_ktensor_get_weights(*model, weights.data()) == TD_OK, "a model has weights");
    expect_finite(weights);
    for (std::size_t m = 0; m < facts.dims.size(); ++m) {
      const Exact<char> a(facts.dims[m] * facts.rank * (facts.type == TD_F64 ? 8 : 4));
      expect(td_ktensor_get_factor(*model, static_cast<std::int32_t>(m), a.data(), facts.dims[m], TD_HOST) == TD_OK,
             "a model has factors");
      expect_values_finite(a, facts.type);
    }
    return status;
  });
  if (report != nullptr)
    w.reports.add(report);
}

void use_report(World &w, Bytes &bytes) {
  ask_by_name<td_report>(w, bytes, td_report_get_i64, td_report_get_f64, td_report_get_str);
  ask_series<td_report>(w, bytes, td_report_get_series);
  if (bytes.one_in(4))
    copy<td_report>(w, bytes, td_report_copy);
  const auto c = pick<td_context>(w, bytes);
  const auto r = pick<td_report>(w, bytes);
  const auto x = w.tensors.pick_or_null(bytes);
  const auto k = pick<td_ktensor>(w, bytes);
  if (!is_small(k) || !is_small(x))
    return;
  const OptionsFor options(w, bytes);
  const std::string path = file_name(bytes) + (bytes.one_in(4) ? "" : bytes.one_in(2) ? ".json" : ".html");
  done_or_refused(c.good && r.good && x.good && k.good && options.given.good,
                  [&] { return td_report_write(c.handle, r.handle, x.handle, k.handle, options.get(), path.c_str()); });
}

void make_plan(World &w, Bytes &bytes) {
  const auto c = pick<td_context>(w, bytes);
  const OptionsFor options(w, bytes);
  const Shape shape(bytes, true);
  const std::int64_t rank = bytes.number();
  const std::int64_t nnz = bytes.number();
  const td_type type = type_of_values(bytes);
  const bool good = c.good && options.given.good;
  const td_options *o = options.get();
  if (bytes.one_in(2))
    makes<td_plan>(w, good, [&](td_plan **out) {
      return td_plan_create(c.handle, shape.order, shape.dims.data(), nnz, type, rank, o, out);
    });
  else
    makes<td_plan>(w, good, [&](td_plan **out) {
      return td_plan_create_dense(c.handle, shape.order, shape.dims.data(), type, rank, o, out);
    });
  const auto x = pick<td_tensor>(w, bytes);
  makes<td_plan>(w, good && x.good,
                 [&](td_plan **out) { return td_plan_create_for_tensor(c.handle, x.handle, rank, o, out); });
}

void use_plan(World &w, Bytes &bytes) {
  ask_by_name<td_plan>(w, bytes, td_plan_get_i64, td_plan_get_f64, td_plan_get_str);
  ask_series<td_plan>(w, bytes, td_plan_get_series);
  describe<td_plan>(w, bytes, td_plan_describe);
  if (bytes.one_in(4))
    copy<td_plan>(w, bytes, td_plan_share);
}

void write_files(World &w, Bytes &bytes) {
  const auto x = pick<td_tensor>(w, bytes);
  const auto k = pick<td_ktensor>(w, bytes);
  const OptionsFor options(w, bytes);
  const std::string path = file_name(bytes);
  if (bytes.one_in(2))
    done_or_refused(x.good && options.given.good,
                    [&] { return td_tensor_write(x.handle, path.c_str(), options.get()); });
  else
    done_or_refused(k.good && options.given.good,
                    [&] { return td_ktensor_write(k.handle, path.c_str(), options.get()); });
}

void read_files(World &w, Bytes &bytes) {
  const auto c = pick<td_context>(w, bytes);
  const OptionsFor options(w, bytes);
  const std::string path = file_name(bytes);
  const bool good = c.good && options.given.good;
  switch (bytes.below(3)) {
  case 0:
    makes<td_tensor>(w, good,
                     [&](td_tensor **out) { return td_tensor_read(c.handle, path.c_str(), options.get(), out); });
    break;
  case 1:
    makes<td_ktensor>(w, c.good, [&](td_ktensor **out) { return td_ktensor_read(c.handle, path.c_str(), out); });
    break;
  default:
    makes<td_plan>(w, good, [&](td_plan **out) {
      return td_plan_read(c.handle, path.c_str(), bytes.number(), options.get(), out);
    });
  }
}

void destroy_one(World &w, Bytes &bytes) {
  switch (bytes.below(6)) {
  case 0:
    return w.options.destroy(pick<td_options>(w, bytes));
  case 1:
    return w.contexts.destroy(pick<td_context>(w, bytes));
  case 2:
    return w.tensors.destroy(pick<td_tensor>(w, bytes));
  case 3:
    return w.ktensors.destroy(pick<td_ktensor>(w, bytes));
  case 4:
    return w.reports.destroy(pick<td_report>(w, bytes));
  default:
    return w.plans.destroy(pick<td_plan>(w, bytes));
  }
}

constexpr void (*steps[])(World &, Bytes &) = {
    library,      make_options, set_options,       get_options,       make_context, use_context,    make_sparse,
    make_dense,   use_tensor,   take_tensor,       make_ktensor,      set_ktensor,  change_ktensor, compare_ktensors,
    take_ktensor, multiply,     decompose,         use_report,        make_plan,    use_plan,       write_files,
    read_files,   destroy_one,  use_tensor_labels, use_ktensor_labels};

void run_some(World &w, Bytes &bytes, int count) {
  if (w.depth >= deepest)
    return;
  ++w.depth;
  for (; count > 0 && !bytes.empty(); --count)
    steps[bytes.byte() % (sizeof steps / sizeof *steps)](w, bytes);
  --w.depth;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  Bytes bytes(data, size);
  World w;
  w.bytes = &bytes;
  // What most calls need, so that few inputs end before they have begun.
  td_context *context = nullptr;
  td_options *options = nullptr;
  expect(td_options_create(&options) == TD_OK && td_options_set_i64(options, "threads", 1) == TD_OK,
         "options are made");
  expect(td_options_set_i64(options, "memory_limit", std::int64_t{64} << 20) == TD_OK, "options are made");
  w.options.add(options);
  expect(td_context_create("cpu", options, &context) == TD_OK, "a context is made");
  w.contexts.add(context);
  w.tensors.stranger = w.ktensors.stranger = w.reports.stranger = w.plans.stranger = w.options.stranger = context;
  w.contexts.stranger = options;
  run_some(w, bytes, 40);
  return 0;
}
