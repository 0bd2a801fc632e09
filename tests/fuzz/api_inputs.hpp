// What fuzz_api gives to td's functions: options by the names that td lists, sizes of every kind, and arrays of exactly
// those sizes.
#pragma once

#include <algorithm>

#include "api_world.hpp"

namespace tdtest {

inline constexpr std::int64_t most_elements = 4096; // of a dense tensor, and of a matrix

// ---- options ----

struct ListedOption {
  std::string name, type, choices, help;
};

/// What td_option_describe says of each option.
inline const std::vector<ListedOption> &listed_options() {
  static const std::vector<ListedOption> rows = [] {
    std::vector<ListedOption> all;
    for (std::int64_t i = 0; i < td_option_count(); ++i) {
      char line[2048];
      std::int64_t needed = 0;
      expect(td_option_describe(i, line, sizeof line, &needed) == TD_OK && needed <= std::int64_t{sizeof line},
             "an option is described");
      std::vector<std::string> fields(1);
      for (const char *c = line; *c != '\0'; ++c)
        if (*c == '\t')
          fields.emplace_back();
        else
          fields.back() += *c;
      expect(fields.size() == 8, "an option has eight fields");
      all.push_back({fields[1], fields[2], fields[6], fields[7]});
    }
    expect(!all.empty(), "there are options");
    return all;
  }();
  return rows;
}

inline std::string file_name(Bytes &bytes) {
  static constexpr const char *names[] = {"a.tns", "b.tdb",     "c.txt",   "d.npy",     "e.tns.gz", "k.txt",
                                          "k.tdb", "state.tdb", "missing", "no/folder", "f.bin",    ""};
  const int b = bytes.byte();
  return in_scratch_folder(b < 250 ? names[b % 12] : bytes.text());
}

/// One of the option's choices, something like a list of modes, or anything; a file for an option that names one.
inline std::string option_text(const ListedOption &row, Bytes &bytes) {
  if (row.help.find("file") != std::string::npos && row.choices.empty())
    return bytes.one_in(8) ? "" : file_name(bytes);
  std::vector<std::string> some = {"auto", "none", "0", "1", "0,1", "0,1|2", "0|1,2|3", "2,1,0", "16", "-1", "1e-9"};
  some.emplace_back();
  for (const char c : row.choices)
    if (c == '|')
      some.emplace_back();
    else
      some.back() += c;
  const int b = bytes.byte();
  return b < 240 ? some[static_cast<std::size_t>(b) % some.size()] : bytes.text();
}

/// An option's name most of the time; never one that names a file, since what is set then is any text.
inline std::string option_name(Bytes &bytes) {
  const ListedOption &row = listed_options()[bytes.byte() % listed_options().size()];
  const std::string name = bytes.one_in(16) ? bytes.text() : row.name;
  for (const ListedOption &known : listed_options())
    if (known.name == name && known.help.find("file") != std::string::npos && known.choices.empty())
      return "seed";
  return name;
}

/// A copy in which work ends soon and takes little memory; null if the original is no good. The caller ends it.
inline td_options *bounded(const Given<td_options> &original) {
  td_options *copy = nullptr;
  const td_status status =
      original.handle == nullptr ? td_options_create(&copy) : td_options_copy(original.handle, &copy);
  expect((status == TD_OK) == original.good, "options are copied if they are there");
  if (copy == nullptr)
    return nullptr;
  const auto at_most = [&](const char *name, std::int64_t most) {
    std::int64_t value = 0;
    expect(td_options_get_i64(copy, name, &value) == TD_OK, "an option has a value");
    if (value == 0 || value > most)
      expect(td_options_set_i64(copy, name, most) == TD_OK, "an option is set");
  };
  at_most("memory_limit", std::int64_t{64} << 20);
  at_most("threads", 2);
  at_most("max_iters", 4);
  return copy;
}

/// Options for a call: none, bounded ones, or a handle that is no good.
struct OptionsFor {
  Given<td_options> given;
  td_options *copy;
  OptionsFor(World &w, Bytes &bytes) : given(w.options.pick_or_null(bytes)), copy(bounded(given)) {}
  OptionsFor(const OptionsFor &) = delete;
  OptionsFor &operator=(const OptionsFor &) = delete;
  ~OptionsFor() { td_options_destroy(copy); }
  const td_options *get() const { return given.good && given.handle != nullptr ? copy : given.handle; }
  /// These options bound calls that must be told when to end.
  const td_options *bounds() const { return given.good ? copy : given.handle; }
};

// ---- sizes and arrays ----

/// Any order, with as many dims; none that the call may not look at.
struct Shape {
  std::int32_t order;
  Exact<std::int64_t> dims;
  double elements = 1;
  explicit Shape(Bytes &bytes, bool large)
      : order(bytes.one_in(20) ? bytes.number32() : 2 + bytes.below(4)), dims(order > 0 && order <= 80 ? order : 0) {
    if (order > 80)
      order = 80; // refused whatever the dims
    for (std::int64_t m = 0; m < dims.size(); ++m) {
      dims[m] = large && bytes.one_in(10) ? bytes.number() : 1 + bytes.below(8);
      elements *= static_cast<double>(dims[m]);
    }
  }
};

inline td_type type_of_values(Bytes &bytes) {
  return bytes.one_in(20) ? bytes.number32() : bytes.one_in(3) ? TD_F32 : TD_F64;
}

/// Bytes of so many values of a type; for types that there are not, none.
inline Exact<char> values_of(Bytes &bytes, td_type type, std::int64_t count) {
  const std::int64_t each = type == TD_F64 ? 8 : type == TD_F32 ? 4 : 0;
  Exact<char> raw(count * each);
  for (std::int64_t k = 0; k < count && each > 0; ++k) {
    const double x = bytes.real();
    const auto narrow = static_cast<float>(std::abs(x) > 3e38 && std::isfinite(x) ? 1.0 : x);
    if (type == TD_F64)
      std::memcpy(raw.data() + k * 8, &x, 8);
    else
      std::memcpy(raw.data() + k * 4, &narrow, 4);
  }
  return raw;
}

inline void expect_values_finite(const Exact<char> &raw, td_type type) {
  const std::int64_t each = type == TD_F64 ? 8 : 4;
  for (std::int64_t k = 0; k + each <= raw.size(); k += each) {
    double x = 0;
    float narrow = 0;
    std::memcpy(type == TD_F64 ? static_cast<void *>(&x) : &narrow, raw.data() + k, static_cast<std::size_t>(each));
    expect(std::isfinite(x) && std::isfinite(narrow), "finite input gives finite results");
  }
}

/// Coordinates in each mode, in an array each.
class Coordinates {
public:
  Coordinates(Bytes &bytes, const Shape &shape, std::int64_t count, td_type type, std::int32_t base) {
    const std::int64_t each = type == TD_I64 ? 8 : type == TD_I32 ? 4 : 0;
    for (std::int64_t m = 0; m < shape.dims.size(); ++m) {
      Exact<char> &column = columns_.emplace_back(count * each);
      for (std::int64_t k = 0; k < count && each > 0; ++k) {
        const std::int64_t dim = std::max<std::int64_t>(shape.dims[m], 1);
        const std::int64_t i =
            bytes.one_in(60) ? bytes.number() : base + bytes.byte() % std::min<std::int64_t>(dim, 256);
        const auto narrow = static_cast<std::int32_t>(i);
        std::memcpy(column.data() + k * each, each == 8 ? static_cast<const void *>(&i) : &narrow,
                    static_cast<std::size_t>(each));
      }
      pointers_.push_back(column.data());
    }
  }
  const void *const *get() const { return pointers_.data(); }

private:
  std::vector<Exact<char>> columns_;
  std::vector<const void *> pointers_;
};

struct Facts {
  std::vector<std::int64_t> dims;
  std::int64_t rank = 0;
  td_type type = 0;
  double elements = 1;
  std::int64_t longest = 1;
};
inline void finish(Facts &facts) {
  for (const std::int64_t dim : facts.dims) {
    facts.elements *= static_cast<double>(dim);
    facts.longest = std::max(facts.longest, dim);
  }
}

/// The handle must be good.
inline Facts facts_of(const td_tensor *x) {
  Facts facts;
  std::int32_t order = 0;
  expect(td_tensor_order(x, &order) == TD_OK && order >= 2 && order <= 64, "a tensor has an order");
  const Exact<std::int64_t> dims(order);
  expect(td_tensor_dims(x, dims.data()) == TD_OK && td_tensor_type(x, &facts.type) == TD_OK, "a tensor has dims");
  facts.dims.assign(dims.data(), dims.data() + order);
  finish(facts);
  return facts;
}
inline Facts facts_of(const td_ktensor *k) {
  Facts facts;
  std::int32_t order = 0;
  expect(td_ktensor_shape(k, &order, nullptr, nullptr, nullptr) == TD_OK && order >= 2, "a ktensor has an order");
  const Exact<std::int64_t> dims(order);
  expect(td_ktensor_shape(k, nullptr, dims.data(), &facts.rank, &facts.type) == TD_OK, "a ktensor has dims");
  facts.dims.assign(dims.data(), dims.data() + order);
  finish(facts);
  return facts;
}

/// As a sparse tensor may be of any size, what is written per row or per element is asked for small ones only.
template <class Handle> bool is_small(const Given<Handle> &some) {
  if (!some.good || some.handle == nullptr)
    return true; // refused before
  const Facts facts = facts_of(some.handle);
  return facts.longest * std::max<std::int64_t>(facts.rank, 1) <= most_elements;
}

/// A name that a kind of fact has, or another.
inline const char *fact_name(Bytes &bytes) {
  static constexpr const char *names[] = {"sparse",
                                          "duplicates",
                                          "zeros",
                                          "index_bits",
                                          "bytes",
                                          "norm",
                                          "min",
                                          "max",
                                          "sum",
                                          "format",
                                          "groups",
                                          "source",
                                          "iterations",
                                          "converged",
                                          "order",
                                          "rank",
                                          "fit",
                                          "explained",
                                          "relative",
                                          "residual",
                                          "fit_change",
                                          "seconds",
                                          "seconds.build",
                                          "devices",
                                          "stop_reason",
                                          "effective_rank",
                                          "dims",
                                          "rows",
                                          "load",
                                          "imbalance",
                                          "imbalance_unsplit",
                                          "nnz",
                                          "fits",
                                          "kernel.0",
                                          "conflicts",
                                          "assumptions",
                                          "host_bytes.peak",
                                          "host_bytes.building",
                                          "init",
                                          "resumed_from",
                                          "kernel.99999",
                                          "no.such",
                                          ""};
  return names[bytes.byte() % (sizeof names / sizeof *names)];
}

} // namespace tdtest
