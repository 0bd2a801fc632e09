// Tables: lines with a field for each column, some of which become modes and one the value.
#include <algorithm>
#include <atomic>
#include <deque>

#include "core/parallel.hpp"
#include "core/sentence.hpp"
#include "io/gzip.hpp"
#include "io/readers.hpp"
#include "io/table_fields.hpp"
#include "io/table_names.hpp"
#include "io/table_parser.hpp"
#include "io/text.hpp"

namespace td::io {

namespace {

constexpr i64 range_bytes = i64{1} << 18; // that a thread takes at a time; stays in its cache
constexpr i64 ranges_of_block = 16;       // at least, of a smaller block
constexpr int most_parsers = 8;           // each has dictionaries of its own, which may all hold all names

class TableReader {
public:
  TableReader(const Source &source, const ReadChoices &choices, i64 block)
      : name_(source.name()), choices_(choices), threads_(std::clamp(choices.threads, 1, most_parsers)), bytes_(source),
        block_(bytes_.was_gzip() ? block : std::min(block, source.size() + 1)), text_(block_, "the text of a table"),
        next_(block_, "the text of a table") {}

  ReadTensor read() {
    fill(text_, 0);
    begin();
    while (size_ > 0)
      take_block();
    if (records_ == 0)
      throw_error(Status::io, "{}: no line {}, expected at least one", name_,
                  layout_.has_header ? "follows the header" : "has a field");
    return assemble();
  }

private:
  /// Reads what there is room for behind the first `held` bytes.
  void fill(Buffer<char> &room, i64 held) {
    size_ = held + bytes_.read(room.span().subspan(static_cast<std::size_t>(held)));
    at_end_ = size_ < room.size();
  }

  std::string_view text() const noexcept { return {text_.data() + begin_, static_cast<std::size_t>(size_ - begin_)}; }

  /// Looks at the first line.
  void begin() {
    begin_ = mark_size(text());
    if (text().starts_with("\xff\xfe") || text().starts_with("\xfe\xff"))
      throw_error(Status::io, "{}: the text is UTF-16, expected UTF-8", name_);
    skip_blank_lines();
    if (begin_ == size_)
      throw_error(Status::io, "{}: the file is empty, expected a table", name_);
    const char *end = text_.data() + size_;
    const char *p = text_.data() + begin_;
    const FieldRules rules = field_rules(choices_.table, {p, static_cast<std::size_t>(line_end(p, end) - p)});
    layout_.rules = rules;
    if (LineStarts(text(), rules, at_end_).behind_whole_lines() == 0)
      refuse_long_line();
    FieldCutter cutter(rules);
    const char *next = cutter.cut(p, end);
    if (cutter.problem()[0] != '\0')
      throw_error(Status::io, "{}: line {}: {}", name_, line_, cutter.problem());
    const std::vector<std::string> first(cutter.fields().begin(), cutter.fields().end());
    if (std::any_of(first.begin(), first.end(), [](const std::string &f) { return f.find('\r') != f.npos; }))
      throw_error(Status::io, "{}: line {}: a CR that no LF follows, expected lines that end with LF or CR LF", name_,
                  line_);
    layout_ = table_layout(choices_.table, rules, name_, first);
    type_ = choices_.value_type.value_or(ValueType::f64);
    for (int i = 0; i < threads_; ++i)
      parsers_.emplace_back(layout_, type_);
    if (layout_.has_header) {
      begin_ = next - text_.data();
      line_ += cutter.lines();
    }
  }

  /// Goes to the first line that is not blank, and has it in memory as a whole if there is room for it.
  void skip_blank_lines() {
    for (;;) {
      while (text().starts_with('\n') || text().starts_with("\r\n")) {
        begin_ += text_[begin_] == '\n' ? 1 : 2;
        ++line_;
      }
      if (at_end_ || begin_ == 0)
        return;
      const i64 rest = size_ - begin_;
      std::copy(text_.begin() + begin_, text_.begin() + size_, text_.begin());
      begin_ = 0;
      fill(text_, rest);
    }
  }

  [[noreturn]] void refuse_long_line() const {
    throw_error(Status::io, "{}: line {}: has more than {} bytes{}", name_, line_, block_,
                layout_.rules.quotes ? "; perhaps a quote is not closed (option quotes = 0 takes quotes as they are)"
                                     : "");
  }

  /// Parses the whole lines of the block while the next one is read.
  void take_block() {
    const LineStarts lines(text(), layout_.rules, at_end_);
    const auto whole = static_cast<i64>(lines.behind_whole_lines());
    if (whole == 0 && !at_end_)
      refuse_long_line();
    const std::string_view block = text().substr(0, static_cast<std::size_t>(whole));
    require_room(block);
    const std::string_view rest = text().substr(block.size());
    std::copy(rest.begin(), rest.end(), next_.begin());

    const Ranges ranges =
        lines.split(std::max<i64>(1, whole / std::min(range_bytes, std::max<i64>(1, block_ / ranges_of_block))));
    std::vector<ParsedLines> parsed(ranges.size());
    std::atomic<std::size_t> todo{0};
    const bool last = at_end_;
    parallel(threads_, [&](int thread, int) {
      for (std::size_t task = todo++; task <= ranges.size(); task = todo++) {
        if (task == 0) {
          if (last)
            size_ = 0;
          else
            fill(next_, static_cast<i64>(rest.size()));
          continue;
        }
        const Range r = ranges[task - 1];
        parsed[task - 1].parser = thread;
        parsers_[static_cast<std::size_t>(thread)].parse(
            block.substr(static_cast<std::size_t>(r.begin), static_cast<std::size_t>(r.size())), parsed[task - 1]);
      }
    });
    std::swap(text_, next_);
    begin_ = 0;
    keep(parsed);
  }

