#include "tensor/resident_form.hpp"

#include <algorithm>

#include "tensor/spans.hpp"

namespace td::tensor::detail {

ByteRange byte_range(const FormArray &array, Range entries) {
  const i64 begin = entries.begin * array.each / alignment * alignment;
  return {begin, entries.end * array.each - begin};
}

i64 ResidentForm::entry_bytes() const noexcept { return whole ? whole_bytes : held().size() * each; }

i64 longest_of(const std::vector<Range> &spans) noexcept {
  i64 most = 0;
  for (const Range &span : spans)
    most = std::max(most, span.size());
  return most;
}

Range ResidentForm::held() const noexcept {
  return parts.empty() ? Range{} : Range{spans.front().begin, spans[parts.size() - 1].end};
}

std::size_t ResidentForm::part_with(i64 entry) const noexcept {
  const auto next =
      std::upper_bound(spans.begin(), spans.end(), entry, [](i64 k, const Range &span) { return k < span.begin; });
  return static_cast<std::size_t>(next - spans.begin()) - 1;
}

bool ResidentForm::holds(Range entries) const noexcept {
  const Range there = held();
  return whole || (there.begin <= entries.begin && entries.begin < there.end &&
                   entries.end <= spans[part_with(entries.begin)].end);
}

bool lists_are_away(const kernels::TensorView &host) {
  const auto *sorted = std::get_if<kernels::SortedView>(&host);
  return sorted != nullptr && sorted->nnz > 0 && sorted->row_begin == nullptr;
}

void set_rows_there(FormView &x, const kernels::TensorView &host, Range entries) {
  if (const auto *sorted = std::get_if<kernels::SortedView>(&host); sorted != nullptr && !lists_are_away(host))
    x.set_rows_there(rows_with(*sorted, entries));
}

} // namespace td::tensor::detail
