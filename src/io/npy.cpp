#include "io/npy.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "core/checked.hpp"
#include "core/parallel.hpp"
#include "core/sentence.hpp"
#include "io/dense_order.hpp"
#include "io/text.hpp"

namespace td::io {

namespace {

constexpr std::string_view magic = "\x93NUMPY";

struct Declared {
  std::string_view type;
  std::optional<bool> fortran_order;
  std::optional<std::vector<i64>> shape;
};

/// Reads the Python dict literal of the header: {'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }
class DictReader {
public:
  DictReader(const std::string &name, std::string_view text) : name_(name), text_(text) {}

  Declared read() {
    expect('{');
    while (!take('}')) {
      const std::string_view key = quoted_text();
      expect(':');
      if (key == "descr")
        declared_.type = quoted_text();
      else if (key == "fortran_order")
        declared_.fortran_order = truth();
      else if (key == "shape")
        declared_.shape = tuple();
      else
        refuse(fmt::format("key {}, expected descr, fortran_order or shape", quoted(key)));
      if (!take(',') && peek() != '}')
        refuse("expected , or } after a value");
    }
    if (declared_.type.empty() || !declared_.fortran_order || !declared_.shape)
      refuse("expected the keys descr, fortran_order and shape");
    return declared_;
  }

private:
  [[noreturn]] void refuse(const std::string &why) const { throw_error(Status::io, "{}: .npy header: {}", name_, why); }

  char peek() {
    while (!text_.empty() && (is_blank(text_[0]) || text_[0] == '\n'))
      text_.remove_prefix(1);
    return text_.empty() ? '\0' : text_[0];
  }
  bool take(char c) {
    if (peek() != c || text_.empty())
      return false;
    text_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!take(c))
      refuse(fmt::format("expected {} before {}", c, quoted(text_)));
  }

  std::string_view quoted_text() {
    const char quote = peek();
    if (quote == '[')
      refuse("structured types are not supported, expected one real or whole number type");
    if (quote != '\'' && quote != '"')
      refuse(fmt::format("expected a text in quotes before {}", quoted(text_)));
    const auto end = text_.find(quote, 1);
    if (end == std::string_view::npos)
      refuse("a text in quotes does not end");
    const std::string_view text = text_.substr(1, end - 1);
    text_.remove_prefix(end + 1);
    return text;
  }

  bool truth() {
    peek();
    for (const bool value : {true, false}) {
      const std::string_view word = value ? "True" : "False";
      if (text_.starts_with(word)) {
        text_.remove_prefix(word.size());
        return value;
      }
    }
    refuse("fortran_order: expected True or False");
  }

  std::vector<i64> tuple() {
    std::vector<i64> numbers;
    expect('(');
    while (!take(')')) {
      i64 number = 0;
      peek();
      const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), number);
      if (error != std::errc{} || numbers.size() == max_order)
        refuse(fmt::format("shape: expected at most {} whole numbers before {}", max_order, quoted(text_)));
      text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
      take('L'); // Python 2 wrote long integers so
      numbers.push_back(number);
      if (!take(',') && peek() != ')')
        refuse("shape: expected , or ) after a number");
    }
    return numbers;
  }

  const std::string &name_;
  std::string_view text_;
  Declared declared_;
};

struct Split {
  std::string header; // a copy: what is checked is what is used
  Range content;      // in the source
};

Split split_header(const Source &source) {
  constexpr std::size_t version_at = magic.size();
  constexpr std::size_t length_at = version_at + 2;
  constexpr i64 longest_header = i64{1} << 20; // NumPy itself refuses 10 000 bytes
  const std::string bytes = source.beginning(length_at + 4);
  const auto byte = [&](std::size_t i) { return i64{static_cast<unsigned char>(bytes[i])}; };
  const i64 version = bytes.size() > version_at ? byte(version_at) : 0;
  const std::size_t length_size = version == 1 ? 2 : 4;
  if (bytes.size() < length_at + length_size)
    throw_error(Status::io, "{}: .npy file is truncated: {}", source.name(),
                count_text(static_cast<i64>(bytes.size()), "byte", "bytes"));
  if (version < 1 || version > 3)
    throw_error(Status::io, "{}: .npy version {}, expected 1 to 3", source.name(), version);
  i64 length = 0;
  for (std::size_t i = 0; i < length_size; ++i)
    length |= byte(length_at + i) << (8 * i);
  const auto begin = static_cast<i64>(length_at + length_size);
  if (length > source.size() - begin)
    throw_error(Status::io, "{}: .npy file is truncated: a header of {} bytes in a file of {}", source.name(), length,
                source.size());
  if (length > longest_header)
    throw_error(Status::io, "{}: .npy header of {} bytes, expected at most {}", source.name(), length, longest_header);
  std::string header(static_cast<std::size_t>(length), '\0');
  source.read(begin, header);
  return {std::move(header), {begin + length, source.size()}};
}

