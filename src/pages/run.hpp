// A run that is over, shown: as a page of HTML that needs nothing besides itself, or as the data that the page draws.
#pragma once

#include <string>

#include "core/labels.hpp"
#include "core/options.hpp"
#include "plan/plan.hpp"
#include "solvers/driver.hpp"
#include "tensor/tensor.hpp"

namespace td::pages {

struct Run {
  const solvers::Report &report;
  const Ktensor &model;
  const tensor::Tensor *tensor = nullptr; // or null: not at hand any more
  const plan::Plan *plan = nullptr;       // or null
  Options options;                        // of the run, and of scope "report"
  MemoryBudget budget = {};
  Labels labels = {}; // of the modes and their rows
};

/// Writes a page (.html, .htm) or its data (.json), by the name's ending. Throws Status::shape for a model that is not
/// of the report's order and rank, or not of the tensor's dims, and Status::unsupported for another ending.
void write(const Run &run, const std::string &path);

} // namespace td::pages
