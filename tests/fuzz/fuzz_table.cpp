// A byte of options, a line that is option "columns", one that is option "value", and a table. Read in small blocks it
// must give what it gives in one.
#include <algorithm>
#include <string>

#include "expect.hpp"

using namespace td;

namespace {

/// All of what was read, or why it was not.
std::string outcome(const io::Input &table, const io::ReadChoices &choices, i64 block) {
  try {
    const io::ReadTensor tensor = io::read_table(table, choices, block);
    tdtest::expect_sound(tensor);
    tdtest::expect_in_range(tensor);
    const auto &x = std::get<Entries>(tensor.content);
    std::string all = tensor.source;
    for (std::size_t m = 0; m < x.dims.size(); ++m) {
      const LabelList *labels = tensor.labels.list(static_cast<int>(m));
      tdtest::expect(labels != nullptr && labels->size() == x.dims[m], "as many labels as indices");
      tdtest::expect(labels_problem(labels->text(), x.dims[m]).empty(), "labels are labels");
      all += "\n" + tensor.labels.name(static_cast<int>(m)) + "\n" + std::string(labels->text());
      for (const i64 index : x.indices[m])
        all += " " + std::to_string(index);
    }
    return all.append(static_cast<const char *>(x.values.data()), static_cast<std::size_t>(x.values.bytes()));
  } catch (const Error &e) {
    tdtest::expect(e.what()[0] != '\0' && e.status() != Status::internal,
                   "a refusal has a sentence and is no defect of td");
    return e.what();
  }
}

bool is_too_long(const std::string &text) { return text.find("has more than") != std::string::npos; }

std::string take_line(const char *&p, const char *end) {
  const char *stop = std::find(p, end, '\n');
  const std::string line(p, stop);
  p = stop == end ? end : stop + 1;
  return line;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  if (size == 0)
    return 0;
  constexpr std::string_view separators = ",\t;|";
  constexpr io::TableHeader headers[] = {io::TableHeader::automatic, io::TableHeader::yes, io::TableHeader::no,
                                         io::TableHeader::automatic};
  io::ReadChoices choices;
  choices.threads = (data[0] & 128) != 0 ? 2 : 1;
  if (const std::size_t place = data[0] & 7; place >= 1 && place <= separators.size())
    choices.table.separator = separators[place - 1];
  choices.table.header = headers[data[0] >> 3 & 3];
  choices.table.quotes = (data[0] & 32) == 0;
  if ((data[0] & 64) != 0)
    choices.value_type = ValueType::f32;
  const auto *p = reinterpret_cast<const char *>(data) + 1;
  const char *end = p + size - 1;
  choices.table.columns = take_line(p, end);
  choices.table.value = take_line(p, end);
  const io::Input table{"input", {p, end}};
  const i64 whole = end - p + 1;
  const std::string one = outcome(table, choices, whole);
  if (table.bytes.size() > 1 && table.bytes[0] == '\x1f') // of gzip it is not known how much there is
    return 0;
  const std::string other = outcome(table, choices, std::min<i64>(whole, 48));
  tdtest::expect(one == other || is_too_long(one) || is_too_long(other), "blocks change nothing");
  return 0;
}
