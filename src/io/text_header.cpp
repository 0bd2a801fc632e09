#include "io/text_header.hpp"

#include "io/text.hpp"

namespace td::io {

namespace {

constexpr std::size_t most_words = max_order + 1; // indices and a value

class HeaderReader {
public:
  HeaderReader(const Input &text, std::string_view wanted) : text_(text), wanted_(wanted), lines_(text.bytes) {}

  TextHeader read() {
    if (!lines_.next(line_)) {
      find_dims_comment(text_.bytes.data() + text_.bytes.size());
      if (header_.dims.empty() || !(wanted_ == "auto" || wanted_ == "frostt"))
        throw_error(Status::io, "{}: the file is empty, expected a tensor", text_.name);
      set_frostt(header_.dims.size());
      return header_;
    }
    words_ = words_of(line_.text, most_words);
    refuse_binary();
    const std::string_view first = words_[0];
    if (wanted_ == "frostt")
      read_frostt();
    else if (wanted_ == "parti")
      read_parti();
    else if (first == "sptensor")
      read_sptensor();
    else if (first == "tensor")
      read_tensor();
    else if (first == "ktensor" || first == "matrix")
      throw_error(Status::io, "{}: line {}: is a {}, expected a tensor", text_.name, line_.number, first);
    else if (wanted_ != "auto")
      throw_error(Status::io, "{}: line {}: begins with {}, but text of dialect '{}' begins with 'sptensor'",
                  text_.name, line_.number, quoted(first), wanted_);
    else
      read_numbers();
    return header_;
  }

private:
  /// A file of bytes would give error texts about words that nobody can read.
  void refuse_binary() const {
    constexpr std::size_t looked_at = 4096;
    for (const char c : text_.bytes.first(std::min(looked_at, text_.bytes.size())))
      if (c == '\0')
        throw_error(Status::io, "{}: is neither text nor td's binary format nor NumPy .npy", text_.name);
  }

  void read_numbers() {
    if (!index_problem(words_[0]).empty())
      throw_error(Status::io,
                  "{}: line {}: begins with {}, expected an index (FROSTT), the number of modes alone (ParTI), or "
                  "'sptensor' or 'tensor' (Tensor Toolbox, GenTen)",
                  text_.name, line_.number, quoted(words_[0]));
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
                  "{}: line {}: has {} numbers, expected {} to {} indices and a value (FROSTT)", text_.name,
                  line_.number, words_.size() < 3 ? std::to_string(words_.size()) : "too many", min_order, max_order);
    find_dims_comment(line_.text.data());
    if (!header_.dims.empty() && header_.dims.size() + 1 != words_.size())
      throw_error(Status::io, "{}: line {}: has {} numbers, but a comment states {} dims", text_.name, line_.number,
                  words_.size(), header_.dims.size());
    set_frostt(words_.size() - 1);
    header_.body = text_.bytes;
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
    while (p != stop) {
      const char *end = line_end(p, stop);
      const std::string_view line(p, static_cast<std::size_t>(end - p));
      if (line.starts_with(dims_comment)) {
        std::vector<i64> dims;
        for (const auto word : words_of(line.substr(dims_comment.size()), max_order)) {
          const char *q = word.data();
          i64 dim = 0;
          if (!scan_index(q, q + word.size(), dim) || dim < 1)
            return; // somebody else's comment
          dims.push_back(dim);
        }
        if (dims.size() >= min_order && dims.size() <= max_order)
          header_.dims = std::move(dims);
        return;
      }
      p = end == stop ? stop : end + 1;
    }
  }

  void read_parti() {
    header_.dialect = Dialect::parti;
    read_order_and_dims("ParTI");
    header_.index_base = 1;
    header_.base_reason = "as ParTI text is";
    start_body();
  }

  void read_sptensor() {
    header_.dialect = wanted_ == "genten" ? Dialect::genten : Dialect::toolbox;
    if (words_.size() == 2 && words_[1] == "indices-start-at-zero")
      state_base(0);
    else if (words_.size() == 2 && words_[1] == "indices-start-at-one")
      state_base(1);
    else if (words_.size() > 1)
      throw_error(Status::io,
                  "{}: line {}: {} after 'sptensor', expected nothing, 'indices-start-at-one' or "
                  "'indices-start-at-zero'",
                  text_.name, line_.number, quoted(words_[1]));
    else if (wanted_ != "auto") {
      header_.index_base = wanted_ == "genten" ? 0 : 1;
      header_.base_reason = fmt::format("as dialect '{}' is", wanted_);
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
    if (!lines_.next(line_))
      throw_error(Status::io, "{}: the text ends after line {}, expected {}", text_.name, lines_.line_number(), what);
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
      throw_error(Status::shape, "{}: line {}: {} modes, expected {} to {}", text_.name, order_line, order, min_order,
                  max_order);
    next_line("the dims");
    if (static_cast<i64>(words_.size()) != order)
      throw_error(Status::io,
                  "{}: line {}: has {} numbers, expected {} dims, because line {} is taken for the number "
                  "of modes ({})",
                  text_.name, line_.number, words_.size(), order, order_line, dialect);
    for (const auto word : words_) {
      const i64 dim = number(word, "a dim");
      if (dim < 1)
        throw_error(Status::shape, "{}: line {}: dim {} of mode {}, expected 1 or more", text_.name, line_.number, dim,
                    header_.dims.size());
      header_.dims.push_back(dim);
    }
    header_.order = static_cast<int>(order);
  }

  void start_body() {
    const char *end = text_.bytes.data() + text_.bytes.size();
    header_.body = {lines_.position(), end};
    header_.body_line = lines_.line_number() + 1;
  }

  const Input &text_;
  std::string_view wanted_;
  Lines lines_;
  Line line_;
  std::vector<std::string_view> words_;
  TextHeader header_;
};

} // namespace

TextHeader read_text_header(const Input &text, std::string_view dialect) { return HeaderReader(text, dialect).read(); }

std::string_view dialect_title(Dialect dialect) noexcept {
  switch (dialect) {
  case Dialect::frostt:
    return "FROSTT text";
  case Dialect::parti:
    return "ParTI text";
  case Dialect::toolbox:
    return "Tensor Toolbox sptensor text";
  case Dialect::genten:
    break;
  }
  return "GenTen sptensor text";
}

} // namespace td::io
