#include "core/options.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <numeric>
#include <vector>

#include <fast_float/fast_float.h>

#include "core/error.hpp"
#include "core/mode_list.hpp"
#include "core/nearest.hpp"

namespace td {

namespace {

constexpr double huge = 9007199254740992.0; // 2^53: every whole number up to here is exact in a double
constexpr double largest = std::numeric_limits<double>::max();

constexpr OptionRow table[] = {
    {"context", "threads", OptionType::i64, "0", 0, 65536, "",
     "threads of the CPU backend in all workers together; 0: all cores that the process may use"},
    {"context", "memory_limit", OptionType::i64, "0", 0, huge, "",
     "bytes of host memory that a tensor, ktensor or file and the work on it may take together; 0: what the system and "
     "the process's control group and address space have left"},

    {"context", "device_memory_limit", OptionType::i64, "0", 0, huge, "",
     "bytes of a GPU's memory that copies of tensors, and building them there, may take; what has no room is built by "
     "the host, or streamed from its memory; 0: what is free"},
    {"context", "exchange", OptionType::str, "auto", 0, 0, "auto|nccl|peer|host",
     "how several GPUs exchange rows and sums: peer (copies from memory to memory, in one process), nccl (NVIDIA's "
     "library), host (by way of the host's memory), auto (the first that can be of peer, nccl, host)"},
    {"context", "virtual_devices", OptionType::i64, "0", 0, 1, "",
     "1: a device string may name a GPU more than once, as \"cuda:0,0\", each time for a worker of its own, which "
     "shares the GPU and nothing else, and processes may share one: for tests"},

    {"tensor", "format", OptionType::str, "auto", 0, 0, "auto|coo|blco|sorted",
     "how a sparse tensor is stored: coo (coordinates), blco (one linearized copy for all modes), sorted (a copy "
     "sorted by each mode: fastest, order times the memory), auto"},
    {"tensor", "empty_rows", OptionType::str, "auto", 0, 0, "auto|keep|drop",
     "rows of a sparse tensor's modes that hold no entry: keep them in memory while working, drop them, auto (drop in "
     "modes that are long and have many)"},
    {"tensor", "duplicates", OptionType::str, "sum", 0, 0, "sum|error",
     "entries at the same coordinates are summed, or refused"},
    {"tensor", "groups", OptionType::str, "auto", 0, 0, "",
     "neighbouring modes that share a partial product in a sweep of CP-ALS, as in \"0,1|2,3\"; none: each mode works "
     "on the whole tensor; multi-sweep: of a dense tensor, partial products of all modes but one, across sweeps; auto: "
     "where a sweep is expected to take less time"},

    {"tensor", "sharding", OptionType::str, "auto", 0, 0, "auto|rows|entries",
     "how workers divide a mode's entries: rows (each index's entries to one worker), auto (so, but heavy indices are "
     "cut; formats that are not sorted by the mode: equally many entries), entries (equally many, for comparison)"},

    {"tensor", "tiles", OptionType::str, "auto", 0, 0, "",
     "cut the copies of format sorted into tiles whose factor rows fit a cache: auto (where that pays), none, or how "
     "many rows of the other factors together a tile may need, as in \"160\""},
    {"tensor", "conflicts", OptionType::str, "auto", 0, 0, "auto|private|atomic|owner",
     "how threads that work on entries in no order of rows (formats coo and blco, cells of groups) keep their sums "
     "apart: private (rows of each one's own, merged), atomic (atomic additions), owner (a row's terms are added by "
     "one), auto"},
    {"tensor", "accumulate", OptionType::str, "auto", 0, 0, "auto|f64",
     "how MTTKRP of an f32 tensor sums: f64 (every term and sum in f64, rounded once), auto (as is fastest: f32, added "
     "up in f64 at intervals); of an f64 tensor all is f64"},
    {"tensor", "gather", OptionType::str, "auto", 0, 0, "auto|f32",
     "how MTTKRP of an f64 tensor reads rows of factors: f32 (from copies in f32, on a GPU in format sorted, with "
     "terms and sums in f64), auto (as they are); of an f32 tensor they are f32"},

    {"tensor", "dense_kernel", OptionType::str, "auto", 0, 0, "auto|elem|slice|tile|gemm|fused|fused_tf32",
     "how a GPU computes MTTKRP of a dense tensor: elem, slice or tile (without matrix products: element by element, "
     "slice by slice, or in tiles of a slice), gemm (cuBLAS multiplies by Khatri-Rao products in memory), fused (by "
     "one that is formed beside it), fused_tf32 (of f32, in pairs of TensorFloat-32: about 6 digits), auto (fused, or "
     "of f64 gemm where it is predicted to be faster)"},
    {"tensor", "dense_tile_width", OptionType::i64, "0", 0, huge, "",
     "indices of each other mode that a tile of dense_kernel = tile has, cut to the mode's length; 0: as many as keep "
     "a tile's factor rows in near memory"},

    {"tensor", "borrow", OptionType::i64, "0", 0, 1, "",
     "1: a dense tensor works on the caller's array where it lies, which stays as it is until the tensor ends; 0: on a "
     "copy of its own"},

    {"plan", "read_rate", OptionType::f64, "0", 0, largest, "",
     "bytes a second that a plan's times assume memory to give; 0: measured"},
    {"plan", "operation_rate", OptionType::f64, "0", 0, largest, "",
     "floating-point operations a second that a plan's times assume; 0: measured"},
    {"plan", "link_rate", OptionType::f64, "0", 0, largest, "",
     "bytes a second that a plan's times assume a GPU to receive from others, or a process to send while it receives "
     "as "
     "many; 0: measured between GPUs, where there are two, and 1.25e10 between processes, a network of 100 Gbit/s"},
    {"plan", "link_latency", OptionType::f64, "2e-6", 0, largest, "",
     "seconds that a plan's times assume a message between processes to take"},
    {"plan", "processes", OptionType::i64, "0", 0, 65536, "",
     "how many processes a plan of a shape or a file counts with, each on a machine with the context's threads and "
     "with the memory of option memory_limit, or that of this one; 0: one"},
    {"plan", "workers", OptionType::i64, "0", 0, 65536, "",
     "how many workers a plan counts with, each on a device like the context's first, also more than there are; 0: "
     "those of the context"},

    {"read", "dialect", OptionType::str, "auto", 0, 0, "auto|frostt|parti|toolbox|genten|matrixmarket",
     "dialect of a text file; auto: found from its content"},
    {"read", "index_base", OptionType::i64, "-1", -1, 1, "",
     "smallest index of a text file, 0 or 1; -1: what the dialect and the content say"},
    {"read", "file_per_process", OptionType::i64, "0", 0, 1, "",
     "in a context that processes share 1: each reads all of a sparse file of its own, whose entries are those that it "
     "brings; \"%p\" in the path is then the process's number. 0: they read one file together"},
    {"read", "value_type", OptionType::str, "auto", 0, 0, "auto|f32|f64",
     "type that values are stored in; auto: f64 for text, a binary file's own"},

    {"read", "columns", OptionType::str, "", 0, 0, "",
     "the file is a table, and these of its columns become modes, by name or by position from 1, as in "
     "\"user,item,month\"; a column of times may go on with the fields that count, as in \"when:%Y-%m\", and with how "
     "it is written, if that is not ISO 8601, as in \"when:%d.%m.%Y>%Y-%m\"; empty: the file is no table"},
    {"read", "value", OptionType::str, "", 0, 0, "",
     "column of a table that holds the values, by name or by position from 1; empty: each line counts 1"},
    {"read", "header", OptionType::str, "auto", 0, 0, "auto|yes|no",
     "whether a table's first line names its columns; auto: if columns or value name one"},
    {"read", "separator", OptionType::str, "auto", 0, 0, "auto|comma|tab|semicolon|pipe",
     "what separates a table's columns; auto: the one of these that is most often in the first line"},
    {"read", "quotes", OptionType::i64, "1", 0, 1, "",
     "1: fields of a table may stand in double quotes, and hold separators, line ends and, doubled, quotes there; 0: "
     "quotes are taken as they are"},

    {"write", "file_format", OptionType::str, "auto", 0, 0, "auto|frostt|toolbox|genten|parti|binary|npy|splatt",
     "format of a file that is written; auto: by the name's ending"},

    {"cpals", "max_iters", OptionType::i64, "50", 1, huge, "", "iterations at most, those before a resume included"},
    {"cpals", "tol", OptionType::f64, "1e-4", 0, largest, "", "stop when the fit changes by less than this"},
    {"cpals", "max_seconds", OptionType::f64, "0", 0, largest, "",
     "stop after the iteration in which this much time has passed, the start included; 0: no limit"},
    {"cpals", "init", OptionType::str, "random", 0, 0, "random|nvecs",
     "start: random (uniform in [0, 1) from seed) or nvecs (leading left singular vectors of each unfolding)"},
    {"cpals", "seed", OptionType::i64, "0", 0, huge, "", "seed of the random start"},
    {"cpals", "mode_order", OptionType::str, "", 0, 0, "",
     "order in which an iteration updates the modes, as in \"2,0,1\"; empty: 0, 1, 2, ..."},
    {"cpals", "fixed_modes", OptionType::str, "", 0, 0, "",
     "modes whose factors are not updated, as in \"0,2\"; needs a start given by the caller"},
    {"cpals", "ridge", OptionType::f64, "0", 0, largest, "",
     "added to the diagonal of each normal-equation matrix (Tikhonov penalty)"},
    {"cpals", "solve", OptionType::str, "normal", 0, 0, "normal|qr",
     "how a factor is updated: normal equations, or QR decompositions where these lose digits, at R^(N-2) times the "
     "cost"},
    {"cpals", "arrange", OptionType::i64, "1", 0, 1, "",
     "1: normalize the columns of the result and order components by descending weight; 0: leave as computed"},
    {"cpals", "fixsigns", OptionType::i64, "1", 0, 1, "",
     "1: turn signs in pairs so that columns' largest entries are positive; 0: leave as computed"},
    {"cpals", "model", OptionType::str, "replicated", 0, 0, "replicated|distributed",
     "where processes share the tensor: each gets the whole model, or only its block of each factor's rows"},
    {"cpals", "deterministic", OptionType::i64, "0", 0, 1, "",
     "1: bitwise the same result for any number of workers and threads on a device, at some cost"},
    {"cpals", "exact_residual", OptionType::str, "auto", 0, 0, "auto|never|always",
     "compute the residual entry by entry: auto, when the quick formula has lost its digits"},
    {"cpals", "breakdown", OptionType::i64, "0", 0, 1, "",
     "1: measure what each worker's time goes to (compute, copies between host and device, exchange, waiting for "
     "others), at some cost; the report has it"},
    {"cpals", "overlap", OptionType::str, "auto", 0, 0, "auto|on|off",
     "whether several GPUs of a process exchange a factor's rows in chunks while the next rows are computed: on, off, "
     "auto (where chunks are long enough); results are the same bits"},
    {"cpals", "checkpoint", OptionType::str, "", 0, 0, "", "file to which the run's state is written; empty: none"},
    {"cpals", "checkpoint_iters", OptionType::i64, "10", 0, huge, "",
     "write the checkpoint every so many iterations; 0: not by count"},
    {"cpals", "checkpoint_seconds", OptionType::f64, "0", 0, largest, "",
     "write the checkpoint when so many seconds have passed since the last; 0: not by time"},
    {"cpals", "resume", OptionType::str, "", 0, 0, "",
     "checkpoint file to go on from; the run continues bit for bit as if it had not stopped"},

    {"report", "report_title", OptionType::str, "", 0, 0, "", "heading of a report's page; empty: says the dims"},
    {"report", "report_command", OptionType::str, "", 0, 0, "",
     "what a report's page shows as the way to repeat the run"},
    {"report", "mode_names", OptionType::str, "", 0, 0, "",
     "names of the modes on a report's page, as in \"user,item,month\"; empty: mode 0, mode 1, ..."},
    {"report", "line_modes", OptionType::str, "auto", 0, 0, "",
     "modes whose rows lie along an axis, as time and space do, and are drawn as lines on a report's page, as in "
     "\"0,2\"; none; auto: those with dates in order as names, or without names and with neighbouring rows alike"},
};

std::string_view type_name(OptionType t) { return t == OptionType::i64 ? "i64" : t == OptionType::f64 ? "f64" : "str"; }

std::string number_text(double v) { return v == largest ? "1.7976931348623157e308" : fmt::format("{}", v); }

std::string expected(const OptionRow &row) {
  if (row.type == OptionType::str)
    return row.choices.empty() ? "text" : fmt::format("one of {}", row.choices);
  return fmt::format("a {} number in [{}, {}]", row.type == OptionType::i64 ? "whole" : "real",
                     number_text(row.smallest), number_text(row.largest));
}

template <class T> [[noreturn]] void refuse(const OptionRow &row, const T &came) {
  throw_error(Status::option_range, "option '{}' = {}: expected {}", row.name, came, expected(row));
}

std::optional<i64> parse_integer(std::string_view s) {
  i64 v = 0;
  const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), v);
  if (error != std::errc{} || end != s.data() + s.size())
    return std::nullopt;
  return v;
}

