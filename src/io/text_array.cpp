// The numbers of dense text, first index fastest, however they are spread over lines.
#include "io/readers.hpp"
#include "io/text.hpp"
#include "io/text_chunks.hpp"

#include "core/checked.hpp"
#include "core/sentence.hpp"
#include "io/matrix_market.hpp"

namespace td::io {

namespace {

/// Calls take(p, end, line) at each word until it gives false; it moves p behind the word. Gives the lines passed.
template <class Take> i64 each_word(std::span<const char> text, Take &&take) {
  const char *p = text.data();
  const char *end = p + text.size();
  i64 line = 0;
  while (p != end) {
    p = skip_blanks(p, end);
    if (!at_line_end(p, end) && !at_comment(p, end)) {
      if (!take(p, end, line))
        break;
      continue;
    }
    p = line_end(p, end);
    if (p != end)
      ++p;
    ++line;
  }
  return line;
}

const char *word_end(const char *p, const char *end) {
  while (!at_word_end(p, end))
    ++p;
  return p;
}

Count count_words(std::span<const char> text) {
  Count count;
  count.lines = each_word(text, [&](const char *&p, const char *end, i64) {
    p = word_end(p, end);
    ++count.records;
    return true;
  });
  return count;
}

template <class T> void parse_values(std::span<const char> text, Chunk &chunk, T *values) {
  each_word(text, [&](const char *&p, const char *end, i64 line) {
    const char *begin = p;
    const auto k = chunk.next_record();
    if (!k)
      return false;
    if (scan_value(p, end, values[*k]))
      return true;
    chunk.problem = value_problem({begin, word_end(begin, end)}, value_type_of<T>);
    chunk.problem_line = chunk.first_line + line;
    return false;
  });
}

} // namespace

// Where a number stands is known only once all before it are read: the first of several readers reads all.
ReadTensor read_array_text(const Source &source, const TextHeader &header, const ReadChoices &choices) {
  const auto elements = checked_product(header.dims);
  if (!elements)
    throw_error(Status::shape, "{}: the dims have a product above 2^63 - 1", source.name());
  std::string what = fmt::format("{}; dense, first index fastest{}", dialect_title(header.dialect, true),
                                 name_in_source(header.symmetry));
  DenseArray x;
  x.dims = header.dims;
  const ValueType type = choices.value_type.value_or(ValueType::f64);
  if (choices.readers.number > 0) {
    x.dims.back() = 0;
    x.values = ValueBuffer(type, 0, "nothing");
    return {std::move(x), std::move(what), {}, {header.dims, std::vector<i64>(header.dims.size(), 0)}};
  }
  const i64 given = values_in_file(header.symmetry, header.dims, *elements);
  Chunks chunks(source, header.body, header.body_line, choices.threads, count_words);
  if (chunks.records() != given)
    throw_error(Status::io, "{}: the dims make {}, but {} {}", source.name(), count_text(given, "value", "values"),
                chunks.records(), chunks.records() == 1 ? "follows" : "follow");
  choices.require_room(*elements, 0);
  x.values = ValueBuffer(type, *elements, "the values of a text file");
  chunks.parse(choices.threads, [&](std::span<const char> text, Chunk &chunk, std::size_t) {
    dispatch(type, [&](auto zero) { parse_values(text, chunk, x.values.as<decltype(zero)>()); });
  });
  mirror_array(header.symmetry, header.dims[0], x.values);
  return {std::move(x), std::move(what)};
}

} // namespace td::io