  void keep(std::vector<ParsedLines> &parsed) {
    for (ParsedLines &p : parsed) {
      if (!p.problem.empty())
        throw_error(Status::io, "{}: line {}: {}", name_, line_ + p.problem_line, p.problem);
      line_ += p.lines;
      records_ += p.records;
      held_ += p.bytes();
      parsed_.push_back(std::move(p));
    }
  }

  i64 record_bytes() const noexcept {
    return 4 * static_cast<i64>(layout_.modes.size()) + (layout_.value ? size_of(type_) : 0);
  }

  /// Before a block is parsed.
  void require_room(std::string_view block) const {
    MemoryNeed need;
    need.add("lines", static_cast<double>(count_of('\n', block) + 1) * static_cast<double>(record_bytes()));
    need.add("text and names", 3 * static_cast<double>(block_));
    choices_.memory.beside(held_ + names_bytes()).require("reading a table", need);
  }

  i64 names_bytes() const noexcept {
    i64 bytes = 0;
    for (const TableParser &parser : parsers_)
      bytes += parser.bytes();
    return bytes;
  }

  ReadTensor assemble() {
    text_ = {};
    next_ = {};
    const auto order = layout_.modes.size();
    MemoryNeed need;
    need.add("indices", 8 * static_cast<double>(records_) * static_cast<double>(order));
    need.add("values", static_cast<double>(records_) * static_cast<double>(size_of(type_)));
    need.add("ordering names", OrderedNames::bytes(static_cast<double>(most_names())));
    choices_.memory.beside(held_ + names_bytes()).require("reading a table", need);
    ReadTensor out;
    Entries x;
    out.labels = Labels(static_cast<int>(order));
    for (std::size_t m = 0; m < order; ++m) {
      std::vector<const Dictionary *> dictionaries;
      for (const TableParser &parser : parsers_)
        dictionaries.push_back(&parser.names(m));
      const OrderedNames names(dictionaries, threads_);
      x.dims.push_back(names.size());
      out.labels.set_name(static_cast<int>(m), layout_.modes[m].name);
      out.labels.set_list(static_cast<int>(m), names.labels(layout_.modes[m].time));
      x.indices.push_back(column(m, names));
    }
    x.values = values();
    out.content = std::move(x);
    out.source = layout_.source;
    if (bytes_.was_gzip())
      out.source = "gzip of " + out.source;
    return out;
  }

  i64 most_names() const noexcept {
    i64 most = 0;
    for (std::size_t m = 0; m < layout_.modes.size(); ++m) {
      i64 names = 0;
      for (const TableParser &parser : parsers_)
        names += parser.names(m).size();
      most = std::max(most, names);
    }
    return most;
  }

  /// f(parsed, first record of it) by several threads.
  template <class F> void each_parsed(F &&f) {
    std::vector<i64> first;
    i64 at = 0;
    for (const ParsedLines &p : parsed_) {
      first.push_back(at);
      at += p.records;
    }
    parallel_ranges(choices_.threads, static_cast<i64>(parsed_.size()), 1, [&](Range r) {
      for (i64 i = r.begin; i < r.end; ++i)
        f(parsed_[static_cast<std::size_t>(i)], first[static_cast<std::size_t>(i)]);
    });
  }

  /// A mode's indices; the numbers that they come from are freed.
  Buffer<i64> column(std::size_t mode, const OrderedNames &names) {
    Buffer<i64> indices(records_, "the indices of a table");
    each_parsed([&](ParsedLines &p, i64 first) {
      const auto parser = static_cast<std::size_t>(p.parser);
      for (i64 k = 0; k < p.records; ++k)
        indices[first + k] = names.index(parser, p.numbers[mode][k]);
      p.numbers[mode] = {};
    });
    return indices;
  }

  ValueBuffer values() {
    ValueBuffer all(type_, records_, "the values of a table");
    dispatch(type_, [&](auto zero) {
      auto *to = all.as<decltype(zero)>();
      each_parsed([&](ParsedLines &p, i64 first) {
        if (layout_.value)
          std::copy_n(p.values.as<decltype(zero)>(), p.records, to + first);
        else
          std::fill_n(to + first, p.records, static_cast<decltype(zero)>(1));
        p.values = {};
      });
    });
    return all;
  }

  const std::string &name_;
  const ReadChoices &choices_;
  int threads_;
  PlainBytes bytes_;
  i64 block_;
  Buffer<char> text_; // the block that is parsed, and the one that is read meanwhile
  Buffer<char> next_;
  i64 begin_ = 0; // of what is still to be parsed
  i64 size_ = 0;
  bool at_end_ = false;
  i64 line_ = 1; // at begin_
  TableLayout layout_;
  ValueType type_ = ValueType::f64;
  std::deque<TableParser> parsers_; // which it does not move
  std::vector<ParsedLines> parsed_;
  i64 records_ = 0;
  i64 held_ = 0; // bytes of parsed_
};

} // namespace

ReadTensor read_table(const Source &source, const ReadChoices &choices, i64 block) {
  return TableReader(source, choices, block).read();
}

} // namespace td::io
