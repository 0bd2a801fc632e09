#include "io/binary.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/checked.hpp"
#include "core/parallel.hpp"
#include "core/sentence.hpp"
#include "io/container.hpp"
#include "io/dense_order.hpp"

namespace td::io {

namespace {

constexpr std::string_view series_prefix = "series.";
constexpr std::string_view text_prefix = "text.";

std::string numbered(std::string_view name, std::size_t number) { return fmt::format("{}.{}", name, number); }

ValueType stored_type(const Section &section) {
  return section.type == ElementType::f32 ? ValueType::f32 : ValueType::f64;
}

void add_dims(ContainerWriter &file, std::span<const i64> dims) {
  file.add("dims", ElementType::i64, static_cast<i64>(dims.size()), dims.data());
}

std::vector<i64> read_dims(const ContainerReader &file, i64 smallest_order) {
  const Section &section = file.section("dims");
  if (section.count < smallest_order || section.count > max_order)
    file.refuse(
        fmt::format("{}, expected {} to {}", count_text(section.count, "dim", "dims"), smallest_order, max_order));
  std::vector<i64> dims(static_cast<std::size_t>(section.count));
  file.read_indices(section, dims.data(), 1);
  for (const i64 dim : dims)
    if (dim < 1)
      file.refuse(fmt::format("a dim is {}, expected 1 or more", dim));
  return dims;
}

i64 read_whole_number(const ContainerReader &file, std::string_view name, i64 smallest, i64 largest) {
  const Section &section = file.section(name);
  i64 number = 0;
  if (section.count != 1)
    file.refuse(fmt::format("section {}: {} numbers, expected 1", name, section.count));
  file.read_indices(section, &number, 1);
  if (number < smallest || number > largest)
    file.refuse(fmt::format("{} is {}, expected {} to {}", name, number, smallest, largest));
  return number;
}

const Section &section_of_count(const ContainerReader &file, const std::string &name, i64 count) {
  const Section &section = file.section(name);
  if (section.count != count)
    file.refuse(
        fmt::format("section {}: {}, expected {}", name, count_text(section.count, "element", "elements"), count));
  return section;
}

void add_labels(ContainerWriter &file, const Labels &labels, int order) {
  for (int m = 0; m < order; ++m) {
    const auto mode = static_cast<std::size_t>(m);
    if (const std::string &name = labels.name(m); !name.empty())
      file.add(numbered("name", mode), ElementType::text, static_cast<i64>(name.size()), name.data());
    if (const LabelList *list = labels.list(m))
      file.add(numbered("labels", mode), ElementType::text, static_cast<i64>(list->text().size()), list->text().data());
  }
}

Labels read_labels(const ContainerReader &file, std::span<const i64> dims) {
  Labels labels(static_cast<int>(dims.size()));
  for (std::size_t m = 0; m < dims.size(); ++m) {
    const auto mode = static_cast<int>(m);
    if (const Section *section = file.find(numbered("name", m))) {
      const std::string name = file.read_text(*section);
      if (!is_utf8(name) || name.find('\0') != std::string::npos)
        file.refuse(fmt::format("the name of mode {}, '{}', is not UTF-8 without NUL", m, escaped(name)));
      labels.set_name(mode, name);
    }
    if (const Section *section = file.find(numbered("labels", m))) {
      const std::string text = file.read_text(*section);
      if (const std::string problem = labels_problem(text, dims[m]); !problem.empty())
        file.refuse(fmt::format("labels of mode {}: {}", m, problem));
      labels.set_list(mode, LabelList::copy_of(text, dims[m]));
    }
  }
  return labels;
}

void add_indices(ContainerWriter &file, const EntriesView &entries, std::size_t mode, bool narrow) {
  const std::string name = numbered("index", mode);
  const void *column = entries.indices[mode];
  if (narrow && entries.index_type == IndexType::i64) {
    const i64 *from = static_cast<const i64 *>(column);
    file.add(name, ElementType::i32, entries.nnz, [&](Range r, char *out) {
      std::transform(from + r.begin, from + r.end, reinterpret_cast<std::int32_t *>(out),
                     [](i64 index) { return static_cast<std::int32_t>(index); });
    });
  } else {
    file.add(name, entries.index_type == IndexType::i32 ? ElementType::i32 : ElementType::i64, entries.nnz, column);
  }
}

ReadTensor read_sparse(const ContainerReader &file, const ReadChoices &choices) {
  Entries x;
  x.dims = read_dims(file, min_order);
  x.index_base = static_cast<std::int32_t>(read_whole_number(file, "index_base", 0, 1));
  const Section &values = file.section("values");
  common_dims(file.name(), choices.readers, {true, static_cast<int>(x.dims.size()), x.dims});
  const Readers readers = choices.readers.own_files ? Readers{} : choices.readers;
  const i64 count = readers.own(values.count).size();
  choices.require_room(count, count * static_cast<i64>(x.dims.size()));
  for (std::size_t m = 0; m < x.dims.size(); ++m) {
    const Section &column = section_of_count(file, numbered("index", m), values.count);
    x.indices.emplace_back(count, "the indices of a binary file");
    file.read_indices(column, x.indices.back().data(), choices.threads, readers);
  }
  x.values = ValueBuffer(choices.value_type.value_or(stored_type(values)), count, "the values of a binary file");
  file.read_values(values, x.values.type(), x.values.data(), choices.threads, readers);
  std::string source =
      fmt::format("td binary version {}; sparse, {} values", container_version, name_of(stored_type(values)));
  Labels labels = read_labels(file, x.dims);
  return {std::move(x), std::move(source), std::move(labels)};
}

ReadTensor read_dense(const ContainerReader &file, const ReadChoices &choices) {
  require_entries(file.name(), choices.readers);
  DenseArray x;
  x.dims = read_dims(file, min_order);
  const auto elements = checked_product(x.dims);
  if (!elements)
    file.refuse("the dims have a product above 2^63 - 1");
  const Section &values = section_of_count(file, "values", *elements);
  Readers readers = choices.readers;
  readers.unit = *elements / x.dims.back();
  Labels labels = read_labels(file, x.dims);
  Slab slab = readers.cut(x.dims, x.dims.size() - 1);
  const i64 count = readers.own(*elements).size();
  choices.require_room(count, 0);
  x.values = ValueBuffer(choices.value_type.value_or(stored_type(values)), count, "the values of a binary file");
  file.read_values(values, x.values.type(), x.values.data(), choices.threads, readers);
  std::string source =
      fmt::format("td binary version {}; dense, {} values", container_version, name_of(stored_type(values)));
  return {std::move(x), std::move(source), std::move(labels), std::move(slab)};
}

void add_ktensor(ContainerWriter &file, const Ktensor &k) {
  add_dims(file, k.dims());
  file.add("weights", ElementType::f64, k.rank(), k.weights().data());
  for (int m = 0; m < k.order(); ++m) {
    const ConstMatrix a = k.factor(m); // rows without gaps
    const Range rows = k.rows(m);
    file.add(numbered("factor", static_cast<std::size_t>(m)), element_type(a.type),
             k.dims()[static_cast<std::size_t>(m)] * a.cols, {rows.begin * a.cols, rows.end * a.cols}, a.data);
  }
  add_labels(file, k.labels(), k.order());
}

Ktensor read_factors(const ContainerReader &file, i64 smallest_order, const MemoryBudget &budget,
                     const Readers &readers = {}) {
  const std::vector<i64> dims = read_dims(file, smallest_order);
  const Section &weights = file.section("weights");
  if (dims.empty() && weights.count == 0) // a record may go without factors
    return {};
  std::vector<const Section *> factors;
  for (std::size_t m = 0; m < dims.size(); ++m) {
    const auto elements = checked_multiply(dims[m], weights.count);
    const std::string name = numbered("factor", m);
    if (!elements)
      file.refuse(fmt::format("{}: {} x {} elements are above 2^63 - 1", name, dims[m], weights.count));
    factors.push_back(&section_of_count(file, name, *elements));
    if (factors[m]->type != factors[0]->type)
      file.refuse(fmt::format("{} is not of the type of factor.0", name));
  }
  if (dims.empty() || weights.count == 0)
    file.refuse(fmt::format("{} and {}, expected both or none",
                            count_text(static_cast<i64>(dims.size()), "dim", "dims"),
                            count_text(weights.count, "weight", "weights")));
  Ktensor k(dims, weights.count, stored_type(*factors[0]), budget, {readers.number, readers.count});
  Readers of_rows = readers;
  of_rows.unit = k.rank();
  file.read_values(weights, ValueType::f64, k.weights().data(), 1);
  for (std::size_t m = 0; m < dims.size(); ++m)
    file.read_values(*factors[m], k.type(), k.factor(static_cast<int>(m)).data, available_threads(), of_rows);
  check_finite(k, file.name());
  k.labels() = read_labels(file, dims);
  return k;
}

} // namespace

ReadTensor read_tensor_binary(const Source &source, const ReadChoices &choices) {
  const ContainerReader file(source);
  if (file.kind() == ContainerKind::sparse)
    return read_sparse(file, choices);
  if (file.kind() == ContainerKind::dense)
    return read_dense(file, choices);
  file.refuse(fmt::format("holds a {}, expected a tensor", name_of(file.kind())));
}

void write_tensor_binary(const EntriesView &entries, const std::string &path, const Labels &labels) {
  ContainerWriter file(path, ContainerKind::sparse);
  add_dims(file, entries.dims);
  const i64 base = entries.index_base;
  file.add("index_base", ElementType::i64, 1, &base);
  const bool narrow = std::all_of(entries.dims.begin(), entries.dims.end(),
                                  [](i64 dim) { return dim <= std::numeric_limits<std::int32_t>::max(); });
  for (std::size_t m = 0; m < entries.dims.size(); ++m)
    add_indices(file, entries, m, narrow);
  file.add("values", element_type(entries.value_type), entries.nnz, entries.values);
  add_labels(file, labels, entries.order());
  file.commit();
}

void write_tensor_binary(const DenseArrayView &array, const std::string &path, const Labels &labels) {
  ContainerWriter file(path, ContainerKind::dense);
  add_dims(file, array.dims);
  const i64 count = element_count(array);
  const ElementType type = element_type(array.value_type);
  if (is_first_fastest(array))
    file.add("values", type, count, array.values);
  else
    file.add("values", type, count, [&](Range r, char *out) { gather(array, r, out); });
  add_labels(file, labels, array.order());
  file.commit();
}

Ktensor read_ktensor_binary(const Source &source, const MemoryBudget &budget) {
  const ContainerReader file(source);
  if (file.kind() != ContainerKind::ktensor && file.kind() != ContainerKind::record)
    file.refuse(fmt::format("holds a {}, expected a ktensor", name_of(file.kind())));
  return read_factors(file, min_order, budget);
}

void write_ktensor_binary(const Ktensor &k, const std::string &path, const Writers &writers) {
  ContainerWriter file(path, ContainerKind::ktensor, writers);
  add_ktensor(file, k);
  file.commit();
}

Record read_record_binary(const Source &source, const MemoryBudget &budget, const Readers &readers) {
  const ContainerReader file(source);
  if (file.kind() != ContainerKind::record)
    file.refuse(fmt::format("holds a {}, expected a checkpoint", name_of(file.kind())));
  Record record;
  record.factors = read_factors(file, 0, budget, readers);
  for (const Section &section : file.sections()) {
    if (section.name.starts_with(series_prefix)) {
      std::vector<double> numbers(static_cast<std::size_t>(section.count));
      file.read_values(section, ValueType::f64, numbers.data(), 1);
      record.series.emplace_back(section.name.substr(series_prefix.size()), std::move(numbers));
    } else if (section.name.starts_with(text_prefix)) {
      record.text.emplace_back(section.name.substr(text_prefix.size()), file.read_text(section));
    }
  }
  return record;
}

void write_record(const Record &record, const std::string &path, const Writers &writers) {
  ContainerWriter file(path, ContainerKind::record, writers);
  add_ktensor(file, record.factors);
  for (const auto &[name, numbers] : record.series)
    file.add(fmt::format("{}{}", series_prefix, name), ElementType::f64, static_cast<i64>(numbers.size()),
             numbers.data());
  for (const auto &[name, text] : record.text)
    file.add(fmt::format("{}{}", text_prefix, name), ElementType::text, static_cast<i64>(text.size()), text.data());
  file.commit();
}

} // namespace td::io
