// td convert: from one file format to another.
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "commands.hpp"
#include "entry_arrays.hpp"
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

std::vector<double> elements(const td_tensor *x) {
  std::vector<double> values(dense_size(dims_of(x)));
  check(td_tensor_get_dense(x, nullptr, TD_F64, values.data()));
  return values;
}

Tensor dense_copy(td_context *context, const td_tensor *x, const td_options *options) {
  const auto d = dims_of(x);
  const auto values = elements(x);
  return make<Tensor>(td_tensor_create_dense, context, static_cast<std::int32_t>(d.size()), d.data(), nullptr, TD_F64,
                      values.data(), TD_HOST, options);
}

/// The elements that are not zero.
Tensor sparse_copy(td_context *context, const td_tensor *x, const td_options *options) {
  const auto d = dims_of(x);
  const auto all = elements(x);
  Coordinates<std::int64_t> at(d.size());
  std::vector<double> values;
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
                      static_cast<std::int64_t>(values.size()), TD_I64, at.read().data(), 0, TD_F64, values.data(),
                      TD_HOST, options);
}

/// Says by which flag a file of the other kind may be written.
void write(const Tensor &x, bool sparse, const ConvertFlags &flags, const td_options *options) {
  const td_status status = td_tensor_write(x, flags.out.c_str(), options);
  if (status == TD_ERR_UNSUPPORTED && last_error().find(" cannot hold ") != std::string::npos)
    throw Failure(exit_input, fmt::format("{}; or {}", last_error(),
                                          sparse ? "--as dense, which stores all elements"
                                                 : "--as sparse, which stores the elements that are not 0"));
  check(status);
}

int run_convert(const ConvertFlags &flags) {
  refuse_overwriting({flags.in}, {flags.out});
  const Options options = flags.work.table.options();
  const Context context = flags.work.context();
  if (flags.ktensor) {
    const Ktensor model = make<Ktensor>(td_ktensor_read, context, flags.in.c_str());
    check(td_ktensor_write(model, flags.out.c_str(), options));
    if (!flags.work.quiet)
      fmt::print("wrote {}: a ktensor of rank {}\n", shown(flags.out), weights_of(model).size());
    return exit_ok;
  }
  std::optional<Failure> failure = try_tensor(flags.out, flags.as != "dense", options);
  if (failure && flags.as == "same") // which of both the file holds, reading says
    failure = try_tensor(flags.out, false, options);
  require(failure);
  Tensor x = make<Tensor>(td_tensor_read, context, flags.in.c_str(), options);
  const bool sparse = get<std::int64_t>(td_tensor_get_i64, x, "sparse") != 0;
  if (!flags.work.quiet && !flags.work.json)
    fmt::print("read {}: {}\n", shown(flags.in), in_flags(text(td_tensor_get_str, x, "source")));
  if (flags.as == "dense" && sparse)
    x = dense_copy(context, x, options);
  if (flags.as == "sparse" && !sparse)
    x = sparse_copy(context, x, options);
  write(x, flags.as == "same" ? sparse : flags.as == "sparse", flags, options);
  if (flags.work.json)
    print_json(Json({{"file", flags.out}, {"tensor", tensor_facts(x)}}));
  else if (!flags.work.quiet)
    fmt::print("wrote {}: {}\n", shown(flags.out), text(td_tensor_describe, x));
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
