#include "tensor/distribution.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>

#include "core/parallel.hpp"
#include "core/sentence.hpp"
#include "formats/marks.hpp"
#include "tensor/entry_partition.hpp"
#include "tensor/row_blocks.hpp"

namespace td::tensor {

namespace {

i64 sum_of(std::span<const i64> numbers) { return std::accumulate(numbers.begin(), numbers.end(), i64{0}); }

std::vector<i64> times(std::vector<i64> numbers, i64 factor) {
  for (i64 &n : numbers)
    n *= factor;
  return numbers;
}

/// It sends and receives as Processes::all_to_all does, lists of numbers, one process after the other.
std::vector<i64> exchange(Processes &processes, const std::vector<i64> &sent, const std::vector<i64> &counts,
                          std::vector<i64> &received_counts) {
  received_counts = processes.all_to_all(counts);
  std::vector<i64> received(static_cast<std::size_t>(sum_of(received_counts)));
  processes.all_to_all(sent.data(), times(counts, sizeof(i64)), received.data(), times(received_counts, sizeof(i64)));
  return received;
}

/// Where the entries of each process are in the order in which they go: those of process 0, process 1, ..., each in the
/// order given.
class Order {
public:
  Order(int processes, const Buffer<std::int32_t> &to, int threads) {
    const auto size = static_cast<std::size_t>(processes);
    const int parts = formats::parts_for(to.size(), threads);
    std::vector<std::vector<i64>> next(static_cast<std::size_t>(parts)); // of each part, place of its next entry
    formats::for_parts(to.size(), parts, [&](int part, Range some) {
      std::vector<i64> count(size);
      for (i64 k = some.begin; k < some.end; ++k)
        ++count[static_cast<std::size_t>(to[k])];
      next[static_cast<std::size_t>(part)] = std::move(count);
    });
    counts_.resize(size);
    i64 before = 0;
    for (std::size_t p = 0; p < size; ++p)
      for (std::vector<i64> &some : next) {
        counts_[p] += some[p];
        before += std::exchange(some[p], before);
      }
    place_ = Buffer<i64>(to.size(), "the order in which entries go");
    formats::for_parts(to.size(), parts, [&](int part, Range some) {
      std::vector<i64> &at = next[static_cast<std::size_t>(part)];
      for (i64 k = some.begin; k < some.end; ++k)
        place_[at[static_cast<std::size_t>(to[k])]++] = k;
    });
  }

  /// How many go to each process.
  const std::vector<i64> &counts() const noexcept { return counts_; }
  /// The entry at each place.
  std::span<const i64> entries() const noexcept { return place_.span(); }

private:
  std::vector<i64> counts_;
  Buffer<i64> place_;
};

template <class T, class Get> void fill(T *to, i64 count, int threads, Get &&get) {
  parallel_ranges(threads, count, formats::grain, [&](Range some) {
    for (i64 k = some.begin; k < some.end; ++k)
      to[k] = get(k);
  });
}

template <class Index>
void take_indices(const EntriesView &e, int mode, std::span<const i64> some, Index *to, int threads) {
  dispatch(e.index_type, [&](auto zero) {
    const auto *from = static_cast<const decltype(zero) *>(e.indices[mode]);
    fill(to, static_cast<i64>(some.size()), threads, [&](i64 k) {
      return static_cast<Index>(static_cast<i64>(from[some[static_cast<std::size_t>(k)]]) - e.index_base);
    });
  });
}

void take_values(const EntriesView &e, std::span<const i64> some, void *to, int threads) {
  dispatch(e.value_type, [&](auto zero) {
    const auto *from = static_cast<const decltype(zero) *>(e.values);
    fill(static_cast<decltype(zero) *>(to), static_cast<i64>(some.size()), threads,
         [&](i64 k) { return from[some[static_cast<std::size_t>(k)]]; });
  });
}

/// The directory of a mode is a partition of its rows in equal blocks: the process of a block decides who owns its
/// rows. It hears from each process which of them it touches, ascending.
class Directory {
public:
  Directory(Processes &processes, i64 dim)
      : processes_(processes), each_(dim / processes.size() + (dim % processes.size() > 0 ? 1 : 0)) {}

