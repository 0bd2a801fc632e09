#include "tensor/dense_blocks.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/ranges.h>

#include "core/checked.hpp"
#include "core/parallel.hpp"
#include "core/sentence.hpp"
#include "core/strides.hpp"
#include "formats/duplicates.hpp"

namespace td::tensor {

i64 elements_of(const Box &box) {
  i64 count = 1;
  for (const Range &range : box)
    count *= std::max<i64>(range.size(), 0);
  return count;
}

namespace {

constexpr i64 grain = 256; // runs of elements along the first mode

Box common(const Box &a, const Box &b) {
  Box both;
  for (std::size_t m = 0; m < a.size(); ++m)
    both.push_back({std::max(a[m].begin, b[m].begin), std::min(a[m].end, b[m].end)});
  return both;
}

std::vector<i64> first_of(const Box &box) {
  std::vector<i64> at;
  for (const Range &range : box)
    at.push_back(range.begin);
  return at;
}

void bisect(const Box &box, int first, int count, int whole, std::vector<Box> &boxes) {
  if (count == 1) {
    boxes[static_cast<std::size_t>(first)] = box;
    return;
  }
  std::size_t longest = whole == 0 ? 1 : 0;
  for (std::size_t m = 0; m < box.size(); ++m)
    if (static_cast<int>(m) != whole && box[m].size() >= box[longest].size())
      longest = m;
  const int half = count / 2;
  Box left = box, right = box;
  left[longest].end = right[longest].begin = part_of(box[longest], half, count).begin;
  bisect(left, first, half, whole, boxes);
  bisect(right, first + half, count - half, whole, boxes);
}

Box box_of(const DenseBlock &block) {
  Box box;
  for (std::size_t m = 0; m < block.offset.size(); ++m)
    box.push_back({block.offset[m], block.offset[m] + block.elements.dims[m]});
  return box;
}

void require_within(std::span<const i64> dims, const DenseBlock &block) {
  for (std::size_t m = 0; m < dims.size(); ++m) {
    const i64 begin = block.offset[m], size = block.elements.dims[m];
    if (size < 0)
      throw_error(Status::shape, "mode {}: a block of dim {}, expected 0 or more", m, size);
    if (begin < 0 || begin > dims[m] - size)
      throw_error(Status::shape, "mode {}: a block of dim {} at offset {}, expected it within the tensor's dim {}", m,
                  size, begin, dims[m]);
  }
}

/// All processes get the blocks of all.
std::vector<Box> gather(Processes &processes, const Box &mine) {
  std::vector<i64> numbers;
  for (const Range &range : mine)
    numbers.insert(numbers.end(), {range.begin, range.end});
  const std::vector<i64> all = processes.all_gather(numbers);
  std::vector<Box> boxes;
  for (std::size_t at = 0; at < all.size();) {
    Box box;
    for (std::size_t m = 0; m < mine.size(); ++m, at += 2)
      box.push_back({all[at], all[at + 1]});
    boxes.push_back(std::move(box));
  }
  return boxes;
}

/// Blocks that share no element and have as many as the array have each of its elements.
void require_partition(std::span<const i64> dims, const std::vector<Box> &blocks, const Processes &processes) {
  i64 there = 0;
  for (std::size_t p = 0; p < blocks.size(); ++p)
    for (std::size_t q = 0; q < p; ++q)
      if (const Box both = common(blocks[q], blocks[p]); elements_of(both) > 0)
        throw_error(Status::shape, "the blocks of processes {} and {} both have element {}; expected each in one block",
                    processes.process_of(static_cast<int>(q)), processes.process_of(static_cast<int>(p)),
                    formats::coordinate_text(first_of(both), 0));
  for (const Box &block : blocks)
    there += elements_of(block);
  if (const i64 all = element_count(dims); there != all)
    throw_error(Status::shape, "the blocks of {} have {} of the {} elements of a tensor of {}; expected all",
                count_text(processes.processes(), "process", "processes"), there, all, fmt::join(dims, " x "));
}

/// Elements go from the blocks of processes to their boxes. Both are known to all, so that what two processes have to
/// send each other is known to both.
class Journey {
public:
  Journey(Processes &processes, const DenseArrayView &array, std::vector<Box> blocks, std::vector<Box> boxes,
          int threads)
      : processes_(processes), array_(array), threads_(threads), blocks_(std::move(blocks)), boxes_(std::move(boxes)) {
    const i64 size = size_of(array.value_type);
    for (std::size_t p = 0; p < boxes_.size(); ++p) {
      leaving_.push_back(size * elements_of(common(block(), boxes_[p])));
      arriving_.push_back(size * elements_of(common(box(), blocks_[p])));
    }
  }

