// td convert: from one file format to another.
#include <memory>
#include <optional>
#include <type_traits>

#include <fmt/format.h>

#include "commands.hpp"
#include "components.hpp"
#include "entry_arrays.hpp"
#include "names.hpp"
#include "output.hpp"
#include "tensor_facts.hpp"
#include "trial.hpp"

namespace cli {

namespace {

struct ConvertFlags {
  std::string in, out, as = "same";
  bool ktensor = false;
  WorkFlags work;
};

template <class Value> constexpr td_type type_of = std::is_same_v<Value, float> ? TD_F32 : TD_F64;

template <class Value> std::vector<Value> elements(const td_tensor *x) {
  auto values = dense_array<Value>(dims_of(x));
  check(td_tensor_get_dense(x, nullptr, type_of<Value>, values.data()));
  return values;
}

template <class Value> Tensor dense_copy(td_context *context, const td_tensor *x, const td_options *options) {
  const auto d = dims_of(x);
  const auto values = elements<Value>(x);
  return make<Tensor>(td_tensor_create_dense, context, static_cast<std::int32_t>(d.size()), d.data(), nullptr,
                      type_of<Value>, values.data(), TD_HOST, options);
}

/// The elements that are not zero.
template <class Value> Tensor sparse_copy(td_context *context, const td_tensor *x, const td_options *options) {
  const auto d = dims_of(x);
  const auto all = elements<Value>(x);
  Coordinates<std::int64_t> at(d.size());
  std::vector<Value> values;
  for (std::size_t k = 0; k < all.size(); ++k) {
    if (all[k] == 0)
      continue;
    values.push_back(all[k]);
    auto rest = static_cast<std::int64_t>(k);
    for (std::size_t m = 0; m < d.size(); ++m) {
      at.modes[m].push_back(rest % d[m]);
      rest /= d[m];
    }
  }
  return make<Tensor>(td_tensor_create, context, static_cast<std::int32_t>(d.size()), d.data(),
                      static_cast<std::int64_t>(values.size()), TD_I64, at.read().data(), 0, type_of<Value>,
                      values.data(), TD_HOST, options);
}

/// A dense tensor of a sparse one, or a sparse one of a dense one, of the same type and with the same names.
Tensor other_kind(td_context *context, const td_tensor *x, bool sparse, const td_options *options) {
  const auto copy = [&]<class Value>(Value) {
    return sparse ? dense_copy<Value>(context, x, options) : sparse_copy<Value>(context, x, options);
  };
  Tensor made = get<td_type>(td_tensor_type, x) == TD_F32 ? copy(0.0F) : copy(0.0);
  copy_names(x, made);
  return made;
}

/// Fails as check() does. A hint stands behind a sentence that has certain words: by which flag it is done.
void check_or_hint(td_status status, std::string_view words, std::string_view hint) {
  if (status < 0 && last_error().find(words) != std::string::npos)
    throw Failure(exit_code(status), fmt::format("{}; {}", last_error(), hint));
  check(status);
}

Tensor read(td_context *context, const ConvertFlags &flags, const td_options *options) {
  Tensor x;
  check_or_hint(td_tensor_read(context, flags.in.c_str(), options, x.out()), " ktensor, expected a tensor",
                "or --ktensor, which converts one");
  return x;
}

int convert_ktensor(const ConvertFlags &flags, td_context *context, const td_options *options) {
  const Ktensor model = make<Ktensor>(td_ktensor_read, context, flags.in.c_str());
  check(td_ktensor_write(model, flags.out.c_str(), options));
  const auto rank = weights_of(model).size();
  if (flags.work.json)
    print_json(Json({{"file", flags.out}, {"ktensor", {{"dims", dims_of(model.get())}, {"rank", rank}}}}));
  else if (!flags.work.quiet)
    fmt::print("wrote {}: a ktensor of rank {}{}\n", shown(flags.out), rank,
               has_labels(model) ? lost_names(flags.out, flags.work.table) : "");
  return exit_ok;
}

int run_convert(const ConvertFlags &flags) {
  refuse_overwriting({flags.in}, {flags.out});
  const Options options = flags.work.table.options();
  const Context context = flags.work.context();
  if (flags.ktensor)
    return convert_ktensor(flags, context, options);
  std::optional<Failure> failure = try_tensor(flags.out, flags.as != "dense", options);
  if (failure && flags.as == "same") // which of both the file holds, reading says
    failure = try_tensor(flags.out, false, options);
  require(failure);
  Tensor x = read(context, flags, options);
  bool sparse = get<std::int64_t>(td_tensor_get_i64, x, "sparse") != 0;
  if (!flags.work.quiet && !flags.work.json)
    fmt::print("read {}: {}\n", shown(flags.in), in_flags(text(td_tensor_get_str, x, "source")));
  if (flags.as != "same" && flags.as != (sparse ? "sparse" : "dense")) {
    x = other_kind(context, x, sparse, options);
    sparse = !sparse;
  }
  check_or_hint(td_tensor_write(x, flags.out.c_str(), options), " cannot hold ",
                sparse ? "or --as dense, which stores all elements"
                       : "or --as sparse, which stores the elements that are not 0");
  if (flags.work.json)
    print_json(Json({{"file", flags.out}, {"tensor", tensor_facts(x)}}));
  else if (!flags.work.quiet)
    fmt::print("wrote {}: {}{}\n", shown(flags.out), text(td_tensor_describe, x),
               has_names(x) ? lost_names(flags.out, flags.work.table) : "");
  return exit_ok;
}

} // namespace

Command add_convert(CLI::App &td) {
  auto flags = std::make_shared<ConvertFlags>();
  CLI::App *app = td.add_subcommand("convert", "rewrite a tensor or a ktensor in another file format");
  app->add_option("in", flags->in, "file to read")->required();
  app->add_option("out", flags->out, "file to write: .tns, .txt, .tdb, .npy, also .tns.gz, .txt.gz")->required();
  app->add_option("--as", flags->as, "same, sparse (drops zeros) or dense [same]")
      ->check(CLI::IsMember({"same", "sparse", "dense"}));
  app->add_flag("--ktensor", flags->ktensor, "the file holds a ktensor");
  flags->work.add(*app, {"read", "write", "tensor", "context"});
  return {app, [flags] { return run_convert(*flags); }};
}

} // namespace cli
