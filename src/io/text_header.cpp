#include "io/text_header.hpp"

#include <algorithm>

#include <fmt/ranges.h>

#include "core/options.hpp"
#include "core/sentence.hpp"
#include "io/readers.hpp"
#include "io/text.hpp"

namespace td::io {

namespace {

constexpr std::size_t most_words = max_order + 1; // indices and a value

/// The part of a text's beginning that a header takes: its lines, however many comments stand before and between them.
Input head_of(const Source &text, i64 begin, Buffer<char> &room) {
  constexpr i64 most_lines = 4; // of a header: keyword, modes, dims, entries
  constexpr i64 first_size = i64{1} << 16;
  constexpr i64 longest_line = i64{1} << 20;
  constexpr i64 largest = i64{1} << 28; // of comments
  for (i64 size = first_size;; size *= 4) {
    const Range r{begin, std::min(text.size(), begin + size)};
    const Input head{text.name(), text.bytes(r, room)};
    // A file of bytes would give error texts about words that nobody can read.
    if (size == first_size) {
      constexpr std::size_t looked_at = 4096;
      const auto start = head.bytes.first(std::min(looked_at, head.bytes.size()));
      if (std::find(start.begin(), start.end(), '\0') != start.end())
        throw_error(Status::io, "{}: is neither text nor td's binary format nor NumPy .npy", text.name());
    }
    i64 lines = 0;
    Lines all(head.bytes);
    for (Line line; lines <= most_lines && all.next(line);)
      ++lines;
    const std::string_view end(head.bytes.data(), head.bytes.size());
    const bool in_long_line =
        r.size() > longest_line && end.substr(end.size() - longest_line).find('\n') == std::string_view::npos;
    if (r.end == text.size() || lines > most_lines || in_long_line || size >= largest)
      return head;
  }
}

class HeaderReader {
public:
  /// `text` is the beginning of a file's text from byte `begin`; `size` is the file's.
  HeaderReader(const Input &text, i64 begin, i64 size, std::optional<Dialect> wanted)
      : text_(text), begin_(begin), size_(size), wanted_(wanted), lines_(text.bytes) {}

  TextHeader read() {
    refuse_lone_returns();
    const std::string_view first_line(text_.bytes.data(), text_.bytes.size());
    if (is_matrix_market(first_line)) {
      read_matrix_market(first_line.substr(0, first_line.find('\n')));
      return header_;
    }
    if (wanted_ == Dialect::matrix_market)
      throw_error(Status::io,
                  "{}: line 1: begins with {}, but text of dialect 'matrixmarket' begins with "
                  "'%%MatrixMarket'",
                  text_.name, quoted(first_line.substr(0, first_line.find_first_of(" \t\r\n"))));
    if (!lines_.next(line_)) {
      if (is_cut())
        refuse_cut();
      find_dims_comment(text_.bytes.data() + text_.bytes.size());
      if (header_.dims.empty() || !(!wanted_ || wanted_ == Dialect::frostt))
        throw_error(Status::io, "{}: the file is empty, expected a tensor", text_.name);
      header_.body = {size_, size_};
      set_frostt(header_.dims.size());
      return header_;
    }
    words_ = words_of(line_.text, most_words);
    const std::string_view first = words_[0];
    if (wanted_ == Dialect::frostt)
      read_frostt();
    else if (wanted_ == Dialect::parti)
      read_parti();
    else if (first == "sptensor")
      read_sptensor();
    else if (first == "tensor")
      read_tensor();
    else if (first == "ktensor" || first == "matrix")
      throw_error(Status::io, "{}: line {}: is a {}, expected a tensor", text_.name, line_.number, first);
    else if (wanted_)
      throw_error(Status::io, "{}: line {}: begins with {}, but text of dialect '{}' begins with 'sptensor'",
                  text_.name, line_.number, quoted(first), name_of(*wanted_));
    else
      read_numbers();
    return header_;
  }

private:
  bool is_cut() const { return begin_ + static_cast<i64>(text_.bytes.size()) < size_; }

  [[noreturn]] void refuse_cut() const {
    throw_error(Status::io, "{}: line {}: no end within {} bytes, expected the lines that a tensor begins with",
                text_.name, lines_.line_number() + 1, text_.bytes.size());
  }

  /// A file whose lines end with CR alone would be one long line, or one long comment.
  void refuse_lone_returns() const {
    const char *begin = text_.bytes.data();
    const char *end = begin + text_.bytes.size();
    i64 number = 1;
    for (const char *p = begin; p != end; ++number) {
      const char *stop = line_end(p, end);
      if (has_lone_return(p, stop == end ? end : stop + 1))
        throw_error(Status::io, "{}: line {}: a CR (byte 13) within the line, expected lines that end with LF or CR LF",
                    text_.name, number);
      p = stop == end ? end : stop + 1;
    }
  }

