// A selection is what one worker has of a stored form: some of its entries, with lists of the rows or blocks that they
// lie in.
#pragma once

#include <algorithm>
#include <vector>

#include "core/buffer.hpp"
#include "kernels/views.hpp"

namespace td::tensor {

/// Ranges of something that is numbered, chosen in ascending order, and numbered anew without gaps.
class Chosen {
public:
  /// The range begins where the last one ended, or later.
  void add(Range more);

  i64 count() const noexcept { return count_; }
  /// Where the first range begins; 0 where nothing is chosen.
  i64 first() const noexcept { return ranges_.empty() ? 0 : ranges_.front().begin; }
  /// How many are chosen of those before `at`.
  i64 before(i64 at) const noexcept;
  /// The new numbers of what is chosen of a range.
  Range within(Range range) const noexcept { return {before(range.begin), before(range.end)}; }

  /// Calls f(range) for the ranges that have the new numbers `some`, in order.
  template <class F> void each(Range some, F &&f) const {
    for (std::size_t k = range_with(some.begin); some.begin < some.end; ++k) {
      const i64 skipped = some.begin - before_[k];
      const i64 count = std::min(ranges_[k].size() - skipped, some.size());
      f(Range{ranges_[k].begin + skipped, ranges_[k].begin + skipped + count});
      some.begin += count;
    }
  }

private:
  std::size_t range_with(i64 number) const noexcept;

  Ranges ranges_;
  std::vector<i64> before_; // [ranges] chosen before each
  i64 count_ = 0;
};

struct Selection {
  Chosen entries;
  Chosen lists; // rows of a sorted copy, or blocks of BLCO, that have some of these
  // A dense tensor, whose entries are slabs, has these:
  std::vector<i64> dims; // of these
  std::vector<i64> whole_dims;
};

/// The lists of a view of what is selected, on the host. Those of a sorted copy's rows may be missing.
struct SelectedLists {
  Buffer<i64> row_index, row_begin, tile_begin, tile_light, block_begin;
};
/// Adds the lists that are missing; those of rows only where they are asked for. `whole`: the form's view, with these.
void fill_lists(const kernels::TensorView &whole, const Selection &some, bool rows, SelectedLists &lists);

/// What is selected, as a view: with pointers to these lists; and, since the entries are nowhere one after the other,
/// with those to all entries. Valid as long as the selection and the lists.
kernels::TensorView view_of(const kernels::TensorView &whole, const Selection &some, const SelectedLists &lists);

} // namespace td::tensor