  /// The owners of rows that this process touches.
  std::vector<i64> owners(const std::vector<i64> &touched) {
    std::vector<i64> counts(static_cast<std::size_t>(processes_.size()));
    for (const i64 row : touched)
      ++counts[static_cast<std::size_t>(row / each_)];
    std::vector<i64> received_counts;
    const std::vector<i64> received = exchange(processes_, touched, counts, received_counts);
    const std::vector<i64> answers = decide(received, received_counts);
    std::vector<i64> answer_counts;
    return exchange(processes_, answers, received_counts, answer_counts);
  }

private:
  struct Touch {
    i64 row;
    i64 process;
    std::size_t at; // in the list of what was received
  };

  /// A row that one process touches is its own; of the processes that share one, it goes to that which owns least so
  /// far.
  std::vector<i64> decide(const std::vector<i64> &received, const std::vector<i64> &counts) const {
    std::vector<Touch> touches;
    touches.reserve(received.size());
    std::size_t at = 0;
    for (std::size_t p = 0; p < counts.size(); ++p)
      for (i64 k = 0; k < counts[p]; ++k, ++at)
        touches.push_back({received[at], static_cast<i64>(p), at});
    std::stable_sort(touches.begin(), touches.end(), [](const Touch &a, const Touch &b) { return a.row < b.row; });
    std::vector<i64> owner(received.size()), owned(counts.size());
    const auto end_of = [&](std::size_t begin) {
      std::size_t end = begin + 1;
      while (end < touches.size() && touches[end].row == touches[begin].row)
        ++end;
      return end;
    };
    for (const bool shared : {false, true})
      for (std::size_t begin = 0, end = 0; begin < touches.size(); begin = end) {
        end = end_of(begin);
        if ((end - begin > 1) != shared)
          continue;
        i64 least = touches[begin].process;
        for (std::size_t k = begin; k < end; ++k)
          if (owned[static_cast<std::size_t>(touches[k].process)] < owned[static_cast<std::size_t>(least)])
            least = touches[k].process;
        ++owned[static_cast<std::size_t>(least)];
        for (std::size_t k = begin; k < end; ++k)
          owner[touches[k].at] = least;
      }
    return owner;
  }

  Processes &processes_;
  i64 each_;
};

/// The rows of a mode that some indices name, ascending, and the place of each among them.
class Touched {
public:
  template <class Index> Touched(std::span<const Index> indices, i64 dim, int threads) {
    if (formats::Marks::are_small(dim, std::ssize(indices))) {
      marks_ = formats::Marks(dim);
      parallel_ranges(threads, std::ssize(indices), formats::grain, [&](Range some) {
        marks_.add(indices.subspan(static_cast<std::size_t>(some.begin), static_cast<std::size_t>(some.size())));
      });
      rows_.resize(static_cast<std::size_t>(marks_.settle()));
      marks_.for_each(threads, [&](i64 place, i64 row) { rows_[static_cast<std::size_t>(place)] = row; });
    } else {
      rows_.assign(indices.begin(), indices.end());
      std::sort(rows_.begin(), rows_.end());
      rows_.erase(std::unique(rows_.begin(), rows_.end()), rows_.end());
    }
    if (rows_.empty())
      rows_.push_back(0);
  }

  const std::vector<i64> &rows() const noexcept { return rows_; }
  /// Each index := the number of its row, which is given for each of rows().
  template <class Index>
  void renumber(std::span<Index> indices, const std::vector<i64> &numbers, i64 dim, int threads) const {
    // A number for each row of the mode, where that takes no more than the indices: looking it up is one load.
    Buffer<Index> number_of(dim <= std::ssize(indices) ? dim : 0, "numbers of rows");
    for (std::size_t k = 0; k < rows_.size() && number_of.size() > 0; ++k)
      number_of[rows_[k]] = static_cast<Index>(numbers[k]);
    parallel_ranges(threads, std::ssize(indices), formats::grain, [&](Range some) {
      Index *const index = indices.data();
      if (number_of.size() > 0)
        for (i64 k = some.begin; k < some.end; ++k)
          index[k] = number_of[index[k]];
      else
        for (i64 k = some.begin; k < some.end; ++k)
          index[k] = static_cast<Index>(numbers[static_cast<std::size_t>(place(index[k]))]);
    });
  }

private:
  i64 place(i64 row) const noexcept {
    return marks_.bytes() > 0 ? marks_.place(row) : std::lower_bound(rows_.begin(), rows_.end(), row) - rows_.begin();
  }

