#include "solvers/settings.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/ranges.h>

#include "core/error.hpp"
#include "core/mode_list.hpp"
#include "core/sentence.hpp"
#include "plan/settings.hpp"

namespace td::solvers {

namespace {

std::vector<int> modes_of(const Options &options, const char *name, int order) {
  const std::string text = options.text(name);
  return parse_modes(text, order, name, text);
}

} // namespace

RunSettings::RunSettings(const Options &options)
    : max_iters(options.integer("max_iters")), tol(options.real("tol")), max_seconds(options.real("max_seconds")),
      init(options.text("init")), seed(static_cast<u64>(options.integer("seed"))),
      arrange(options.integer("arrange") != 0), fixsigns(options.integer("fixsigns") != 0),
      checkpoint_iters(options.integer("checkpoint_iters")), checkpoint_seconds(options.real("checkpoint_seconds")) {
  const plan::SolverSettings shared(options);
  nvecs = shared.nvecs;
  deterministic = shared.deterministic;
  const std::string exact = options.text("exact_residual");
  exact_residual = exact == "always"  ? ExactResidual::always
                   : exact == "never" ? ExactResidual::never
                                      : ExactResidual::automatic;
}

std::string RunSettings::path() const {
  constexpr std::string_view exact[] = {"auto", "never", "always"};
  return fmt::format("deterministic={}\nexact_residual={}", deterministic ? 1 : 0,
                     exact[static_cast<std::size_t>(exact_residual)]);
}

CpalsSettings::CpalsSettings(const Options &options, int order)
    : mode_order(modes_of(options, "mode_order", order)), fixed_modes(modes_of(options, "fixed_modes", order)),
      ridge(options.real("ridge")), qr(plan::SolverSettings(options).qr) {
  if (mode_order.empty()) {
    mode_order.resize(static_cast<std::size_t>(order));
    std::iota(mode_order.begin(), mode_order.end(), 0);
  }
  if (mode_order.size() != static_cast<std::size_t>(order))
    throw_error(Status::option_range, "option 'mode_order' = \"{}\": {}; expected each of 0 .. {} once",
                options.text("mode_order"), count_text(static_cast<i64>(mode_order.size()), "mode", "modes"),
                order - 1);
  std::sort(fixed_modes.begin(), fixed_modes.end());
  std::copy_if(mode_order.begin(), mode_order.end(), std::back_inserter(updated_modes),
               [&](int m) { return !std::binary_search(fixed_modes.begin(), fixed_modes.end(), m); });
  if (updated_modes.empty())
    throw_error(Status::option_range, "option 'fixed_modes' = \"{}\": all modes; expected at least one to be updated",
                options.text("fixed_modes"));
}

std::string CpalsSettings::path() const {
  return fmt::format("mode_order={}\nfixed_modes={}\nridge={}\nsolve={}", fmt::join(mode_order, ","),
                     fmt::join(fixed_modes, ","), ridge, qr ? "qr" : "normal");
}

void check_same_path(const std::string &checkpoint, const std::string &run) {
  std::string_view theirs = checkpoint;
  std::string_view ours = run;
  while (!theirs.empty() || !ours.empty()) {
    const std::string_view their_line = take_token(theirs, '\n');
    const std::string_view our_line = take_token(ours, '\n');
    if (their_line != our_line)
      throw_error(Status::argument, "resume: the checkpoint was made with {}, this run has {}; expected the same",
                  their_line, our_line);
  }
}

} // namespace td::solvers
