#include "solvers/cpals.hpp"

#include <algorithm>
#include <span>

#include "core/error.hpp"
#include "solvers/magnitude.hpp"
#include "solvers/sweep.hpp"

namespace td::solvers {

namespace {

bool any_nonzero(ConstMatrix a) {
  return dispatch(a.type, [&](auto zero) {
    const auto *begin = a.row<decltype(zero)>(0);
    return a.rows > 0 && std::any_of(begin, begin + a.rows * a.cols, [](auto v) { return v != 0; });
  });
}

class Cpals final : public Method {
public:
  explicit Cpals(const RunRequest &request)
      : settings_(request.options, request.tensor->order()), fixed_modes_(request.options.text("fixed_modes")) {}

  std::string path() const override { return settings_.path(); }

  i64 solves() const override { return static_cast<i64>(settings_.updated_modes.size()); }

  void check_start(const Ktensor *start, const std::function<bool(bool)> &any) const override {
    if (start == nullptr) {
      if (!settings_.fixed_modes.empty())
        throw_error(Status::argument,
                    "option 'fixed_modes' = \"{}\", counting from 0, without a start: expected init or resume",
                    fixed_modes_);
      return;
    }
    for (int m = 0; m < start->order(); ++m) {
      if (m != settings_.updated_modes.front() && !any(any_nonzero(start->factor(m))))
        throw_error(Status::argument,
                    "init: factor {} is zero in every entry and is used before it is computed; expected at least one "
                    "nonzero",
                    m);
    }
  }

  // The first iteration divides what it computes from these columns by its length, and overwrites them.
  void scale_start(Ktensor &start, ValueType type, const Meeting &others) const override {
    bring_into_range(start, std::span(settings_.updated_modes).subspan(1), type, others);
  }

  std::unique_ptr<Iteration> begin(const Problem &problem, kernels::Backend &backend,
                                   Communicator &others) const override {
    return std::make_unique<Sweep>(problem, settings_, backend, others);
  }

private:
  CpalsSettings settings_;
  std::string fixed_modes_; // as given
};

} // namespace

RunResult cpals(const RunRequest &request) {
  switch (plan::SolverSettings(request.options).solve) {
  case plan::Solve::normal:
  case plan::Solve::qr:
    return run(request, Cpals(request));
  }
  throw_error(Status::internal, "option 'solve' = {} without a method", request.options.text("solve"));
}

} // namespace td::solvers