  formats::Marks marks_; // of a mode that is far longer than there are entries: none
  std::vector<i64> rows_;
};

} // namespace

LocalEntries::LocalEntries(std::vector<i64> dims, IndexType indices, ValueType values, i64 count)
    : dims_(std::move(dims)), index_type_(indices), values_(values, count, "values of entries") {
  for (std::size_t m = 0; m < dims_.size(); ++m)
    indices_.emplace_back(count * size_of(indices), "indices of entries");
}

EntriesView LocalEntries::view() {
  columns_.clear();
  for (const auto &column : indices_)
    columns_.push_back(column.data());
  return {dims_, values_.size(), index_type_, columns_.data(), 0, values_.type(), values_.data()};
}

// A column at a time, so that only one is there twice.
LocalEntries bring(Processes &processes, const EntriesView &given, const Buffer<std::int32_t> &to,
                   const MemoryBudget &budget, int threads) {
  const Order order(processes.size(), to, threads);
  const std::vector<i64> received_counts = processes.all_to_all(order.counts());
  const bool narrow = std::all_of(given.dims.begin(), given.dims.end(),
                                  [](i64 dim) { return dim <= std::numeric_limits<std::int32_t>::max(); });
  const IndexType indices = narrow ? IndexType::i32 : IndexType::i64;
  const i64 coming = sum_of(received_counts);
  const i64 widest = std::max(size_of(indices), size_of(given.value_type));
  MemoryNeed need;
  need.add("entries that leave", static_cast<double>(given.nnz) * static_cast<double>(widest));
  need.add("the entries here", static_cast<double>(coming) *
                                   static_cast<double>(given.order() * size_of(indices) + size_of(given.value_type)));
  budget.require("a tensor of which " + count_text(coming, "entry", "entries") + " come here", need);
  LocalEntries here({given.dims.begin(), given.dims.end()}, indices, given.value_type, coming);
  Buffer<std::byte> sent(given.nnz * widest, "entries on their way");
  const auto exchange_column = [&](void *received, i64 each) {
    processes.all_to_all(sent.data(), times(order.counts(), each), received, times(received_counts, each));
  };
  for (int m = 0; m < given.order(); ++m)
    dispatch(indices, [&](auto zero) {
      using Index = decltype(zero);
      take_indices(given, m, order.entries(), reinterpret_cast<Index *>(sent.data()), threads);
      exchange_column(here.indices<Index>(m).data(), sizeof(Index));
    });
  take_values(given, order.entries(), sent.data(), threads);
  exchange_column(here.values().data(), size_of(given.value_type));
  return here;
}

DistributionBuilder::DistributionBuilder(std::shared_ptr<Processes> processes, std::span<const i64> dims) {
  made_.processes_ = std::move(processes);
  made_.dims_.assign(dims.begin(), dims.end());
}

std::vector<i64> DistributionBuilder::add(const std::vector<i64> &touched) {
  Processes &processes = *made_.processes_;
  const std::vector<i64> owner = Directory(processes, made_.dims_[made_.modes_.size()]).owners(touched);
  Distribution::Mode mode;
  mode.lent.resize(static_cast<std::size_t>(processes.size()));
  const i64 here = processes.rank();
  i64 own = 0;
  for (const i64 process : owner)
    ++(process == here ? own : mode.lent[static_cast<std::size_t>(process)]);
  if (own > 0)
    mode.own = {{0, own}};
  std::vector<i64> next{0}; // number of the next row of each owner
  for (const i64 rows : mode.lent)
    next.push_back(next.back() + rows);
  for (i64 &number : next)
    number += own;
  next[static_cast<std::size_t>(here)] = 0;
  mode.rows.resize(touched.size());
  std::vector<i64> number_of(touched.size());
  for (std::size_t k = 0; k < touched.size(); ++k) {
    number_of[k] = next[static_cast<std::size_t>(owner[k])]++;
    mode.rows[static_cast<std::size_t>(number_of[k])] = touched[k];
  }
  notify_owners(mode);
  made_.held_.push_back(std::ssize(mode.rows));
  made_.modes_.push_back(std::move(mode));
  return number_of;
}

/// Owners hear which of their rows each process has.
void DistributionBuilder::notify_owners(Distribution::Mode &mode) {
  const std::vector<i64> lent(mode.rows.begin() + mode.own_rows(), mode.rows.end());
  mode.shared = exchange(*made_.processes_, lent, mode.lent, mode.shared_with);
  const auto own_end = mode.rows.begin() + mode.own_rows();
  for (i64 &row : mode.shared)
    row = std::lower_bound(mode.rows.begin(), own_end, row) - mode.rows.begin();
}

Arrived distribute(std::shared_ptr<Processes> processes, const EntriesView &given, const MemoryBudget &budget,
                   int threads) {
  LocalEntries entries = bring(*processes, given, partition_entries(*processes, given, threads), budget, threads);
  DistributionBuilder builder(std::move(processes), given.dims);
  for (int m = 0; m < given.order(); ++m)
    dispatch(entries.index_type(), [&](auto zero) {
      const std::span<decltype(zero)> indices = entries.indices<decltype(zero)>(m);
      const i64 dim = given.dims[static_cast<std::size_t>(m)];
      const Touched places(std::span<const decltype(zero)>(indices), dim, threads);
      places.renumber(indices, builder.add(places.rows()), dim, threads);
    });
  auto distribution = builder.finish();
  entries.set_dims(distribution->held());
  return {std::move(distribution), std::move(entries)};
}

i64 Distribution::bytes() const noexcept {
  i64 numbers = 0;
  for (const Mode &mode : modes_)
    numbers += std::ssize(mode.rows) + std::ssize(mode.shared);
  return 8 * numbers;
}

i64 Distribution::partners(int mode) const {
  const auto some = [](const std::vector<i64> &counts) {
    return std::count_if(counts.begin(), counts.end(), [](i64 rows) { return rows > 0; });
  };
  return std::max(some(of(mode).lent), some(of(mode).shared_with));
}

Distribution::Settling Distribution::settling(int mode) const {
  const Mode &m = of(mode);
  const auto own_end = m.rows.begin() + m.own_rows();
  Settling settling;
  auto next = m.rows.begin(); // own rows ascend, as blocks do
  for (int p = 0; p < processes_->size(); ++p) {
    const Range block = block_of(*processes_, p).of(dims_[static_cast<std::size_t>(mode)]);
    const auto end = block.size() > 0 ? std::lower_bound(next, own_end, block.end) : next;
    settling.sent.push_back(end - next);
    next = end;
  }
  settling.rows = exchange(*processes_, {m.rows.begin(), own_end}, settling.sent, settling.received);
  const i64 first = block_of(*processes_).of(dims_[static_cast<std::size_t>(mode)]).begin;
  for (i64 &row : settling.rows)
    row -= first;
  return settling;
}

void Distribution::settle(int mode, ConstMatrix own, Matrix block) const {
  const i64 row_bytes = own.cols * size_of(own.type);
  const Settling s = settling(mode);
  Buffer<std::byte> received(std::ssize(s.rows) * row_bytes, "rows of a model on their way");
  processes_->all_to_all(own.data, times(s.sent, row_bytes), received.data(), times(s.received, row_bytes));
  if (block.rows > 0)
    std::memset(block.data, 0, static_cast<std::size_t>(block.rows * row_bytes));
  for (std::size_t k = 0; k < s.rows.size(); ++k)
    std::memcpy(block.slice(s.rows[k], s.rows[k] + 1).data, received.data() + static_cast<i64>(k) * row_bytes,
                static_cast<std::size_t>(row_bytes));
}

void Distribution::fetch(int mode, ConstMatrix block, Matrix own) const {
  const i64 row_bytes = own.cols * size_of(own.type);
  const Settling s = settling(mode);
  Buffer<std::byte> sent(std::ssize(s.rows) * row_bytes, "rows of a model on their way");
  for (std::size_t k = 0; k < s.rows.size(); ++k)
    std::memcpy(sent.data() + static_cast<i64>(k) * row_bytes, block.slice(s.rows[k], s.rows[k] + 1).data,
                static_cast<std::size_t>(row_bytes));
  processes_->all_to_all(sent.data(), times(s.received, row_bytes), own.data, times(s.sent, row_bytes));
}

} // namespace td::tensor
