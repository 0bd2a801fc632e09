#include "flags.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <sstream>

#include <fmt/format.h>

#include "processes.hpp"

namespace cli {

namespace {

/// Accepts numbers for which `holds` is true; the help shows `kind`.
template <class Number, class F> CLI::Validator number_check(const char *expected, const char *kind, F holds) {
  return {[expected, holds](std::string &text) {
            Number x{};
            const char *const end = text.data() + text.size();
            const auto [at, error] = std::from_chars(text.data(), end, x);
            if (error == std::errc() && at == end && holds(x))
              return std::string();
            return fmt::format("expected {}; '{}' came", expected, text);
          },
          kind};
}

} // namespace

CLI::Validator positive_integer() {
  return number_check<std::int64_t>("an integer of 1 or more", "POSITIVE", [](std::int64_t x) { return x > 0; });
}
CLI::Validator positive_number() {
  return number_check<double>("a number above 0", "POSITIVE", [](double x) { return x > 0 && x <= 1e300; });
}
CLI::Validator nonnegative_number() {
  return number_check<double>("a number of 0 or more", "NONNEGATIVE", [](double x) { return x >= 0 && x <= 1e300; });
}

std::vector<OptionRow> option_table() {
  std::vector<OptionRow> rows;
  for (std::int64_t i = 0; i < td_option_count(); ++i) {
    std::istringstream line(text(td_option_describe, i));
    OptionRow row;
    for (std::string OptionRow::*field :
         {&OptionRow::scope, &OptionRow::name, &OptionRow::type, &OptionRow::default_text, &OptionRow::smallest,
          &OptionRow::largest, &OptionRow::choices, &OptionRow::help})
      std::getline(line, row.*field, '\t');
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string flag_name(std::string_view option) {
  std::string flag = "--" + std::string(option);
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

std::string in_flags(std::string_view sentence) {
  static const std::vector<OptionRow> rows = option_table();
  constexpr std::string_view word = "option ";
  std::string out;
  while (true) {
    const std::size_t at = sentence.find(word);
    out += sentence.substr(0, at);
    if (at == std::string_view::npos)
      return out;
    std::string_view rest = sentence.substr(at + word.size());
    const bool quoted = rest.starts_with('\'');
    rest.remove_prefix(quoted ? 1 : 0);
    const std::string_view name = rest.substr(0, rest.find_first_not_of("abcdefghijklmnopqrstuvwxyz_"));
    rest.remove_prefix(name.size());
    const bool closed = !quoted || rest.starts_with('\'');
    if (closed && std::any_of(rows.begin(), rows.end(), [&](const OptionRow &row) { return row.name == name; })) {
      out += flag_name(name);
      rest.remove_prefix(quoted ? 1 : 0);
      if (rest.starts_with(" = ")) // as it is written
        rest.remove_prefix(std::string_view(" =").size());
      sentence = rest;
    } else {
      out += word;
      sentence.remove_prefix(at + word.size());
    }
  }
}

void TableFlags::add(CLI::App &app, std::initializer_list<std::string_view> scopes) {
  for (const OptionRow &row : option_table()) {
    if (std::find(scopes.begin(), scopes.end(), row.scope) == scopes.end())
      continue;
    Given &given = flags_[row.name];
    const bool number = row.type != "str";
    const std::string kind = number ? (row.type == "i64" ? "N" : "X") : (row.choices.empty() ? "TEXT" : row.choices);
    const std::string ending = row.default_text.empty() ? "" : fmt::format(" [{}]", row.default_text);
    given.flag = app.add_option(flag_name(row.name), given.value, row.help + ending)
                     ->type_name(kind)
                     ->group(fmt::format("Options of scope {}", row.scope));
  }
}

Options TableFlags::options() const {
  Options options;
  for (const auto &[name, given] : flags_)
    if (given.flag->count() > 0)
      options.set(name, given.value);
  return options;
}

Json TableFlags::given() const {
  Json out = Json::object();
  for (const auto &[name, given] : flags_)
    if (given.flag->count() > 0)
      out[name] = given.value;
  return out;
}

void WorkFlags::add(CLI::App &app, std::initializer_list<std::string_view> scopes) {
  app.add_option("--devices", devices,
                 "where to work: auto, cpu, cpu:4 (four workers), reference, cuda, cuda:0,1 [auto]");
  app.add_flag("--json", json, "print one JSON document on standard output");
  app.add_flag("--quiet", quiet, "print only results and errors");
  table.add(app, scopes);
}

namespace {
void print_warning(std::int32_t level, const char *text, void *) {
  if (level <= 1)
    std::fprintf(stderr, "td: warning: %s\n", in_flags(text).c_str());
}
} // namespace

Context WorkFlags::context() const {
  Context context;
  const Processes &processes = Processes::all();
  const td_status status = processes.shared() ? td_context_create_distributed(devices.c_str(), table.options(),
                                                                              processes.communicator(), context.out())
                                              : td_context_create(devices.c_str(), table.options(), context.out());
  if (status == TD_ERR_ARGUMENT) // a device string with no meaning is the command line's fault, not the input's
    throw Failure(exit_usage, last_error());
  check(status);
  if (!quiet && processes.first())
    check(td_context_set_log(context, print_warning, nullptr));
  return context;
}

} // namespace cli