/// What T is to be read as after its bytes stand in this machine's order.
template <class T> T load(const char *from, bool swap) {
  std::array<char, sizeof(T)> raw;
  std::memcpy(raw.data(), from, sizeof(T));
  if (swap)
    std::reverse(raw.begin(), raw.end());
  return std::bit_cast<T>(raw);
}

/// Whether a number is finite and survived its conversion: reals may be rounded but not overflow, whole numbers must be
/// exact.
template <class From, class To> bool survives(From from, To to) {
  if constexpr (std::is_floating_point_v<From>)
    return std::isfinite(to);
  else // long double has the 64 bits that every whole number here needs
    return static_cast<long double>(from) == static_cast<long double>(to);
}

/// The real and whole numbers that a file may hold.
enum class Number { f8, f4, i8, i4, i2, i1, u8, u4, u2, u1 };

struct NumberType {
  Number number;
  i64 size;  // bytes of one
  bool swap; // its bytes are in the other order than this machine's
};

/// What a name as "<f8" says; nothing for a type that is no such number.
std::optional<NumberType> number_type(std::string_view name) {
  constexpr std::string_view words[] = {"f8", "f4", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1"};
  if (name.size() != 3 || std::string_view("<>|=").find(name[0]) == std::string_view::npos)
    return std::nullopt;
  const auto *word = std::find(std::begin(words), std::end(words), name.substr(1));
  if (word == std::end(words))
    return std::nullopt;
  const char other_order = std::endian::native == std::endian::little ? '>' : '<';
  return NumberType{static_cast<Number>(word - std::begin(words)), name[2] - '0', name[0] == other_order};
}

class Converter {
public:
  /// The file's elements from `first` on are wanted.
  Converter(const Source &source, Range content, NumberType type, i64 first)
      : source_(source), content_(content), type_(type), first_(first) {}

  void convert(ValueBuffer &values, int threads) const {
    switch (type_.number) {
    case Number::f8:
      return from<double>(values, threads);
    case Number::f4:
      return from<float>(values, threads);
    case Number::i8:
      return from<std::int64_t>(values, threads);
    case Number::i4:
      return from<std::int32_t>(values, threads);
    case Number::i2:
      return from<std::int16_t>(values, threads);
    case Number::i1:
      return from<std::int8_t>(values, threads);
    case Number::u8:
      return from<std::uint64_t>(values, threads);
    case Number::u4:
      return from<std::uint32_t>(values, threads);
    case Number::u2:
      return from<std::uint16_t>(values, threads);
    case Number::u1:
      return from<std::uint8_t>(values, threads);
    }
  }

private:
  template <class From> void from(ValueBuffer &values, int threads) const {
    constexpr i64 grain = i64{1} << 16; // elements: a block that stays in a core's cache
    constexpr auto step = static_cast<i64>(sizeof(From));
    struct Bad {
      i64 element;
      From value;
    };
    std::vector<std::optional<Bad>> bad(static_cast<std::size_t>(std::max(threads, 1)));
    dispatch(values.type(), [&](auto zero) {
      using To = decltype(zero);
      To *to = values.as<To>();
      parallel(static_cast<int>(std::clamp(values.size() / grain, i64{1}, i64{std::max(threads, 1)})),
               [&](int thread, int count) {
                 Buffer<char> room;
                 const Range mine = part_of({0, values.size()}, thread, count);
                 auto &mine_bad = bad[static_cast<std::size_t>(thread)];
                 for (i64 k = mine.begin; k < mine.end && !mine_bad; k += grain) {
                   const Range r{k, std::min(mine.end, k + grain)};
                   const auto block = source_.bytes(
                       {content_.begin + (first_ + r.begin) * step, content_.begin + (first_ + r.end) * step}, room);
                   for (i64 i = r.begin; i < r.end; ++i) {
                     const From v = load<From>(block.data() + (i - r.begin) * step, type_.swap);
                     to[i] = static_cast<To>(v);
                     if (!survives(v, to[i]) && !mine_bad)
                       mine_bad = Bad{first_ + i, v};
                   }
                 }
               });
    });
    for (const auto &first : bad) // threads' ranges ascend
      if (first)
        refuse(first->element, first->value, values.type());
  }

  template <class From> [[noreturn]] void refuse(i64 element, From value, ValueType type) const {
    if constexpr (std::is_floating_point_v<From>)
      if (!std::isfinite(value))
        throw_error(Status::io, "{}: element {} of the file is {}, expected a finite number", source_.name(), element,
                    value);
    throw_error(Status::io, "{}: element {} of the file is {}, which {} cannot hold", source_.name(), element, value,
                name_of(type));
  }

  const Source &source_;
  Range content_;
  NumberType type_;
  i64 first_;
};

std::vector<i64> last_fastest_strides(std::span<const i64> dims) {
  std::vector<i64> reversed(dims.rbegin(), dims.rend());
  std::vector<i64> strides = first_fastest_strides(reversed);
  std::reverse(strides.begin(), strides.end());
  return strides;
}

/// The bytes before an array's numbers.
std::string npy_header(const DenseArrayView &array, bool fortran_order) {
  constexpr std::size_t alignment = 64; // of the numbers, so that they can be mapped
  constexpr std::size_t prefix = magic.size() + 4;
  std::string dict = fmt::format("{{'descr': '{}{}', 'fortran_order': {}, 'shape': (",
                                 std::endian::native == std::endian::little ? '<' : '>',
                                 array.value_type == ValueType::f32 ? "f4" : "f8", fortran_order ? "True" : "False");
  for (std::size_t m = 0; m < array.dims.size(); ++m)
    dict += fmt::format("{}{}", m == 0 ? "" : " ", array.dims[m]) + ",";
  if (array.dims.size() > 1)
    dict.pop_back(); // only a tuple of one number ends with a comma
  dict += "), }";
  dict.append(alignment - (prefix + dict.size() + 1) % alignment, ' ');
  dict += '\n';
  std::string header(magic);
  header += '\x01';
  header += '\0';
  header += static_cast<char>(dict.size() & 0xff); // at most max_order numbers: fits two bytes
  header += static_cast<char>(dict.size() >> 8);
  return header + dict;
}

} // namespace

