// The lines of sparse text: indices and a value.
#include <algorithm>
#include <limits>

#include "core/sentence.hpp"
#include "io/readers.hpp"
#include "io/text.hpp"
#include "io/text_chunks.hpp"

namespace td::io {

namespace {

Count count_entries(std::span<const char> text) {
  Count count;
  const char *p = text.data();
  const char *end = p + text.size();
  while (p != end) {
    p = skip_blanks(p, end);
    if (!at_line_end(p, end) && !at_comment(p, end))
      ++count.records;
    p = line_end(p, end);
    if (p != end)
      ++p;
    ++count.lines;
  }
  return count;
}

struct Extremes {
  std::vector<i64> smallest;
  std::vector<i64> largest;

  explicit Extremes(int order)
      : smallest(static_cast<std::size_t>(order), std::numeric_limits<i64>::max()),
        largest(static_cast<std::size_t>(order), std::numeric_limits<i64>::min()) {}

  void take(const Extremes &other) {
    for (std::size_t m = 0; m < smallest.size(); ++m) {
      smallest[m] = std::min(smallest[m], other.smallest[m]);
      largest[m] = std::max(largest[m], other.largest[m]);
    }
  }

  void take_all(const Readers &readers) {
    const std::vector<i64> low = readers.gather(smallest);
    const std::vector<i64> high = readers.gather(largest);
    for (std::size_t k = 0; k < low.size(); ++k) {
      const std::size_t m = k % smallest.size();
      smallest[m] = std::min(smallest[m], low[k]);
      largest[m] = std::max(largest[m], high[k]);
    }
  }
};

/// What an entry's line holds.
struct EntryForm {
  int order = 0;
  bool has_value = true; // else the value is 1
};

std::string entry_problem(const char *begin, const char *end, EntryForm form, ValueType type) {
  Line line;
  Lines({begin, line_end(begin, end)}).next(line);
  const auto indices = static_cast<std::size_t>(form.order);
  const std::size_t expected = indices + (form.has_value ? 1 : 0);
  const auto words = words_of(line.text, expected);
  if (words.size() != expected)
    return fmt::format("has {}, expected {} indices and {} value",
                       words.size() > expected ? fmt::format("more than {} numbers", expected)
                                               : count_text(static_cast<i64>(words.size()), "number", "numbers"),
                       indices, form.has_value ? "a" : "no");
  for (std::size_t m = 0; m < indices; ++m)
    if (const std::string problem = index_problem(words[m]); !problem.empty())
      return fmt::format("index of mode {}: {}", m, problem);
  return fmt::format("value: {}", value_problem(words.back(), type));
}

/// Moves p behind one entry; false if the line is not one.
template <class T>
bool parse_entry(const char *&p, const char *end, std::span<i64 *const> columns, bool has_value, i64 k, T *values,
                 Extremes &seen) {
  for (std::size_t m = 0; m < columns.size(); ++m) {
    i64 index = 0;
    if (!scan_index(p, end, index))
      return false;
    columns[m][k] = index;
    seen.smallest[m] = std::min(seen.smallest[m], index);
    seen.largest[m] = std::max(seen.largest[m], index);
    p = skip_blanks(p, end);
  }
  if (!has_value)
    values[k] = 1;
  else if (!scan_value(p, end, values[k]))
    return false;
  p = skip_blanks(p, end);
  return at_line_end(p, end) || at_comment(p, end);
}

template <class T>
void parse_chunk(std::span<const char> text, Chunk &chunk, std::span<i64 *const> columns, bool has_value, T *values,
                 Extremes &seen) {
  const char *p = text.data();
  const char *end = p + text.size();
  for (i64 line = chunk.first_line; p != end; ++line) {
    p = skip_blanks(p, end);
    const char *begin = p;
    if (!at_line_end(p, end) && !at_comment(p, end)) {
      const auto k = chunk.next_record();
      if (!k)
        return;
      if (!parse_entry(p, end, columns, has_value, *k, values, seen))
        chunk.problem = entry_problem(begin, end, {static_cast<int>(columns.size()), has_value}, value_type_of<T>);
    }
    const char *stop = line_end(p, end);
    if (at_comment(p, end) && has_lone_return(p, stop == end ? end : stop + 1))
      chunk.problem = "a CR (byte 13) within a comment, expected lines that end with LF or CR LF";
    if (!chunk.problem.empty()) {
      chunk.problem_line = line;
      return;
    }
    p = stop == end ? end : stop + 1;
  }
}

struct Place {
  i64 entry = -1;
  int mode = 0;
};

/// The first entry with an index that `wanted(mode, index)`; entry = -1 if there is none.
template <class Wanted> Place find_index(const Entries &x, Wanted &&wanted) {
  Place place;
  for (std::size_t m = 0; m < x.indices.size(); ++m) {
    const i64 stop = place.entry < 0 ? x.values.size() : place.entry;
    const i64 *column = x.indices[m].data();
    const i64 *found = std::find_if(column, column + stop, [&](i64 index) { return wanted(m, index); });
    if (found != column + stop)
      place = {found - column, static_cast<int>(m)};
  }
  return place;
}

/// Turns parsed indices into a tensor's: base, dims, and what they were decided by.
class Settlement {
public:
  Settlement(const std::string &name, const TextHeader &header, const ReadChoices &choices, const Chunks &chunks,
             const Extremes &seen, i64 records, Entries &x)
      : name_(name), header_(header), choices_(choices), chunks_(chunks), seen_(seen), records_(records), x_(x) {}

