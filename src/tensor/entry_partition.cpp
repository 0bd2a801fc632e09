#include "tensor/entry_partition.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

#include "formats/parts.hpp"

namespace td::tensor {

namespace {

constexpr i64 buckets = 1024; // that an interval of rows is counted in at a time
constexpr double most_off = 0.01;

/// Entries whose indices in `modes`, compared one mode after the other, come before `rows` are on the left.
struct Splitter {
  std::vector<int> modes;
  std::vector<i64> rows;
};

/// Processes that follow one another, and the box of index space whose entries are theirs.
struct Group {
  int first = 0;
  int count = 1;
  double entries = 0; // of all processes; whole numbers that doubles hold
  std::vector<Range> box;
};

/// The width of an interval's buckets is two to so many, so that finding an entry's bucket is a shift.
int bucket_bits_for(Range interval) {
  return static_cast<int>(std::bit_width(static_cast<u64>((interval.size() - 1) / buckets)));
}

/// The search for where a group is cut: entries are counted in ever shorter intervals of rows of one mode, and where a
/// single row has too many, in those of the next.
class Search {
public:
  explicit Search(const Group &group)
      : box_(group.box), target_(group.entries * static_cast<double>(group.count / 2) / group.count),
        most_off_(most_off * group.entries / group.count), order_(group.box.size()) {
    std::iota(order_.begin(), order_.end(), 0);
    const auto extent = [&](int m) {
      return std::min(static_cast<double>(box_[static_cast<std::size_t>(m)].size()), group.entries);
    };
    std::stable_sort(order_.begin(), order_.end(), [&](int a, int b) { return extent(a) > extent(b); });
    begin_mode();
  }

  bool done() const noexcept { return done_; }
  const Splitter &cut() const noexcept { return cut_; }
  double left() const noexcept { return before_; }

  /// Where entries are counted: in buckets of 2^bucket_bits() rows of an interval of a mode.
  int mode() const { return order_[next_]; }
  Range interval() const noexcept { return interval_; }
  int bucket_bits() const noexcept { return bucket_bits_; }

  /// Takes the entries of all processes in the buckets.
  void narrow(std::span<const double> counts) {
    const i64 width = i64{1} << bucket_bits_;
    i64 b = 0;
    const i64 last = (interval_.size() - 1) / width;
    while (b < last && before_ + counts[static_cast<std::size_t>(b)] <= target_)
      before_ += counts[static_cast<std::size_t>(b++)];
    const Range found{interval_.begin + b * width, b == last ? interval_.end : interval_.begin + (b + 1) * width};
    const double behind = before_ + counts[static_cast<std::size_t>(b)];
    const bool below = target_ - before_ <= behind - target_;
    const double off = below ? target_ - before_ : behind - target_;
    const bool one_row = found.size() == 1;
    if (off <= most_off_ || (one_row && next_ + 1 == order_.size()))
      return finish(below ? found.begin : found.end, below ? before_ : behind);
    set_interval(found);
    if (!one_row)
      return;
    cut_.modes.push_back(mode());
    cut_.rows.push_back(found.begin);
    ++next_;
    begin_mode();
  }

private:
  void begin_mode() { set_interval(box_[static_cast<std::size_t>(mode())]); }
  void set_interval(Range interval) {
    interval_ = interval;
    bucket_bits_ = bucket_bits_for(interval);
  }
  void finish(i64 row, double left) {
    cut_.modes.push_back(mode());
    cut_.rows.push_back(row);
    before_ = left;
    done_ = true;
  }

