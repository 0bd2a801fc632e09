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
  /// The entries of a process.
  std::span<const i64> of(int process) const {
    const auto p = static_cast<std::size_t>(process);
    const i64 before = std::accumulate(counts_.begin(), counts_.begin() + process, i64{0});
    return {place_.data() + before, static_cast<std::size_t>(counts_[p])};
  }

private:
  std::vector<i64> counts_;
  Buffer<i64> place_;
};

/// Entries on their way: for each process a column for each mode, then the values, each column up to a multiple of 8
/// bytes. Indices travel in 4 bytes where all fit.
struct Packing {
  int order;
  ValueType values;
  i64 index_bytes;

  explicit Packing(const EntriesView &e) : order(e.order()), values(e.value_type), index_bytes(4) {
    for (const i64 dim : e.dims)
      if (dim > std::numeric_limits<std::int32_t>::max())
        index_bytes = 8;
  }
  static i64 column(i64 entries, i64 each) { return (entries * each + 7) / 8 * 8; }
  i64 bytes(i64 entries) const { return order * column(entries, index_bytes) + column(entries, size_of(values)); }
  /// What goes to, or comes from, all processes but one.
  std::vector<i64> bytes_but(const std::vector<i64> &entries, int here) const {
    std::vector<i64> all;
    for (const i64 count : entries)
      all.push_back(bytes(count));
    all[static_cast<std::size_t>(here)] = 0;
    return all;
  }
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

Buffer<std::byte> pack_others(const EntriesView &e, const Order &order, const Packing &packing, int here, int threads) {
  Buffer<std::byte> sent(sum_of(packing.bytes_but(order.counts(), here)), "entries on their way");
  std::byte *at = sent.data();
  for (int p = 0; p < static_cast<int>(order.counts().size()); ++p) {
    if (p == here)
      continue;
    const std::span<const i64> some = order.of(p);
    const auto count = static_cast<i64>(some.size());
    for (int m = 0; m < packing.order; ++m, at += Packing::column(count, packing.index_bytes))
      if (packing.index_bytes == 4)
        take_indices(e, m, some, reinterpret_cast<std::int32_t *>(at), threads);
      else
        take_indices(e, m, some, reinterpret_cast<i64 *>(at), threads);
    take_values(e, some, at, threads);
    at += Packing::column(count, size_of(packing.values));
  }
  return sent;
}

/// Entries that have come, and those that stay, in the order of the processes that had them.
Entries unpack(const EntriesView &given, const Order &order, const Buffer<std::byte> &received,
               const std::vector<i64> &counts, const Packing &packing, int here, int threads) {
  Entries e;
  e.dims.assign(given.dims.begin(), given.dims.end());
  const i64 all = sum_of(counts);
  for (int m = 0; m < packing.order; ++m)
    e.indices.emplace_back(all, "indices of entries");
  e.values = ValueBuffer(packing.values, all, "values of entries");
  const i64 value_bytes = size_of(packing.values);
  const std::byte *at = received.data();
  i64 before = 0;
  for (int p = 0; p < static_cast<int>(counts.size()); before += counts[static_cast<std::size_t>(p++)]) {
    const i64 count = counts[static_cast<std::size_t>(p)];
    std::byte *const values = static_cast<std::byte *>(e.values.data()) + before * value_bytes;
    if (p == here) {
      for (int m = 0; m < packing.order; ++m)
        take_indices(given, m, order.of(p), e.indices[static_cast<std::size_t>(m)].data() + before, threads);
      take_values(given, order.of(p), values, threads);
      continue;
    }
    for (int m = 0; m < packing.order; ++m, at += Packing::column(count, packing.index_bytes)) {
      i64 *const to = e.indices[static_cast<std::size_t>(m)].data() + before;
      if (packing.index_bytes == 4)
        fill(to, count, threads, [from = reinterpret_cast<const std::int32_t *>(at)](i64 k) { return i64{from[k]}; });
      else
        fill(to, count, threads, [from = reinterpret_cast<const i64 *>(at)](i64 k) { return from[k]; });
    }
    fill(values, count * value_bytes, threads, [at](i64 k) { return at[k]; });
    at += Packing::column(count, value_bytes);
  }
  return e;
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
    std::vector<i64> told_counts;
    const std::vector<i64> told = exchange(processes_, touched, counts, told_counts);
    const std::vector<i64> answers = decide(told, told_counts);
    std::vector<i64> answer_counts;
    return exchange(processes_, answers, told_counts, answer_counts);
  }

private:
  struct Touch {
    i64 row;
    i64 process;
    std::size_t at; // in the list of what was told
  };