  /// The line that tells what was decided.
  std::string settle() {
    decide_base();
    if (header_.dims.empty())
      take_dims_from_indices();
    else
      x_.dims = header_.dims;
    check_range();
    return fmt::format("{}; {}-based{}{}{}", dialect_title(header_.dialect, false), x_.index_base, base_glue_,
                       base_reason_, header_.dims_reason.empty() ? "" : "; " + header_.dims_reason);
  }

private:
  struct Found {
    i64 line = -1; // none
    int mode = 0;
    i64 index = 0;
    std::string place = {}; // "line 7"
  };

  /// It finds what find_index does, among the entries of all readers, who all look for the same.
  template <class Wanted> Found find(Wanted &&wanted) const {
    const Place place = find_index(x_, wanted);
    i64 here[] = {-1, place.mode, 0};
    if (place.entry >= 0) {
      here[0] = chunks_.line_of(place.entry);
      here[2] = x_.indices[static_cast<std::size_t>(place.mode)][place.entry];
    }
    const std::vector<i64> all = choices_.readers.gather(here);
    for (std::size_t reader = 0; reader < all.size(); reader += 3)
      if (all[reader] >= 0)
        return {all[reader], static_cast<int>(all[reader + 1]), all[reader + 2],
                fmt::format("line {}{}", all[reader],
                            choices_.readers.own_files ? fmt::format(" of process {}'s file", reader / 3) : "")};
    return {};
  }

  bool empty() const { return records_ == 0; }
  bool has_zero() const {
    return std::any_of(seen_.smallest.begin(), seen_.smallest.end(), [](i64 i) { return i == 0; });
  }

  void decide_base() {
    base_glue_ = ", ";
    base_reason_ = header_.base_reason;
    if (choices_.index_base >= 0) {
      x_.index_base = choices_.index_base;
      base_reason_ = "as option index_base says";
    } else if (header_.index_base) {
      x_.index_base = *header_.index_base;
    } else {
      decide_base_by_content();
    }
  }

  void decide_base_by_content() {
    const auto &dims = header_.dims;
    const bool zero = !empty() && has_zero();
    const Found full = find([&](std::size_t m, i64 index) { return index == dims[m]; });
    const Found beyond = find([&](std::size_t m, i64 index) { return index > dims[m]; });
    base_glue_ = ": ";
    if (zero && full.line >= 0)
      throw_error(Status::io,
                  "{}: index 0 occurs in {}, as if counted from 0, and index {} = dim of mode {} in {}, as if "
                  "counted from 1; set option index_base to 0 or 1 to say which is meant",
                  name_, first_zero().place, dims[static_cast<std::size_t>(full.mode)], full.mode, full.place);
    if (zero) {
      x_.index_base = 0;
      base_reason_ = fmt::format("index 0 occurs in {}", first_zero().place);
    } else if (full.line >= 0) {
      x_.index_base = 1;
      base_reason_ = fmt::format("index {} = dim of mode {} occurs in {}", dims[static_cast<std::size_t>(full.mode)],
                                 full.mode, full.place);
    } else if (empty() || beyond.line >= 0) { // nothing to decide, or wrong in either base
      x_.index_base = 1;
      base_reason_ = "no entry decides it";
    } else {
      throw_error(
          Status::io,
          "{}: the index base is ambiguous: line 1 does not state it, no index is 0 and none equals its dim; set "
          "option index_base to 0 (GenTen) or 1 (Tensor Toolbox), or option dialect to genten or toolbox",
          name_);
    }
  }

  Found first_zero() const {
    return find([](std::size_t, i64 index) { return index == 0; });
  }

