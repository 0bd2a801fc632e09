// td check: what a file is taken for, and what in it a person should look at.
#include <memory>

#include <fmt/format.h>

#include "commands.hpp"
#include "output.hpp"
#include "tensor_facts.hpp"

namespace cli {

namespace {

struct CheckFlags {
  std::string file;
  bool strict = false;
  WorkFlags work;
};

std::int64_t count(const td_tensor *x, const char *key) { return get<std::int64_t>(td_tensor_get_i64, x, key); }

std::vector<std::string> suspicions(const td_tensor *x, const std::vector<Slices> &modes) {
  std::vector<std::string> out;
  if (get<std::int64_t>(td_tensor_nnz, x) == 0)
    out.push_back("there are no entries");
  else if (fact(x, "norm") == 0.0)
    out.push_back("every entry is zero");
  if (count(x, "sparse") == 0)
    return out; // zeros and empty slices mean nothing in a dense tensor
  if (const auto n = count(x, "duplicates"); n > 0)
    out.push_back(n == 1 ? "1 entry repeats the coordinates of another; they are summed"
                         : fmt::format("{} entries repeat the coordinates of others; they are summed", n));
  if (const auto n = count(x, "zeros"); n > 0)
    out.push_back(n == 1 ? "1 entry is stored but zero" : fmt::format("{} entries are stored but zero", n));
  std::size_t first_empty = 0;
  for (std::size_t m = 0; m < modes.size(); ++m) {
    first_empty += modes[m].first_is_empty ? 1 : 0;
    if (const auto empty = modes[m].dim - modes[m].nonempty; empty > 0)
      out.push_back(
          fmt::format("mode {}: {} of {} slices {} empty", m, empty, modes[m].dim, empty == 1 ? "is" : "are"));
  }
  // What a 1-based file looks like that is read with base 0.
  if (first_empty == modes.size() && get<std::int64_t>(td_tensor_nnz, x) > 0)
    out.push_back("the first slice of every mode is empty: is the index base right?");
  return out;
}

void print_check(const CheckFlags &flags, const td_tensor *x, const std::vector<std::string> &found) {
  const auto d = dims_of(x);
  fmt::print("file        {}\n", shown(flags.file));
  fmt::print("source      {}\n", in_flags(text(td_tensor_get_str, x, "source")));
  fmt::print("dims        {}\n", fmt::join(d, " x "));
  fmt::print("entries     {} ({})\n", get<std::int64_t>(td_tensor_nnz, x),
             count(x, "sparse") != 0 ? "sparse" : "dense");
  fmt::print("duplicates  {}\n", count(x, "duplicates"));
  fmt::print("zeros       {}\n", count(x, "zeros"));
  fmt::print("values      {} .. {}, sum {}\n", fact_text(x, "min"), fact_text(x, "max"), fact_text(x, "sum"));
  fmt::print("norm        {}\n", fact_text(x, "norm"));
  for (const std::string &what : found)
    fmt::print("look at     {}\n", what);
  if (found.empty())
    fmt::print("nothing suspicious\n");
}

int run_check(const CheckFlags &flags) {
  const Options options = flags.work.table.options();
  const Context context = flags.work.context();
  const Tensor x = make<Tensor>(td_tensor_read, context, flags.file.c_str(), options);
  const auto modes = slices(x);
  const auto found = suspicions(x, modes);
  if (flags.work.json) {
    Json out = {{"file", flags.file}, {"tensor", tensor_facts(x)}};
    for (const char *key : {"duplicates", "zeros", "index_bits"})
      out[key] = count(x, key);
    for (const char *key : {"min", "max", "sum"})
      out[key] = fact_json(x, key);
    out["empty_slices"] = Json::array();
    for (const Slices &s : modes)
      out["empty_slices"].push_back(s.dim - s.nonempty);
    out["suspicious"] = found;
    print_json(out);
  } else {
    print_check(flags, x, found);
  }
  return flags.strict && !found.empty() ? exit_failed : exit_ok;
}

} // namespace

Command add_check(CLI::App &td) {
  auto flags = std::make_shared<CheckFlags>();
  CLI::App *app = td.add_subcommand("check", "say what a file is taken for and what in it looks wrong");
  app->add_option("file", flags->file, "tensor: text, .tdb or .npy, also .gz")->required();
  app->add_flag("--strict", flags->strict, "exit with 1 if anything looks suspicious");
  flags->work.add(*app, {"read", "tensor", "context"});
  return {app, [flags] { return run_check(*flags); }};
}

} // namespace cli