  const Box &box() const { return boxes_[static_cast<std::size_t>(processes_.rank())]; }

  void require_room(const MemoryBudget &budget) const {
    const auto sum = [](const std::vector<i64> &bytes) { return std::accumulate(bytes.begin(), bytes.end(), i64{0}); };
    MemoryNeed need;
    need.add("elements that leave", static_cast<double>(sum(leaving_)));
    need.add("elements that arrive, twice while they are put in place", 2 * static_cast<double>(sum(arriving_)));
    budget.require("a dense tensor of which " + count_text(elements_of(box()), "element", "elements") + " come here",
                   need);
  }

  /// The elements of the box, from one process after the other.
  Buffer<std::byte> run() const {
    Buffer<std::byte> received(std::accumulate(arriving_.begin(), arriving_.end(), i64{0}), "elements on their way");
    const Buffer<std::byte> sent = pack();
    processes_.all_to_all(sent.data(), leaving_, received.data(), arriving_);
    return received;
  }

  /// Row k of a box in mode m has number numbers[m][k].
  template <class T>
  void put(const Buffer<std::byte> &received, const std::vector<std::vector<i64>> &numbers, T *to) const {
    const T *from = reinterpret_cast<const T *>(received.data());
    for (const Box &theirs : blocks_) {
      const Box part = common(box(), theirs);
      const i64 count = elements_of(part);
      if (count == 0)
        continue;
      const i64 length = part[0].size();
      parallel_ranges(threads_, count / length, grain, [&](Range runs) {
        for (i64 run = runs.begin; run < runs.end; ++run) {
          i64 offset = 0, stride = std::ssize(numbers[0]), rest = run;
          for (std::size_t m = 1; m < part.size(); ++m) {
            const i64 index = part[m].begin - box()[m].begin + rest % part[m].size();
            offset += numbers[m][static_cast<std::size_t>(index)] * stride;
            stride *= std::ssize(numbers[m]);
            rest /= part[m].size();
          }
          const i64 *number = numbers[0].data() + (part[0].begin - box()[0].begin);
          for (i64 i = 0; i < length; ++i)
            to[offset + number[i]] = from[run * length + i];
        }
      });
      from += count;
    }
  }

private:
  const Box &block() const { return blocks_[static_cast<std::size_t>(processes_.rank())]; }

  Buffer<std::byte> pack() const {
    const std::vector<i64> packed = first_fastest_strides(array_.dims);
    const std::span<const i64> strides = array_.strides.empty() ? packed : array_.strides;
    Buffer<std::byte> sent(std::accumulate(leaving_.begin(), leaving_.end(), i64{0}), "elements on their way");
    std::byte *to = sent.data();
    for (std::size_t p = 0; p < boxes_.size(); ++p) {
      if (leaving_[p] == 0)
        continue;
      const Box part = common(block(), boxes_[p]);
      std::vector<i64> dims;
      i64 offset = 0;
      for (std::size_t m = 0; m < part.size(); ++m) {
        dims.push_back(part[m].size());
        offset += (part[m].begin - block()[m].begin) * strides[m];
      }
      const auto *first = static_cast<const std::byte *>(array_.values) + offset * size_of(array_.value_type);
      formats::copy_elements({dims, strides, array_.value_type, first}, to, threads_);
      require_finite(part, array_.value_type, to);
      to += leaving_[p];
    }
    return sent;
  }

