// The numbers of dense text, first index fastest, however they are spread over lines.
#include "io/readers.hpp"
#include "io/text.hpp"
#include "io/text_chunks.hpp"

#include "core/checked.hpp"

namespace td::io {

namespace {

/// Calls take(p, end, line) at each word until it gives false; it moves p behind the word. Gives the lines passed.
template <class Take> i64 each_word(std::span<const char> text, Take &&take) {
  const char *p = text.data();
  const char *end = p + text.size();
  i64 line = 0;
  while (p != end) {
    p = skip_blanks(p, end);
    if (p != end && *p != '\n' && !at_comment(p, end)) {
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

template <class T> void parse_values(Chunk &chunk, T *values) {
  i64 k = chunk.first_record;
  each_word(chunk.text, [&](const char *&p, const char *end, i64 line) {
    const char *begin = p;
    if (scan_value(p, end, values[k++]))
      return true;
    chunk.problem = value_problem({begin, word_end(begin, end)}, value_type_of<T>);
    chunk.problem_line = chunk.first_line + line;
    return false;
  });
}

} // namespace

ReadTensor read_array_text(const Input &input, const TextHeader &header, const ReadChoices &choices) {
  const auto elements = checked_product(header.dims);
  if (!elements)
    throw_error(Status::shape, "{}: the dims have a product above 2^63 - 1", input.name);
  Chunks chunks(header.body, header.body_line, choices.threads, count_words);
  if (chunks.records() != *elements)
    throw_error(Status::io, "{}: the dims make {} values, but {} follow", input.name, *elements, chunks.records());

  choices.require_room(*elements, 0);
  DenseArray x;
  x.dims = header.dims;
  x.values = ValueBuffer(choices.value_type.value_or(ValueType::f64), *elements, "the values of a text file");
  chunks.parse(input.name, choices.threads, [&](Chunk &chunk, std::size_t) {
    dispatch(x.values.type(), [&](auto zero) { parse_values(chunk, x.values.as<decltype(zero)>()); });
  });
  return {std::move(x), "Tensor Toolbox tensor text; dense, first index fastest"};
}

} // namespace td::io
