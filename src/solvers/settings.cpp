#include "solvers/settings.hpp"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <string_view>

#include <fmt/ranges.h>

#include "core/error.hpp"

namespace td::solvers {

namespace {

/// The next piece of text up to a separator, which is taken off the front.
std::string_view take_piece(std::string_view &text, char separator) {
  const auto end = text.find(separator);
  const std::string_view piece = text.substr(0, end);
  text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  return piece;
}

std::string_view trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t");
  return begin == std::string_view::npos ? std::string_view{}
                                         : text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

/// "2,0,1": different modes of a tensor, in the order given.
std::vector<int> parse_modes(const Options &options, const char *name, int order) {
  const std::string text = options.text(name);
  std::vector<int> modes;
  std::string_view rest = text;
  if (trimmed(rest).empty())
    return modes;
  const auto pieces = std::count(text.begin(), text.end(), ',') + 1;
  for (auto k = pieces; k > 0; --k) {
    const std::string_view piece = trimmed(take_piece(rest, ','));
    int mode = 0;
    const auto [end, error] = std::from_chars(piece.data(), piece.data() + piece.size(), mode);
    if (error != std::errc{} || end != piece.data() + piece.size() || mode < 0 || mode >= order)
      throw_error(Status::option_range, "option '{}' = \"{}\": '{}' is not a mode; expected numbers in 0 .. {}", name,
                  text, piece, order - 1);
    if (std::find(modes.begin(), modes.end(), mode) != modes.end())
      throw_error(Status::option_range, "option '{}' = \"{}\": mode {} is there twice", name, text, mode);
    modes.push_back(mode);
  }
  return modes;
}

} // namespace

Settings::Settings(const Options &options, int order)
    : max_iters(options.integer("max_iters")), tol(options.real("tol")), max_seconds(options.real("max_seconds")),
      init(options.text("init")), seed(static_cast<u64>(options.integer("seed"))),
      mode_order(parse_modes(options, "mode_order", order)), fixed_modes(parse_modes(options, "fixed_modes", order)),
      ridge(options.real("ridge")), arrange(options.integer("arrange") != 0),
      fixsigns(options.integer("fixsigns") != 0), deterministic(options.integer("deterministic") != 0),
      checkpoint_iters(options.integer("checkpoint_iters")), checkpoint_seconds(options.real("checkpoint_seconds")) {
  if (mode_order.empty()) {
    mode_order.resize(static_cast<std::size_t>(order));
    std::iota(mode_order.begin(), mode_order.end(), 0);
  }
  if (mode_order.size() != static_cast<std::size_t>(order))
    throw_error(Status::option_range, "option 'mode_order' = \"{}\": {} modes; expected each of 0 .. {} once",
                options.text("mode_order"), mode_order.size(), order - 1);
  std::sort(fixed_modes.begin(), fixed_modes.end());
  std::copy_if(mode_order.begin(), mode_order.end(), std::back_inserter(updated_modes),
               [&](int m) { return !std::binary_search(fixed_modes.begin(), fixed_modes.end(), m); });
  if (updated_modes.empty())
    throw_error(Status::option_range, "option 'fixed_modes' = \"{}\": all modes; expected at least one to be updated",
                options.text("fixed_modes"));
  const std::string exact = options.text("exact_residual");
  exact_residual = exact == "always"  ? ExactResidual::always
                   : exact == "never" ? ExactResidual::never
                                      : ExactResidual::automatic;
}

std::string Settings::path() const {
  constexpr std::string_view exact[] = {"auto", "never", "always"};
  return fmt::format("mode_order={}\nfixed_modes={}\nridge={}\ndeterministic={}\nexact_residual={}",
                     fmt::join(mode_order, ","), fmt::join(fixed_modes, ","), ridge, deterministic ? 1 : 0,
                     exact[static_cast<std::size_t>(exact_residual)]);
}

void check_same_path(const std::string &checkpoint, const std::string &run) {
  std::string_view theirs = checkpoint;
  std::string_view ours = run;
  while (!theirs.empty() || !ours.empty()) {
    const std::string_view their_line = take_piece(theirs, '\n');
    const std::string_view our_line = take_piece(ours, '\n');
    if (their_line != our_line)
      throw_error(Status::argument, "resume: the checkpoint was made with {}, this run has {}; expected the same",
                  their_line, our_line);
  }
}

} // namespace td::solvers