  void take_dims_from_indices() {
    for (std::size_t m = 0; m < seen_.largest.size(); ++m) {
      const i64 largest = seen_.largest[m];
      if (largest == std::numeric_limits<i64>::max() && x_.index_base == 0)
        throw_error(Status::shape, "{}: index {} of mode {}, counted from 0, makes a dim above 2^63 - 1", name_,
                    largest, m);
      x_.dims.push_back(std::max<i64>(1, largest - x_.index_base + 1)); // 0 only where index 0 will be refused
    }
  }

  void check_range() const {
    const auto outside = [&](std::size_t m, i64 index) {
      return index < x_.index_base || index - x_.index_base >= x_.dims[m];
    };
    bool bad = false;
    for (std::size_t m = 0; m < x_.dims.size() && !empty(); ++m)
      bad = bad || outside(m, seen_.smallest[m]) || outside(m, seen_.largest[m]);
    if (!bad)
      return;
    const Found found = find(outside);
    const auto mode = static_cast<std::size_t>(found.mode);
    const i64 index = found.index;
    if (index == 0)
      throw_error(Status::index,
                  "{}: {}: index 0 of mode {}, but indices count from 1 ({}); set option index_base to 0 if this "
                  "file counts from 0",
                  name_, found.place, mode, base_reason_);
    throw_error(Status::index, "{}: {}: index {} of mode {}, expected {} to {} ({}-based{}{})", name_, found.place,
                index, mode, x_.index_base, x_.dims[mode] - 1 + x_.index_base, x_.index_base, base_glue_, base_reason_);
  }

  const std::string &name_;
  const TextHeader &header_;
  const ReadChoices &choices_;
  const Chunks &chunks_;
  const Extremes &seen_; // by all readers
  i64 records_;          // of all readers
  Entries &x_;
  std::string base_glue_;
  std::string base_reason_;
};

/// The records of a file that readers share, or of this one's own.
struct Records {
  i64 of_file = 0;
  i64 of_all = 0;
};

/// Lines count from the file's first, whoever reads them.
Records place_lines(Chunks &chunks, const Readers &readers) {
  const i64 here[] = {chunks.lines(), chunks.records()};
  const std::vector<i64> all = readers.gather(here);
  i64 records = 0;
  for (std::size_t reader = 0; reader < all.size() / 2; ++reader) {
    if (static_cast<int>(reader) < readers.number && !readers.own_files)
      chunks.move_lines(all[2 * reader]);
    records += all[2 * reader + 1];
  }
  return {readers.own_files ? chunks.records() : records, records};
}

} // namespace

ReadTensor read_entries_text(const Source &source, const TextHeader &stated, const ReadChoices &choices) {
  const Readers &readers = choices.readers;
  TextHeader header = stated;
  header.dims = common_dims(source.name(), readers, {false, stated.order, stated.dims, stated.index_base.value_or(-1)});
  if (stated.dims.empty() && !header.dims.empty())
    header.dims_reason = "dims as another process's file states them";
  const Range body = readers.own_files ? header.body : lines_of(source, header.body, readers.number, readers.count);
  Chunks chunks(source, body, header.body_line, choices.threads, count_entries);
  const Records records = place_lines(chunks, readers);
  if (header.entries && *header.entries != records.of_file)
    throw_error(Status::io, "{}: line {} states {}, but {} {}", source.name(), header.entries_line,
                count_text(*header.entries, "entry", "entries"), records.of_file,
                records.of_file == 1 ? "follows" : "follow");
  const ValueType type = choices.value_type.value_or(ValueType::f64);
  choices.require_room(chunks.records(), chunks.records() * header.order); // an entry has as many characters
  Entries x;
  std::vector<i64 *> columns;
  for (int m = 0; m < header.order; ++m) {
    x.indices.emplace_back(chunks.records(), "the indices of a text file");
    columns.push_back(x.indices.back().data());
  }
  x.values = ValueBuffer(type, chunks.records(), "the values of a text file");

  std::vector<Extremes> seen(chunks.size(), Extremes(header.order));
  chunks.parse(choices.threads, [&](std::span<const char> text, Chunk &chunk, std::size_t i) {
    dispatch(type, [&](auto zero) {
      parse_chunk(text, chunk, columns, !header.pattern, x.values.as<decltype(zero)>(), seen[i]);
    });
  });
  Extremes all(header.order);
  for (const Extremes &e : seen)
    all.take(e);
  all.take_all(readers);

  std::string notes = Settlement(source.name(), header, choices, chunks, all, records.of_all, x).settle();
  mirror_entries(header.symmetry, source.name(), chunks, x);
  notes += header.pattern ? "; a pattern, each value 1" : "";
  notes += name_in_source(header.symmetry);
  return {std::move(x), std::move(notes)};
}

} // namespace td::io