std::optional<double> parse_real(std::string_view s) {
  double v = 0;
  const auto [end, error] = fast_float::from_chars(s.data(), s.data() + s.size(), v);
  if (error != std::errc{} || end != s.data() + s.size())
    return std::nullopt;
  return v;
}

/// The place of a word among choices.
std::optional<std::size_t> place_of(std::string_view text, std::string_view choices) noexcept {
  for (std::size_t place = 0; !choices.empty(); ++place)
    if (take_token(choices, '|') == text)
      return place;
  return std::nullopt;
}

} // namespace

std::span<const OptionRow> option_table() noexcept { return table; }

const OptionRow &option_row(std::string_view name) {
  std::vector<std::string_view> names;
  for (const OptionRow &row : table) {
    if (row.name == name)
      return row;
    names.push_back(row.name);
  }
  const auto near = nearest_name(name, names);
  if (near.empty())
    throw_error(Status::option_unknown, "no option '{}'; td_option_describe lists them", name);
  throw_error(Status::option_unknown, "no option '{}'; did you mean '{}'?", name, near);
}

std::string_view choice_at(std::string_view option, std::size_t place) noexcept {
  for (const OptionRow &row : table) {
    if (row.name != option)
      continue;
    std::string_view choices = row.choices;
    for (; place > 0; --place)
      take_token(choices, '|');
    return take_token(choices, '|');
  }
  return {};
}

