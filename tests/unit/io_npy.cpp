// NumPy files as NumPy writes them, and as it never would.
#include <bit>

#include "io_files.hpp"

#include "io/npy.hpp"
#include "io/readers.hpp"

namespace td::io {

namespace {

std::string npy_file(int version, std::string dict, std::string_view content) {
  dict += '\n';
  std::string file = "\x93NUMPY";
  file += static_cast<char>(version);
  file += '\0';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i)
    file += static_cast<char>(dict.size() >> (8 * i));
  return file + dict + std::string(content);
}

/// The numbers' bytes, the least (or, if `big`, the most) significant first.
template <class T> std::string bytes_of(std::initializer_list<T> numbers, bool big = false) {
  std::string all;
  for (const T number : numbers) {
    auto raw = std::bit_cast<std::array<char, sizeof(T)>>(number);
    if (big != (std::endian::native == std::endian::big))
      std::reverse(raw.begin(), raw.end());
    all.append(raw.data(), raw.size());
  }
  return all;
}

std::vector<double> read(const std::string &file) {
  const ReadTensor tensor = read_tensor_bytes({"a.npy", file}, {});
  const auto &a = std::get<DenseArray>(tensor.content);
  std::vector<double> row_major;
  EXPECT_EQ(a.dims.size(), 2u);
  for (i64 i = 0; i < a.dims[0]; ++i)
    for (i64 j = 0; j < a.dims[1]; ++j) {
      const i64 k = i * a.strides[0] + j * a.strides[1];
      row_major.push_back(a.values.type() == ValueType::f64 ? a.values.as<double>()[k]
                                                            : static_cast<double>(a.values.as<float>()[k]));
    }
  return row_major;
}

std::string dict(std::string_view type, bool fortran, std::string_view shape) {
  return fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': {}, }}", type, fortran ? "True" : "False", shape);
}

TEST(io_npy, versions_and_orders) {
  const std::string content = bytes_of<double>({1, 2, 3, 4, 5, 6});
  for (const int version : {1, 2, 3}) {
    EXPECT_EQ(read(npy_file(version, dict("<f8", false, "(2, 3)"), content)), (std::vector<double>{1, 2, 3, 4, 5, 6}));
    EXPECT_EQ(read(npy_file(version, dict("<f8", true, "(2, 3)"), content)), (std::vector<double>{1, 3, 5, 2, 4, 6}));
  }
  // Any order of keys, either quotes, Python 2's long integers, no blanks.
  EXPECT_EQ(read(npy_file(1, "{\"shape\":(2L,3L),\"fortran_order\":False,\"descr\":\"<f8\"}", content)),
            (std::vector<double>{1, 2, 3, 4, 5, 6}));
}

TEST(io_npy, element_types) {
  const std::vector<double> expected{1, -2};
  const auto two = [](std::string_view type, const std::string &content) {
    return read(npy_file(1, dict(type, false, "(1, 2)"), content));
  };
  EXPECT_EQ(two(">f8", bytes_of<double>({1, -2}, true)), expected);
  EXPECT_EQ(two("<f4", bytes_of<float>({1, -2})), expected);
  EXPECT_EQ(two(">f4", bytes_of<float>({1, -2}, true)), expected);
  EXPECT_EQ(two("<i8", bytes_of<std::int64_t>({1, -2})), expected);
  EXPECT_EQ(two(">i8", bytes_of<std::int64_t>({1, -2}, true)), expected);
  EXPECT_EQ(two("<i4", bytes_of<std::int32_t>({1, -2})), expected);
  EXPECT_EQ(two("<i2", bytes_of<std::int16_t>({1, -2})), expected);
  EXPECT_EQ(two("|i1", bytes_of<std::int8_t>({1, -2})), expected);
  EXPECT_EQ(two("|u1", bytes_of<std::uint8_t>({1, 200})), (std::vector<double>{1, 200}));
  EXPECT_EQ(two("<u2", bytes_of<std::uint16_t>({1, 60000})), (std::vector<double>{1, 60000}));
  EXPECT_EQ(two("<u4", bytes_of<std::uint32_t>({1, 4000000000})), (std::vector<double>{1, 4e9}));
  EXPECT_EQ(two("<u8", bytes_of<std::uint64_t>({1, std::uint64_t{1} << 63})), (std::vector<double>{1, 0x1p63}));
}

TEST(io_npy, whole_numbers_that_do_not_fit) {
  const auto file = npy_file(1, dict("<i8", false, "(1, 2)"), bytes_of<std::int64_t>({1, (i64{1} << 53) + 1}));
  expect_error(Status::io, {"element 1", "9007199254740993", "f64"}, [&] { read(file); });
  const auto largest = npy_file(1, dict("<i8", false, "(1, 1)"), bytes_of<std::int64_t>({INT64_MAX}));
  expect_error(Status::io, {"9223372036854775807"}, [&] { read(largest); });
}

TEST(io_npy, files_that_are_wrong) {
  const std::string content = bytes_of<double>({1, 2, 3, 4, 5, 6});
  const auto refused = [&](Status status, std::string_view what, const std::string &file) {
    expect_error(status, {what, "a.npy"}, [&] { read(file); });
  };
  const std::string good = npy_file(1, dict("<f8", false, "(2, 3)"), content);
  for (std::size_t size = 6; size < good.size(); ++size)
    expect_error(Status::io, {"a.npy"}, [&] { read(good.substr(0, size)); });
  refused(Status::io, "bytes of numbers", good + "x");
  refused(Status::io, "version 4", npy_file(4, dict("<f8", false, "(2, 3)"), content));
  refused(Status::unsupported, "'<c16'", npy_file(1, dict("<c16", false, "(2, 3)"), content));
  refused(Status::unsupported, "'|O'", npy_file(1, dict("|O", false, "(2, 3)"), content));
  refused(Status::io, "structured", npy_file(1, "{'descr': [('a', '<f8')], }", content));
  refused(Status::io, "expected the keys", npy_file(1, "{'descr': '<f8', 'shape': (2, 3)}", content));
  refused(Status::io, "key 'x'", npy_file(1, "{'x': 1}", content));
  refused(Status::io, "True or False", npy_file(1, "{'fortran_order': 1}", content));
  refused(Status::io, "does not end", npy_file(1, "{'descr", content));
  refused(Status::io, "expected :", npy_file(1, "{'descr' '<f8'}", content));
  refused(Status::io, "expected {", npy_file(1, "", content));
  refused(Status::io, "whole numbers", npy_file(1, dict("<f8", false, "(2, x)"), content));
  refused(Status::io, "after a number", npy_file(1, dict("<f8", false, "(2 3)"), content));
  refused(Status::shape, "dim 0 of mode 0", npy_file(1, dict("<f8", false, "(0, 3)"), ""));
  refused(Status::shape, "dim -2 of mode 0", npy_file(1, dict("<f8", false, "(-2, -3)"), content));
  refused(Status::shape, "1 dim", npy_file(1, dict("<f8", false, "(6,)"), content));
  refused(Status::shape, "0 dims", npy_file(1, dict("<f8", false, "()"), content.substr(0, 8)));
  refused(Status::io, "expected more than 2^63 - 1",
          npy_file(1, dict("<f8", false, "(4294967296, 4294967296, 4)"), content));
  refused(Status::io, "expected 9223372036854775800",
          npy_file(1, dict("<f8", false, "(1152921504606846975, 1)"), content));
}

TEST(io_npy, what_is_written_is_what_numpy_writes) {
  const TempFolder folder;
  const i64 dims[] = {2, 3};
  const double values[] = {1, 2, 3, 4, 5, 6};
  write_tensor(DenseArrayView{dims, {}, ValueType::f64, values}, folder.file("a.npy"), {});
  std::string padded = dict("<f8", true, "(2, 3)");
  padded.append(128 - 10 - 1 - padded.size(), ' '); // the numbers begin at a multiple of 64
  EXPECT_EQ(folder.get("a.npy"), npy_file(1, padded, bytes_of<double>({1, 2, 3, 4, 5, 6})));
  const i64 row_major[] = {3, 1};
  write_tensor(DenseArrayView{dims, row_major, ValueType::f64, values}, folder.file("a.npy"), {});
  EXPECT_NE(folder.get("a.npy").find("'fortran_order': False"), std::string::npos);
}

} // namespace

} // namespace td::io