  std::vector<Range> box_;
  double target_;   // entries on the left
  double most_off_; // by which they may be more or less
  std::vector<int> order_;
  std::size_t next_ = 0; // of order_
  Range interval_;
  int bucket_bits_ = 0;
  double before_ = 0; // entries known to be on the left
  Splitter cut_;
  bool done_ = false;
};

/// Whether an entry is in the rows of a cut, in the modes that it has so far. index(m) is its index in a mode.
template <class Index> bool is_at(const Splitter &cut, Index &&index) {
  for (std::size_t k = 0; k < cut.modes.size(); ++k)
    if (index(cut.modes[k]) != cut.rows[k])
      return false;
  return true;
}

template <class Index> bool is_left(const Splitter &cut, Index &&index) {
  for (std::size_t k = 0; k < cut.modes.size(); ++k)
    if (const i64 i = index(cut.modes[k]); i != cut.rows[k])
      return i < cut.rows[k];
  return false;
}

/// The cutting of all groups, one level after the other.
template <class Given> class Bisection {
public:
  Bisection(Processes *others, const EntriesView &entries, int processes, int threads)
      : others_(others), entries_(entries), threads_(threads),
        group_of_(Buffer<std::int32_t>::zeros(entries.nnz, "who gets entries")) {
    double all = static_cast<double>(entries.nnz);
    add_up({&all, 1});
    Group whole{0, processes, all, {}};
    for (const i64 dim : entries.dims)
      whole.box.push_back({0, dim});
    groups_.push_back(std::move(whole));
  }

  Buffer<std::int32_t> run() {
    while (are_cut(groups_))
      cut_groups();
    return std::move(group_of_);
  }

private:
  /// What a pass over the entries asks of a group: few instructions an entry, as passes are most of the work.
  struct Counted {
    const Given *column = nullptr; // of indices; null: nothing is counted
    i64 begin = 0;                 // of the interval, in the caller's base
    u64 size = 0;
    int bucket_bits = 0;
    i64 *counts = nullptr;
    const Splitter *cut = nullptr; // whose rows alone are counted; null: all are
  };
  struct Sides {
    const Given *column = nullptr; // of indices; null: all are on the left
    i64 row = 0;                   // the first on the right
    const Splitter *cut = nullptr; // null: the row says it all
    std::int32_t to[2] = {0, 0};   // the groups that the left and the right become
  };

  static bool are_cut(const std::vector<Group> &groups) {
    return std::any_of(groups.begin(), groups.end(), [](const Group &g) { return g.count > 1; });
  }

  const Given *column(int mode) const { return static_cast<const Given *>(entries_.indices[mode]); }
  i64 index(int mode, i64 k) const { return static_cast<i64>(column(mode)[k]) - entries_.index_base; }

  void cut_groups() {
    std::vector<Search> searches;
    std::vector<int> search_of(groups_.size(), -1);
    for (std::size_t g = 0; g < groups_.size(); ++g)
      if (groups_[g].count > 1) {
        search_of[g] = static_cast<int>(searches.size());
        searches.emplace_back(groups_[g]);
      }
    while (std::any_of(searches.begin(), searches.end(), [](const Search &s) { return !s.done(); }))
      narrow(searches, search_of);
    split(searches, search_of);
  }

  void narrow(std::vector<Search> &searches, const std::vector<int> &search_of) {
    const std::size_t size = searches.size() * buckets;
    const int parts = formats::parts_for(entries_.nnz, threads_);
    std::vector<std::vector<i64>> of_part(static_cast<std::size_t>(parts));
    formats::for_parts(entries_.nnz, parts, [&](int part, Range some) {
      std::vector<i64> counts(size);
      std::vector<Counted> counted(groups_.size());
      for (std::size_t g = 0; g < groups_.size(); ++g)
        if (search_of[g] >= 0)
          counted[g] =
              counted_by(searches[static_cast<std::size_t>(search_of[g])], counts.data() + search_of[g] * buckets);
      for (i64 k = some.begin; k < some.end; ++k) {
        const Counted &c = counted[static_cast<std::size_t>(group_of_[k])];
        if (c.column == nullptr)
          continue;
        const u64 i = static_cast<u64>(static_cast<i64>(c.column[k]) - c.begin); // wraps round below the interval
        if (i < c.size && (c.cut == nullptr || is_at(*c.cut, [&](int m) { return index(m, k); })))
          ++c.counts[i >> c.bucket_bits];
      }
      of_part[static_cast<std::size_t>(part)] = std::move(counts);
    });
    std::vector<double> counts(size);
    for (const std::vector<i64> &some : of_part)
      for (std::size_t b = 0; b < size; ++b)
        counts[b] += static_cast<double>(some[b]);
    add_up(counts);
    for (std::size_t s = 0; s < searches.size(); ++s)
      if (!searches[s].done())
        searches[s].narrow(std::span(counts).subspan(s * buckets, buckets));
  }

  Counted counted_by(const Search &search, i64 *counts) const {
    if (search.done())
      return {};
    const Range interval = search.interval();
    return {column(search.mode()),
            interval.begin + entries_.index_base,
            static_cast<u64>(interval.size()),
            search.bucket_bits(),
            counts,
            search.cut().modes.empty() ? nullptr : &search.cut()};
  }

  void split(const std::vector<Search> &searches, const std::vector<int> &search_of) {
    std::vector<Group> next;
    std::vector<Sides> sides(groups_.size());
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      const auto left_group = static_cast<std::int32_t>(next.size());
      sides[g].to[0] = sides[g].to[1] = left_group;
      if (search_of[g] < 0) {
        next.push_back(groups_[g]);
        continue;
      }
      const Search &found = searches[static_cast<std::size_t>(search_of[g])];
      const Splitter &cut = found.cut();
      const int half = groups_[g].count / 2;
      Group left{groups_[g].first, half, found.left(), groups_[g].box};
      Group right{groups_[g].first + half, groups_[g].count - half, groups_[g].entries - found.left(), groups_[g].box};
      const bool one_mode = cut.modes.size() == 1;
      const auto mode = static_cast<std::size_t>(cut.modes.front());
      const i64 row = cut.rows.front(); // on both sides where it is cut itself
      sides[g] = {column(cut.modes.front()), row, one_mode ? nullptr : &cut, {left_group, left_group + 1}};
      left.box[mode].end = std::min(left.box[mode].end, row + (one_mode ? 0 : 1));
      right.box[mode].begin = std::max(right.box[mode].begin, row);
      for (Range *side : {&left.box[mode], &right.box[mode]})
        if (side->size() < 1) // nothing is there to be cut further
          *side = groups_[g].box[mode];
      next.push_back(std::move(left));
      next.push_back(std::move(right));
    }
    if (!are_cut(next)) // entries get their process
      for (Sides &side : sides)
        for (std::int32_t &to : side.to)
          to = next[static_cast<std::size_t>(to)].first;
    parallel_ranges(threads_, entries_.nnz, formats::grain, [&](Range some) {
      for (i64 k = some.begin; k < some.end; ++k) {
        const Sides &s = sides[static_cast<std::size_t>(group_of_[k])];
        const bool right =
            s.column != nullptr && (s.cut == nullptr ? static_cast<i64>(s.column[k]) - entries_.index_base >= s.row
                                                     : !is_left(*s.cut, [&](int m) { return index(m, k); }));
        group_of_[k] = s.to[right ? 1 : 0];
      }
    });
    groups_ = std::move(next);
  }

  /// What all processes have counted.
  void add_up(std::span<double> counts) {
    if (others_ != nullptr)
      others_->all_reduce(counts, Reduction::sum);
  }

  Processes *others_; // null: all entries are here
  const EntriesView &entries_;
  int threads_;
  Buffer<std::int32_t> group_of_;
  std::vector<Group> groups_;
};

} // namespace

Buffer<std::int32_t> partition_entries(Processes &processes, const EntriesView &entries, int threads) {
  return dispatch(entries.index_type, [&](auto zero) {
    return Bisection<decltype(zero)>(&processes, entries, processes.size(), threads).run();
  });
}

Buffer<std::int32_t> partition_entries(int processes, const EntriesView &entries, int threads) {
  return dispatch(entries.index_type,
                  [&](auto zero) { return Bisection<decltype(zero)>(nullptr, entries, processes, threads).run(); });
}

} // namespace td::tensor
