// Ktensors of which each process holds one block of every factor's rows. All processes call these together.
#pragma once

#include "comm/processes.hpp"
#include "core/ktensor.hpp"

namespace td::tensor {

/// The block that a process holds; of several workers of one its first, and the others none.
inline RowBlock block_of(const Processes &processes, int rank) noexcept {
  return {processes.is_first(rank) ? processes.process_of(rank) : processes.processes(), processes.processes()};
}
inline RowBlock block_of(const Processes &processes) noexcept { return block_of(processes, processes.rank()); }

/// How those who hold blocks meet; `processes` must live as long.
Meeting meeting_of(Processes &processes);

/// The rows of each process's block := those of a whole matrix on process 0; the others' is not looked at.
void deal_rows(Processes &processes, ConstMatrix whole, Matrix block);
/// The block of a ktensor that process 0 has all rows of; what the others give counts for its shape alone.
Ktensor deal(Processes &processes, const Ktensor &whole);

/// A matrix of which each process has the rows of its block: afterwards each has all.
void share_rows(Processes &processes, Matrix all);
/// All rows of a ktensor, on all processes.
Ktensor gather(Processes &processes, const Ktensor &block, const MemoryBudget &budget = {});

/// Copies the block of one process into `to`, on process 0, which has room for the largest.
void bring_rows(Processes &processes, ConstMatrix block, int from, Matrix to);

} // namespace td::tensor