std::string describe(const OptionRow &row) {
  const bool number = row.type != OptionType::str;
  return fmt::format("{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}", row.scope, row.name, type_name(row.type), row.default_text,
                     number ? number_text(row.smallest) : "", number ? number_text(row.largest) : "", row.choices,
                     row.help);
}

void Options::set(std::string_view name, i64 v) {
  const OptionRow &row = option_row(name);
  const auto as_real = static_cast<double>(v);
  if (row.type == OptionType::str || as_real < row.smallest || as_real > row.largest)
    refuse(row, v);
  if (row.type == OptionType::f64)
    set_[std::string(name)] = as_real;
  else
    set_[std::string(name)] = v;
}

void Options::set(std::string_view name, double v) {
  const OptionRow &row = option_row(name);
  if (row.type != OptionType::f64)
    refuse(row, fmt::format("{}, a real number", v));
  if (!(v >= row.smallest && v <= row.largest))
    refuse(row, v);
  set_[std::string(name)] = v;
}

void Options::set_text(std::string_view name, std::string_view text) {
  const OptionRow &row = option_row(name);
  if (row.type == OptionType::i64) {
    const auto v = parse_integer(text);
    if (!v)
      refuse(row, fmt::format("\"{}\"", text));
    set(name, *v);
  } else if (row.type == OptionType::f64) {
    const auto v = parse_real(text);
    if (!v)
      refuse(row, fmt::format("\"{}\"", text));
    set(name, *v);
  } else {
    if (!row.choices.empty() && !place_of(text, row.choices))
      refuse(row, fmt::format("\"{}\"", text));
    set_[std::string(name)] = std::string(text);
  }
}

