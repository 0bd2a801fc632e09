// Ktensors as text, as Tensor Toolbox and pyttb write them and GenTen reads them.
#include "core/checked.hpp"
#include "core/sentence.hpp"
#include "io/readers.hpp"
#include "io/text.hpp"
#include "io/text_writer.hpp"
#include "io/writers.hpp"

namespace td::io {

namespace {

class KtensorReader {
public:
  KtensorReader(const Input &text, const MemoryBudget &budget) : text_(text), budget_(budget), words_(text) {}

  Ktensor read() {
    std::string_view word;
    if (!words_.next(word))
      refuse("the file is empty, expected a ktensor");
    if (word != "ktensor")
      refuse(fmt::format("begins with {}, expected 'ktensor'", quoted(word)));
    const i64 order = words_.expect_index("the number of modes");
    if (order < min_order || order > max_order)
      refuse(fmt::format("{}, expected {} to {}", count_text(order, "mode", "modes"), min_order, max_order));
    std::vector<i64> dims;
    while (static_cast<i64>(dims.size()) < order)
      dims.push_back(positive("a dim"));
    const i64 rank = positive("the rank");
    check_room(dims, rank);

    Ktensor k(dims, rank, ValueType::f64, budget_);
    for (double &weight : k.weights())
      weight = words_.expect_value("a weight");
    for (int m = 0; m < k.order(); ++m)
      read_factor(m, k.factor(m));
    if (words_.next(word))
      refuse(fmt::format("{} after the last factor, expected the end", quoted(word)));
    return k;
  }

private:
  [[noreturn]] void refuse(const std::string &why) const {
    throw_error(Status::io, "{}: line {}: {}", text_.name, words_.line_number(), why);
  }

  i64 positive(std::string_view what) {
    const i64 number = words_.expect_index(what);
    if (number < 1)
      refuse(fmt::format("{} is {}, expected 1 or more", what, number));
    return number;
  }

  /// Keeps a few bytes from asking for terabytes: each number takes two characters.
  void check_room(std::span<const i64> dims, i64 rank) const {
    const auto most = static_cast<i64>(text_.bytes.size()) / 2 + 1;
    i64 numbers = rank;
    for (const i64 dim : dims) {
      const auto elements = checked_multiply(dim, rank);
      if (!elements || *elements > most || (numbers += *elements) > most)
        refuse(fmt::format("the dims and rank need more numbers than {} bytes of text can hold", text_.bytes.size()));
    }
  }

  void read_factor(int mode, Matrix a) {
    const std::string_view word = words_.expect("'matrix'");
    if (word != "matrix" && word != "facmatrix") // the latter is GenTen's
      refuse(fmt::format("{}, expected 'matrix' before factor {}", quoted(word), mode));
    const i64 order = words_.expect_index("the number of a matrix's modes");
    const i64 rows = words_.expect_index("the number of rows");
    const i64 cols = words_.expect_index("the number of columns");
    if (order != 2 || rows != a.rows || cols != a.cols)
      refuse(fmt::format("factor {} has {} and is {} x {}, expected 2 and {} x {}", mode,
                         count_text(order, "mode", "modes"), rows, cols, a.rows, a.cols));
    for (i64 i = 0; i < rows; ++i)
      for (i64 r = 0; r < cols; ++r)
        a.row<double>(i)[r] = words_.expect_value("an entry of a factor");
  }

  const Input &text_;
  const MemoryBudget &budget_;
  Words words_;
};

} // namespace

Ktensor read_ktensor_text(const Input &text, const MemoryBudget &budget) { return KtensorReader(text, budget).read(); }

void append_rows(std::string &out, ConstMatrix a, Range rows) {
  dispatch(a.type, [&](auto zero) {
    for (i64 i = rows.begin; i < rows.end; ++i) {
      const auto *row = a.row<decltype(zero)>(i);
      for (i64 r = 0; r < a.cols; ++r) {
        append_number(out, row[r]);
        out += r + 1 < a.cols ? ' ' : '\n';
      }
    }
  });
}

void write_ktensor_text(const Ktensor &k, const std::string &path, const Writers &writers) {
  if (!writers.first())
    return send_blocks(k, writers);
  TextWriter file(path);
  std::string head = fmt::format("ktensor\n{}\n", k.order());
  for (int m = 0; m < k.order(); ++m) {
    append_number(head, k.dims()[static_cast<std::size_t>(m)]);
    head += m + 1 < k.order() ? ' ' : '\n';
  }
  head += fmt::format("{}\n", k.rank());
  append_rows(head, {k.weights().data(), ValueType::f64, 1, k.rank(), k.rank()}, {0, 1});
  file.put(head);
  for (int m = 0; m < k.order(); ++m) {
    file.put(fmt::format("matrix\n2\n{} {}\n", k.dims()[static_cast<std::size_t>(m)], k.rank()));
    for_blocks(k, m, writers, [&](const ConstMatrix &a) {
      file.put_lines(a.rows, [&](Range rows, std::string &out) { append_rows(out, a, rows); });
    });
  }
  file.commit();
}

} // namespace td::io
