// A file goes to the reader that its first bytes ask for.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <system_error>

#include <fmt/ranges.h>

#include "core/sentence.hpp"
#include "io/binary.hpp"
#include "io/container.hpp"
#include "io/npy.hpp"
#include "io/readers.hpp"
#include "io/text.hpp"

namespace td::io {

namespace {
constexpr i64 longest_magic = 8; // of a container
}

ReadChoices ReadChoices::from(const Options &options, int threads) {
  ReadChoices choices;
  choices.dialect = options.choice_behind_auto<Dialect>("dialect");
  choices.index_base = static_cast<int>(options.integer("index_base"));
  if (const std::size_t type = options.choice("value_type"); type != 0)
    choices.value_type = type == 1 ? ValueType::f32 : ValueType::f64;
  choices.table = TableChoices::from(options);
  choices.threads = std::max(threads, 1);
  choices.memory = MemoryBudget(options);
  return choices;
}

void ReadChoices::require_room(i64 values, i64 indices) const {
  MemoryNeed need;
  need.add("values", static_cast<double>(values) * static_cast<double>(size_of(value_type.value_or(ValueType::f64))));
  need.add("indices", 8 * static_cast<double>(indices));
  memory.require("reading a tensor", need);
}

Slab Readers::cut(std::vector<i64> &dims, std::size_t mode) const {
  if (count == 1)
    return {};
  Slab slab{dims, std::vector<i64>(dims.size(), 0)};
  const Range mine = part_of({0, dims[mode]}, number, count);
  slab.offset[mode] = mine.begin;
  dims[mode] = mine.size();
  return slab;
}

i64 ReadTensor::bytes() const {
  if (const auto *array = std::get_if<DenseArray>(&content))
    return array->values.bytes() + labels.bytes();
  const auto &entries = std::get<Entries>(content);
  i64 bytes = entries.values.bytes() + labels.bytes();
  for (const Buffer<i64> &column : entries.indices)
    bytes += column.bytes();
  return bytes;
}

i64 mark_size(std::string_view text) noexcept {
  constexpr std::string_view mark = "\xef\xbb\xbf";
  return text.starts_with(mark) ? static_cast<i64>(mark.size()) : 0;
}

namespace {

/// On machines of their own processes may find different files under one name.
void require_same_file(const Source &source, const Readers &readers) {
  if (readers.own_files)
    return;
  const i64 here = source.size();
  for (const i64 size : readers.gather({&here, 1}))
    if (size != here)
      throw_error(Status::io, "{}: has {} bytes here and {} for another process; expected one file", source.name(),
                  here, size);
}

} // namespace

// A block would need its place.
void require_entries(const std::string &name, const Readers &readers) {
  if (readers.own_files)
    throw_error(Status::unsupported,
                "{}: is dense, expected entries with option file_per_process; td_tensor_create_dense_block takes a "
                "block of each process",
                name);
}

std::vector<i64> common_dims(const std::string &name, const Readers &readers, const FileForm &form) {
  if (!readers.own_files)
    return form.dims;
  // All bring equally many numbers: binary, base, order, and dims or zeros.
  std::vector<i64> here = {form.binary ? 1 : 0, form.index_base, form.order};
  here.insert(here.end(), form.dims.begin(), form.dims.end());
  constexpr std::ptrdiff_t before_dims = 3;
  here.resize(before_dims + max_order);
  const std::vector<i64> all = readers.gather(here);
  const auto described = [](const i64 *file) {
    std::string text = fmt::format("{} of {} modes", file[0] != 0 ? "td binary" : "text", file[2]);
    if (const i64 *dims = file + before_dims; *dims != 0)
      text += fmt::format(", dims {}", fmt::join(dims, dims + file[2], " x "));
    return file[1] < 0 ? text : fmt::format("{}, counted from {}", text, file[1]);
  };
  const i64 *stated = here.data(); // the file whose dims hold
  for (const i64 *file = all.data(); file != all.data() + all.size(); file += here.size()) {
    const bool same = std::equal(file, file + before_dims, stated);
    const bool states = file[before_dims] != 0;
    if (same && states && stated[before_dims] == 0)
      stated = file;
    if (!same || (states && !std::equal(file, file + here.size(), stated)))
      throw_error(Status::io,
                  "{}: is {}, but that of process {} is {}; expected files that differ in their entries alone", name,
                  described(here.data()), (file - all.data()) / std::ssize(here), described(file));
  }
  if (stated[before_dims] == 0)
    return {};
  return {stated + before_dims, stated + before_dims + form.order};
}

ReadTensor read_tensor_bytes(const Source &source, const ReadChoices &choices) {
  const std::string begin = source.beginning(longest_magic);
  if (is_container(begin))
    return read_tensor_binary(source, choices);
  if (is_npy(begin)) {
    require_entries(source.name(), choices.readers);
    NpyArray npy = read_npy(source, choices.value_type, choices.threads, choices.memory, choices.readers);
    if (npy.array.dims.size() < min_order)
      throw_error(Status::shape, "{}: .npy array of {}, expected {} to {}", source.name(),
                  count_text(static_cast<i64>(npy.array.dims.size()), "dim", "dims"), min_order, max_order);
    return {std::move(npy.array), fmt::format("NumPy .npy; dense, {} elements", npy.type), {}, std::move(npy.slab)};
  }
  const TextHeader header = read_text_header(source, choices.dialect);
  if (!header.dense)
    return read_entries_text(source, header, choices);
  require_entries(source.name(), choices.readers);
  return read_array_text(source, header, choices);
}

ReadTensor read_tensor(const std::string &path, const Options &options, int threads, const Readers &readers) {
  const File file(path);
  ReadChoices choices = ReadChoices::from(options, threads);
  choices.readers = readers;
  require_same_file(file.source(), readers);
  if (choices.table.asked()) {
    if (readers.count > 1)
      throw_error(Status::unsupported, "{}: a table is read by one process, not by {} together", path, readers.count);
    const std::string begin = file.source().beginning(longest_magic);
    if (is_container(begin) || is_npy(begin))
      throw_error(Status::unsupported, "{}: is no table but a {} file, which is read without option 'columns'", path,
                  is_npy(begin) ? "NumPy" : "td binary");
    ReadTensor tensor = read_table(file.source(), choices);
    file.source().require_unchanged();
    return tensor;
  }
  const Plain plain(file.source(), choices.memory);
  choices.memory = choices.memory.beside(plain.bytes());
  ReadTensor tensor = read_tensor_bytes(plain.source(), choices);
  file.source().require_unchanged();
  if (plain.was_gzip())
    tensor.source = "gzip of " + tensor.source;
  return tensor;
}

Ktensor read_ktensor_bytes(const Source &source, const MemoryBudget &budget) {
  const std::string begin = source.beginning(longest_magic);
  if (is_container(begin))
    return read_ktensor_binary(source, budget);
  // What is no ktensor is refused from its beginning, however large it is.
  constexpr i64 enough = i64{1} << 16;
  const std::string head = source.beginning(enough);
  const auto text_of = [](const Input &all) {
    const auto mark = static_cast<std::size_t>(mark_size({all.bytes.data(), all.bytes.size()}));
    return Input{all.name, all.bytes.subspan(mark)};
  };
  const Input text = text_of({source.name(), head});
  std::string_view word;
  Words words(text);
  if (words.next(word) && word != "ktensor")
    return read_ktensor_text(text, budget);
  const Whole whole(source);
  return read_ktensor_text(text_of(whole.input()), budget);
}

Ktensor read_ktensor(const std::string &path, const MemoryBudget &budget) {
  std::error_code unknown; // a path that cannot be looked at is left to File to complain about
  if (std::filesystem::is_directory(path, unknown))
    return read_ktensor_folder(path, budget);
  const File file(path);
  const Plain plain(file.source(), budget);
  Ktensor k = read_ktensor_bytes(plain.source(), budget.beside(plain.bytes()));
  file.source().require_unchanged();
  return k;
}

void check_finite(const Ktensor &k, const std::string &name) {
  for (const double weight : k.weights())
    if (!std::isfinite(weight))
      throw_error(Status::io, "{}: a weight is {}, expected a finite number", name, weight);
  for (int m = 0; m < k.order(); ++m) {
    const ConstMatrix a = k.factor(m);
    dispatch(k.type(), [&](auto zero) {
      using T = decltype(zero);
      for (i64 i = 0; i < a.rows; ++i)
        for (i64 r = 0; r < a.cols; ++r)
          if (!std::isfinite(a.row<T>(i)[r]))
            throw_error(Status::io, "{}: factor {}: entry at row {}, column {} is {}, expected a finite number", name,
                        m, k.rows(m).begin + i, r, a.row<T>(i)[r]);
    });
  }
}

Record read_record(const std::string &path, const MemoryBudget &budget, const Readers &readers) {
  const File file(path);
  if (!is_container(file.source().beginning(longest_magic)))
    throw_error(Status::io, "{}: is not a td binary file, expected a checkpoint", path);
  require_same_file(file.source(), readers);
  Record record = read_record_binary(file.source(), budget, readers);
  file.source().require_unchanged();
  return record;
}

} // namespace td::io