  void read_numbers() {
    if (!index_problem(words_[0]).empty())
      throw_error(Status::io,
                  "{}: line {}: begins with {}, expected an index (FROSTT), the number of modes alone (ParTI), or "
                  "'sptensor' or 'tensor' (Tensor Toolbox, GenTen){}",
                  text_.name, line_.number, quoted(words_[0]),
                  line_.text.find_first_of(",;|\t") == std::string_view::npos
                      ? ""
                      : "; of a table, option columns says which columns become modes");
    if (words_.size() == 1)
      read_parti();
    else if (words_.size() == 2)
      throw_error(
          Status::io,
          "{}: line {}: has 2 numbers, expected 3 or more (FROSTT: indices and a value) or 1 (ParTI: the number "
          "of modes)",
          text_.name, line_.number);
    else
      read_frostt();
  }

  void read_frostt() {
    if (words_.size() < 3 || words_.size() > most_words)
      throw_error(words_.size() < 3 ? Status::io : Status::shape,
                  "{}: line {}: has {}, expected {} to {} indices and a value (FROSTT)", text_.name, line_.number,
                  words_.size() < 3 ? count_text(static_cast<i64>(words_.size()), "number", "numbers")
                                    : "too many numbers",
                  min_order, max_order);
    find_dims_comment(line_.text.data());
    if (!header_.dims.empty() && header_.dims.size() + 1 != words_.size())
      throw_error(Status::io, "{}: line {}: has {} numbers, but a comment states {} dims", text_.name, line_.number,
                  words_.size(), header_.dims.size());
    set_frostt(words_.size() - 1);
    header_.body = {begin_, size_};
  }

  void set_frostt(std::size_t order) {
    header_.dialect = Dialect::frostt;
    header_.order = static_cast<int>(order);
    header_.index_base = 1;
    header_.base_reason = "as FROSTT text is";
    header_.dims_reason = header_.dims.empty() ? "dims are the largest indices" : "dims stated in a comment";
  }

  /// Looks in the comments before `stop` for the dims that td's own writer leaves there.
  void find_dims_comment(const char *stop) {
    const char *p = text_.bytes.data();
    for (i64 number = 1; p != stop; ++number) {
      const char *end = line_end(p, stop);
      while (p != end && is_blank(*p))
        ++p;
      const std::string_view line(p, static_cast<std::size_t>(end - p));
      if (line.starts_with(dims_comment))
        take_dims_comment(number, line.substr(dims_comment.size()));
      p = end == stop ? stop : end + 1;
    }
  }

  void take_dims_comment(i64 number, std::string_view rest) {
    std::vector<i64> dims;
    while (!rest.empty() && (is_blank(rest.back()) || rest.back() == '\r'))
      rest.remove_suffix(1);
    for (const auto word : words_of(rest, max_order)) {
      const char *q = word.data();
      i64 dim = 0;
      if (!scan_index(q, q + word.size(), dim) || dim < 1 || !is_blank(rest.front()))
        refuse_dims_comment(number, word);
      dims.push_back(dim);
    }
    if (dims.size() < min_order || dims.size() > max_order || rest.find_first_of("#%/") != std::string_view::npos)
      refuse_dims_comment(number, rest);
    if (!header_.dims.empty() && header_.dims != dims)
      throw_error(Status::io, "{}: line {}: dims {} after '{}', expected {} as in the comment before it", text_.name,
                  number, fmt::join(dims, " "), dims_comment, fmt::join(header_.dims, " "));
    header_.dims = std::move(dims);
  }

  [[noreturn]] void refuse_dims_comment(i64 number, std::string_view came) const {
    throw_error(Status::io, "{}: line {}: {} after '{}', expected {} to {} whole numbers of at least 1", text_.name,
                number, quoted(came), dims_comment, min_order, max_order);
  }

  /// The size line: rows, columns, and for coordinates the number of entries.
  void read_matrix_market(std::string_view first_line) {
    if (wanted_ && wanted_ != Dialect::matrix_market)
      throw_error(Status::io, "{}: line 1: the banner of a Matrix Market file, but option dialect is '{}'", text_.name,
                  name_of(*wanted_));
    const MatrixMarketBanner banner = read_banner(text_.name, first_line);
    header_.dialect = Dialect::matrix_market;
    header_.dense = banner.dense;
    header_.pattern = banner.pattern;
    header_.symmetry = banner.symmetry;
    header_.index_base = 1;
    header_.base_reason = "as Matrix Market text is";
    next_line("the size line");
    const std::size_t numbers = banner.dense ? 2 : 3;
    if (words_.size() != numbers)
      throw_error(Status::io, "{}: line {}: has {}, expected {}", text_.name, line_.number,
                  count_text(static_cast<i64>(words_.size()), "number", "numbers"),
                  banner.dense ? "rows and columns (Matrix Market array)"
                               : "rows, columns and the number of entries (Matrix Market coordinate)");
    words_.resize(2);
    take_dims();
    if (header_.symmetry != Symmetry::general && header_.dims[0] != header_.dims[1])
      throw_error(Status::shape, "{}: line {}: {} x {}, expected as many rows as columns of a symmetric matrix",
                  text_.name, line_.number, header_.dims[0], header_.dims[1]);
    if (!banner.dense) {
      header_.entries = number(words_of(line_.text, most_words)[2], "the number of entries");
      header_.entries_line = line_.number;
    }
    start_body();
  }