  /// A row that one process touches is its own; of the processes that share one, it goes to that which owns least so
  /// far.
  std::vector<i64> decide(const std::vector<i64> &told, const std::vector<i64> &counts) const {
    std::vector<Touch> touches;
    touches.reserve(told.size());
    std::size_t at = 0;
    for (std::size_t p = 0; p < counts.size(); ++p)
      for (i64 k = 0; k < counts[p]; ++k, ++at)
        touches.push_back({told[at], static_cast<i64>(p), at});
    std::stable_sort(touches.begin(), touches.end(), [](const Touch &a, const Touch &b) { return a.row < b.row; });
    std::vector<i64> owner(told.size()), owned(counts.size());
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
  Touched(const Buffer<i64> &indices, i64 dim, int threads) {
    if (formats::Marks::are_small(dim, indices.size())) {
      marks_ = formats::Marks(dim);
      parallel_ranges(threads, indices.size(), formats::grain, [&](Range some) {
        marks_.add(indices.span().subspan(static_cast<std::size_t>(some.begin), static_cast<std::size_t>(some.size())));
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
  void renumber(Buffer<i64> &indices, const std::vector<i64> &numbers, i64 dim, int threads) const {
    // A number for each row of the mode, where that takes no more than the indices: looking it up is one load.
    Buffer<i64> number_of(dim <= indices.size() ? dim : 0, "numbers of rows");
    for (std::size_t k = 0; k < rows_.size() && number_of.size() > 0; ++k)
      number_of[rows_[k]] = numbers[k];
    parallel_ranges(threads, indices.size(), formats::grain, [&](Range some) {
      if (number_of.size() > 0)
        for (i64 k = some.begin; k < some.end; ++k)
          indices[k] = number_of[indices[k]];
      else
        for (i64 k = some.begin; k < some.end; ++k)
          indices[k] = numbers[static_cast<std::size_t>(place(indices[k]))];
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

Entries bring(Processes &processes, const EntriesView &given, const Buffer<std::int32_t> &to,
              const MemoryBudget &budget, int threads) {
  const int here = processes.rank();
  const Order order(processes.size(), to, threads);
  const Packing packing(given);
  const std::vector<i64> received_counts = processes.all_to_all(order.counts());
  const std::vector<i64> sent_bytes = packing.bytes_but(order.counts(), here);
  const std::vector<i64> received_bytes = packing.bytes_but(received_counts, here);
  const i64 coming = sum_of(received_counts);
  MemoryNeed need;
  need.add("entries that leave", static_cast<double>(sum_of(sent_bytes)));
  need.add("entries that arrive", static_cast<double>(sum_of(received_bytes)));
  need.add("the entries here",
           static_cast<double>(coming) * static_cast<double>(8 * packing.order + size_of(packing.values)));
  budget.require("a tensor of which " + count_text(coming, "entry", "entries") + " come here", need);
  Buffer<std::byte> received(sum_of(received_bytes), "entries on their way");
  {
    const Buffer<std::byte> sent = pack_others(given, order, packing, here, threads);
    processes.all_to_all(sent.data(), sent_bytes, received.data(), received_bytes);
  }
  return unpack(given, order, received, received_counts, packing, here, threads);
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
  tell_owners(mode);
  made_.held_.push_back(std::ssize(mode.rows));
  made_.modes_.push_back(std::move(mode));
  return number_of;
}

/// Owners hear which of their rows each process has.
void DistributionBuilder::tell_owners(Distribution::Mode &mode) {
  const std::vector<i64> lent(mode.rows.begin() + mode.own_rows(), mode.rows.end());
  mode.shared = exchange(*made_.processes_, lent, mode.lent, mode.shared_with);
  const auto own_end = mode.rows.begin() + mode.own_rows();
  for (i64 &row : mode.shared)
    row = std::lower_bound(mode.rows.begin(), own_end, row) - mode.rows.begin();
}

Arrived distribute(std::shared_ptr<Processes> processes, const EntriesView &given, const MemoryBudget &budget,
                   int threads) {
  Entries entries = bring(*processes, given, partition_entries(*processes, given, threads), budget, threads);
  DistributionBuilder builder(std::move(processes), entries.dims);
  for (std::size_t m = 0; m < entries.dims.size(); ++m) {
    const Touched places(entries.indices[m], entries.dims[m], threads);
    places.renumber(entries.indices[m], builder.add(places.rows()), entries.dims[m], threads);
  }
  auto distribution = builder.finish();
  entries.dims.assign(distribution->held().begin(), distribution->held().end());
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
    const Range block = RowBlock{p, processes_->size()}.of(dims_[static_cast<std::size_t>(mode)]);
    const auto end = std::lower_bound(next, own_end, block.end);
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