  void require_finite(const Box &part, ValueType type, const std::byte *elements) const {
    dispatch(type, [&](auto zero) {
      const auto *values = reinterpret_cast<const decltype(zero) *>(elements);
      i64 k = formats::first_found(elements_of(part), threads_, [&](Range r) {
        return formats::first_bad(r, [&](i64 i) { return !std::isfinite(values[i]); });
      });
      if (k < 0)
        return;
      const auto value = static_cast<double>(values[k]);
      std::vector<i64> at;
      for (const Range &range : part) {
        at.push_back(range.begin + k % range.size());
        k /= range.size();
      }
      throw_error(Status::argument, "element {} (0-based): value {}, expected a finite number",
                  formats::coordinate_text(at, 0), value);
    });
  }

  Processes &processes_;
  const DenseArrayView &array_;
  int threads_;
  std::vector<Box> blocks_, boxes_;
  std::vector<i64> leaving_, arriving_; // bytes, to and from each process
};

} // namespace

std::vector<Box> cut_into_boxes(std::span<const i64> dims, int processes, int whole_mode) {
  Box whole;
  for (const i64 dim : dims)
    whole.push_back({0, dim});
  std::vector<Box> boxes(static_cast<std::size_t>(processes));
  bisect(whole, 0, processes, whole_mode, boxes);
  return boxes;
}

ArrivedBox distribute(std::shared_ptr<Processes> processes, std::span<const i64> dims, const DenseBlock &given,
                      const MemoryBudget &budget, int threads) {
  require_within(dims, given);
  std::vector<Box> blocks = gather(*processes, box_of(given));
  require_partition(dims, blocks, *processes);
  const Journey journey(*processes, given.elements, std::move(blocks), cut_into_boxes(dims, processes->size()),
                        threads);
  journey.require_room(budget);
  const Buffer<std::byte> received = journey.run();
  ArrivedBox arrived;
  arrived.empty = elements_of(journey.box()) == 0;
  DistributionBuilder builder(std::move(processes), dims);
  std::vector<std::vector<i64>> numbers;
  for (const Range &range : journey.box()) {
    std::vector<i64> rows(arrived.empty ? 1 : static_cast<std::size_t>(range.size()), 0);
    std::iota(rows.begin(), rows.end(), arrived.empty ? 0 : range.begin);
    numbers.push_back(builder.add(rows));
  }
  arrived.distribution = builder.finish();
  const std::span<const i64> held = arrived.distribution->held();
  arrived.elements.dims.assign(held.begin(), held.end());
  arrived.elements.values = ValueBuffer(given.elements.value_type, element_count(held), "a dense tensor");
  dispatch(given.elements.value_type, [&](auto zero) {
    using T = decltype(zero);
    T *const to = arrived.elements.values.as<T>();
    if (arrived.empty)
      to[0] = 0;
    else
      journey.put(received, numbers, to);
  });
  return arrived;
}

formats::Dense bring(Processes &processes, const DenseArrayView &mine, const std::vector<Box> &from,
                     const std::vector<Box> &to, const MemoryBudget &budget, int threads) {
  const Journey journey(processes, mine, from, to, threads);
  journey.require_room(budget);
  const Buffer<std::byte> received = journey.run();
  formats::Dense elements;
  std::vector<std::vector<i64>> numbers;
  for (const Range &range : journey.box()) {
    elements.dims.push_back(range.size());
    numbers.emplace_back(static_cast<std::size_t>(range.size()));
    std::iota(numbers.back().begin(), numbers.back().end(), i64{0});
  }
  elements.values = ValueBuffer(mine.value_type, elements_of(journey.box()), "elements of a dense tensor");
  dispatch(mine.value_type, [&](auto zero) { journey.put(received, numbers, elements.values.as<decltype(zero)>()); });
  return elements;
}

} // namespace td::tensor