bool is_npy(std::span<const char> bytes) noexcept {
  return bytes.size() >= magic.size() && std::equal(magic.begin(), magic.end(), bytes.begin());
}

NpyArray read_npy(const Source &source, std::optional<ValueType> type, int threads, const MemoryBudget &budget,
                  Readers readers) {
  const auto [header, content] = split_header(source);
  const Declared declared = DictReader(source.name(), header).read();
  const auto declared_type = number_type(declared.type);
  if (!declared_type)
    throw_error(Status::unsupported, "{}: .npy elements of type {}, expected f4, f8 or whole numbers of 1 to 8 bytes",
                source.name(), quoted(declared.type));
  DenseArray x;
  x.dims = *declared.shape;
  for (std::size_t m = 0; m < x.dims.size(); ++m)
    if (x.dims[m] < 1)
      throw_error(Status::shape, "{}: dim {} of mode {}, expected 1 or more", source.name(), x.dims[m], m);
  const auto elements = checked_product(x.dims);
  const auto bytes = elements ? checked_multiply(*elements, declared_type->size) : std::nullopt;
  if (!bytes || *bytes != content.size())
    throw_error(Status::io, "{}: .npy file has {} of numbers, expected {}", source.name(),
                count_text(content.size(), "byte", "bytes"), bytes ? std::to_string(*bytes) : "more than 2^63 - 1");
  Slab slab;
  if (!x.dims.empty()) {
    const std::size_t slowest = *declared.fortran_order ? x.dims.size() - 1 : 0;
    readers.unit = *elements / x.dims[slowest];
    slab = readers.cut(x.dims, slowest);
  }
  const Range own = readers.own(*elements);
  x.strides = *declared.fortran_order ? first_fastest_strides(x.dims) : last_fastest_strides(x.dims);
  const ValueType natural = declared_type->number == Number::f4 ? ValueType::f32 : ValueType::f64;
  const ValueType stored = type.value_or(natural);
  MemoryNeed need;
  need.add("values", static_cast<double>(own.size()) * static_cast<double>(size_of(stored)));
  budget.require(fmt::format("{}: reading a .npy file", source.name()), need);
  x.values = ValueBuffer(stored, own.size(), "the values of a .npy file");
  Converter(source, content, *declared_type, own.begin).convert(x.values, threads);
  return {std::move(x), std::string(declared.type), std::move(slab)};
}

void write_npy(const DenseArrayView &array, AtomicFile &file) {
  const bool first_fastest = is_first_fastest(array);
  const bool last_fastest = !first_fastest && std::ranges::equal(array.strides, last_fastest_strides(array.dims));
  file.write(npy_header(array, !last_fastest));
  const i64 count = element_count(array);
  const i64 size = size_of(array.value_type);
  if (first_fastest || last_fastest) {
    file.write({static_cast<const char *>(array.values), static_cast<std::size_t>(count * size)});
  } else {
    constexpr i64 block = i64{1} << 17;
    Buffer<char> made(std::min(block, count) * size, "a block of a .npy file");
    for (i64 k = 0; k < count; k += block) {
      const Range r{k, std::min(count, k + block)};
      gather(array, r, made.data());
      file.write({made.data(), static_cast<std::size_t>(r.size() * size)});
    }
  }
}

void begin_npy_rows(i64 rows, i64 cols, ValueType type, AtomicFile &file) {
  const i64 dims[] = {rows, cols};
  file.write(npy_header({dims, {}, type, nullptr}, false));
}

} // namespace td::io
