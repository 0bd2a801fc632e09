#include "solvers/settings.hpp"

#include <fmt/ranges.h>

#include "core/error.hpp"
#include "core/mode_list.hpp"

namespace td::solvers {

RunSettings::RunSettings(const Options &options)
    : max_iters(options.integer("max_iters")), tol(options.real("tol")), max_seconds(options.real("max_seconds")),
      init(options.text("init")), seed(static_cast<u64>(options.integer("seed"))),
      arrange(options.integer("arrange") != 0), fixsigns(options.integer("fixsigns") != 0),
      breakdown(options.integer("breakdown") != 0), checkpoint_iters(options.integer("checkpoint_iters")),
      checkpoint_seconds(options.real("checkpoint_seconds")) {
  const plan::SolverSettings shared(options);
  nvecs = shared.nvecs;
  deterministic = shared.deterministic;
  distributed = shared.distributed;
  overlap = shared.overlap;
  exact_residual = options.choice<ExactResidual>("exact_residual");
}

std::string RunSettings::path() const {
  return fmt::format("deterministic={}\nexact_residual={}", deterministic ? 1 : 0,
                     choice_at("exact_residual", static_cast<std::size_t>(exact_residual)));
}

CpalsSettings::CpalsSettings(const Options &options, int order)
    : UpdateOrder(options, order), ridge(options.real("ridge")), solve(plan::SolverSettings(options).solve) {}

std::string CpalsSettings::path() const {
  return fmt::format("mode_order={}\nfixed_modes={}\nridge={}\nsolve={}", fmt::join(mode_order, ","),
                     fmt::join(fixed_modes, ","), ridge, name_of(solve));
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