Options::Value Options::value(const OptionRow &row) const {
  if (const auto it = set_.find(row.name); it != set_.end())
    return it->second;
  if (row.type == OptionType::i64)
    return parse_integer(row.default_text).value();
  if (row.type == OptionType::f64)
    return parse_real(row.default_text).value();
  return std::string(row.default_text);
}

i64 Options::integer(std::string_view name) const {
  const OptionRow &row = option_row(name);
  if (row.type != OptionType::i64)
    throw_error(Status::option_range, "option '{}' holds {}, not a whole number", name, expected(row));
  return std::get<i64>(value(row));
}

double Options::real(std::string_view name) const {
  const OptionRow &row = option_row(name);
  if (row.type == OptionType::str)
    throw_error(Status::option_range, "option '{}' holds {}, not a number", name, expected(row));
  const Value v = value(row);
  return row.type == OptionType::i64 ? static_cast<double>(std::get<i64>(v)) : std::get<double>(v);
}

std::string Options::text(std::string_view name) const {
  const Value v = value(option_row(name));
  if (const auto *s = std::get_if<std::string>(&v))
    return *s;
  if (const auto *i = std::get_if<i64>(&v))
    return fmt::format("{}", *i);
  return fmt::format("{}", std::get<double>(v));
}

std::size_t Options::choice(std::string_view name) const {
  const OptionRow &row = option_row(name);
  const auto place = place_of(text(name), row.choices);
  if (!place)
    throw_error(Status::option_range, "option '{}' holds {}, not one of a few words", name, expected(row));
  return *place;
}

} // namespace td