  void read_parti() {
    header_.dialect = Dialect::parti;
    read_order_and_dims("ParTI");
    header_.index_base = 1;
    header_.base_reason = "as ParTI text is";
    start_body();
  }

  void read_sptensor() {
    header_.dialect = wanted_ == Dialect::genten ? Dialect::genten : Dialect::toolbox;
    if (words_.size() == 2 && words_[1] == "indices-start-at-zero")
      state_base(0);
    else if (words_.size() == 2 && words_[1] == "indices-start-at-one")
      state_base(1);
    else if (words_.size() > 1)
      throw_error(Status::io,
                  "{}: line {}: {} after 'sptensor', expected nothing, 'indices-start-at-one' or "
                  "'indices-start-at-zero'",
                  text_.name, line_.number, quoted(words_[1]));
    else if (wanted_) {
      header_.index_base = wanted_ == Dialect::genten ? 0 : 1;
      header_.base_reason = fmt::format("as dialect '{}' is", name_of(*wanted_));
    }
    next_line("the number of modes");
    read_order_and_dims("sptensor");
    next_line("the number of entries");
    header_.entries = only_number("the number of entries");
    header_.entries_line = line_.number;
    start_body();
  }

  void state_base(int base) {
    header_.dialect = Dialect::genten;
    header_.index_base = base;
    header_.base_reason = fmt::format("stated in line {}", line_.number);
  }

  void read_tensor() {
    header_.dialect = Dialect::toolbox;
    header_.dense = true;
    if (words_.size() > 1)
      throw_error(Status::io, "{}: line {}: {} after 'tensor', expected nothing", text_.name, line_.number,
                  quoted(words_[1]));
    next_line("the number of modes");
    read_order_and_dims("tensor");
    start_body();
  }

  void next_line(std::string_view what) {
    if (!lines_.next(line_)) {
      if (is_cut())
        refuse_cut();
      throw_error(Status::io, "{}: the text ends after line {}, expected {}", text_.name, lines_.line_number(), what);
    }
    words_ = words_of(line_.text, most_words);
  }

  i64 only_number(std::string_view what) const {
    if (words_.size() != 1)
      throw_error(Status::io, "{}: line {}: has {} or more words, expected {} alone", text_.name, line_.number,
                  words_.size(), what);
    return number(words_[0], what);
  }

  i64 number(std::string_view word, std::string_view what) const {
    const char *p = word.data();
    i64 v = 0;
    if (!scan_index(p, p + word.size(), v))
      throw_error(Status::io, "{}: line {}: {}: {}", text_.name, line_.number, what, index_problem(word));
    return v;
  }

  void read_order_and_dims(std::string_view dialect) {
    const i64 order = only_number("the number of modes");
    const i64 order_line = line_.number;
    if (order < min_order || order > max_order)
      throw_error(Status::shape, "{}: line {}: {}, expected {} to {}", text_.name, order_line,
                  count_text(order, "mode", "modes"), min_order, max_order);
    next_line("the dims");
    if (static_cast<i64>(words_.size()) != order)
      throw_error(Status::io,
                  "{}: line {}: has {}, expected {} dims, because line {} is taken for the number of modes ({})",
                  text_.name, line_.number, count_text(static_cast<i64>(words_.size()), "number", "numbers"), order,
                  order_line, dialect);
    take_dims();
  }

  void take_dims() {
    for (const auto word : words_) {
      const i64 dim = number(word, "a dim");
      if (dim < 1)
        throw_error(Status::shape, "{}: line {}: dim {} of mode {}, expected 1 or more", text_.name, line_.number, dim,
                    header_.dims.size());
      header_.dims.push_back(dim);
    }
    header_.order = static_cast<int>(words_.size());
  }

  void start_body() {
    header_.body = {begin_ + (lines_.position() - text_.bytes.data()), size_};
    header_.body_line = lines_.line_number() + 1;
  }

  const Input &text_;
  i64 begin_;
  i64 size_;
  std::optional<Dialect> wanted_;
  Lines lines_;
  Line line_;
  std::vector<std::string_view> words_;
  TextHeader header_;
};

} // namespace

TextHeader read_text_header(const Source &text, std::optional<Dialect> wanted) {
  const i64 begin = mark_size(text.beginning(3)); // the mark that some editors put before UTF-8
  Buffer<char> room;
  const Input head = head_of(text, begin, room);
  return HeaderReader(head, begin, text.size(), wanted).read();
}

std::string_view name_of(Dialect dialect) noexcept {
  return choice_at("dialect", 1 + static_cast<std::size_t>(dialect));
}

std::string_view dialect_title(Dialect dialect, bool dense) noexcept {
  switch (dialect) {
  case Dialect::frostt:
    return "FROSTT text";
  case Dialect::parti:
    return "ParTI text";
  case Dialect::toolbox:
    return dense ? "Tensor Toolbox tensor text" : "Tensor Toolbox sptensor text";
  case Dialect::matrix_market:
    return dense ? "Matrix Market array text" : "Matrix Market text";
  case Dialect::genten:
    break;
  }
  return "GenTen sptensor text";
}

} // namespace td::io
