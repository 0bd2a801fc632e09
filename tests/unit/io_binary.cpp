// td's binary format when it is damaged or made up.
#include <cstring>
#include <limits>

#include "io_files.hpp"

#include "io/binary.hpp"
#include "io/checksum.hpp"
#include "io/container.hpp"
#include "support/container_seal.hpp"

namespace td::io {

namespace {

using namespace tdtest;

std::size_t table_entry(const std::string &bytes, std::string_view name) {
  for (auto e = number_at<std::uint64_t>(bytes, container_table_at); e < bytes.size(); e += table_entry_size)
    if (std::string_view(bytes.data() + e) == name)
      return e;
  ADD_FAILURE() << "no section " << name;
  return 0;
}

std::string sample(const TempFolder &folder) {
  const std::vector<i64> dims{3, 4};
  const std::vector<i64> index{0, 1, 2};
  const std::vector<double> values{1, 2, 3};
  const void *columns[] = {index.data(), index.data()};
  write_tensor(EntriesView{dims, 3, IndexType::i64, columns, 0, ValueType::f64, values.data()}, folder.file("x.tdb"),
               {});
  return folder.get("x.tdb");
}

ReadTensor read(const std::string &bytes) { return read_tensor_bytes({"x", bytes}, {}); }

void expect_sample(const ReadTensor &tensor) {
  const auto &x = std::get<Entries>(tensor.content);
  EXPECT_EQ(x.dims, (std::vector<i64>{3, 4}));
  ASSERT_EQ(x.values.size(), 3);
  for (i64 k = 0; k < 3; ++k) {
    EXPECT_EQ(x.indices[0][k], k);
    EXPECT_EQ(x.indices[1][k], k);
    EXPECT_EQ(x.values.as<double>()[k], static_cast<double>(k + 1));
  }
}

TEST(io_binary, says_what_it_is) {
  const TempFolder folder;
  const ReadTensor x = read(sample(folder));
  expect_sample(x);
  EXPECT_EQ(x.source, "td binary version 1; sparse, f64 values");
}

std::string labelled(const TempFolder &folder, std::string_view name, std::string_view labels) {
  ContainerWriter file(folder.file("l.tdb"), ContainerKind::dense);
  const std::vector<i64> dims{2, 1};
  const std::vector<double> values{1, 2};
  file.add("dims", ElementType::i64, 2, dims.data());
  file.add("values", ElementType::f64, 2, values.data());
  file.add("name.1", ElementType::text, static_cast<i64>(name.size()), name.data());
  file.add("labels.0", ElementType::text, static_cast<i64>(labels.size()), labels.data());
  file.commit();
  return folder.get("l.tdb");
}

TEST(io_binary, labels) {
  using namespace std::string_view_literals;
  const TempFolder folder;
  const Labels labels = read(labelled(folder, "item", "a\0\xc3\xa9\0"sv)).labels;
  EXPECT_EQ(labels.name(0), "");
  EXPECT_EQ(labels.name(1), "item");
  ASSERT_NE(labels.list(0), nullptr);
  EXPECT_EQ(labels.list(1), nullptr);
  EXPECT_EQ((*labels.list(0))[0], "a");
  EXPECT_EQ((*labels.list(0))[1], "\xc3\xa9");
  const auto refused = [&](std::string_view name, std::string_view text, const char *why) {
    expect_error(Status::io, {"x: td binary file", why}, [&] { read(labelled(folder, name, text)); });
  };
  refused("item", "a\0"sv, "labels of mode 0: 1 label ended by NUL, expected 2");
  refused("item", "a\0b"sv, "1 label ended by NUL");
  refused("item", "", "0 labels ended by NUL");
  refused("item", "a\0b\0c\0"sv, "2 bytes behind the last of 2 labels");
  refused("item", "a\0\xff\0"sv, "index 1, '\\xff', is not UTF-8");
  refused("\xc3", "a\0b\0"sv, "name of mode 1, '\\xc3'");
  refused("i\0m"sv, "a\0b\0"sv, "name of mode 1, 'i\\x00m'");
}

TEST(io_binary, truncated_anywhere) {
  const TempFolder folder;
  const std::string whole = sample(folder);
  constexpr std::size_t magic = 8; // with less it is not known to be a binary file, and is no good text either
  for (std::size_t size = 0; size < whole.size(); ++size)
    expect_error(Status::io, {size < magic ? "x: " : "truncated"}, [&] { read(whole.substr(0, size)); });
  expect_error(Status::io, {"truncated or extended"}, [&] { read(whole + "x"); });
}

TEST(io_binary, any_byte_damaged) {
  const TempFolder folder;
  const std::string whole = sample(folder);
  int unnoticed = 0;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    try {
      expect_sample(read(damaged)); // only the padding between sections has no checksum
      ++unnoticed;
    } catch (const Error &e) {
      EXPECT_EQ(e.status(), Status::io) << e.what();
    }
  }
  // dims 16 bytes, index_base 8, two columns of 12, values 24: each is padded to 64.
  EXPECT_EQ(unnoticed, 48 + 56 + 52 + 52 + 40);
}

TEST(io_binary, made_up_with_right_checksums) {
  const TempFolder folder;
  const std::string whole = sample(folder);
  const auto refused = [&](std::initializer_list<std::string_view> parts, auto &&change) {
    std::string bytes = whole;
    change(bytes);
    seal_container(bytes);
    expect_error(Status::io, parts, [&] { read(bytes); });
  };
  constexpr auto huge = std::numeric_limits<std::uint64_t>::max();
  refused({"version 2"}, [](std::string &b) { put_at(b, container_version_at, std::uint32_t{2}); });
  refused({"byte order"}, [](std::string &b) { put_at(b, 8, std::uint32_t{0x04030201}); });
  refused({"kind of content 9"}, [](std::string &b) { put_at(b, container_kind_at, std::uint32_t{9}); });
  refused({"kind of content 0"}, [](std::string &b) { put_at(b, container_kind_at, std::uint32_t{0}); });
  refused({"holds a ktensor"}, [](std::string &b) { put_at(b, container_kind_at, std::uint32_t{3}); });
  refused({"dense tensor"}, [](std::string &b) {
    put_at(b, container_kind_at, std::uint32_t{2});
    put_at(b, table_entry(b, "dims"), '?');
  });
  refused({"section values: 3 elements, expected 12"},
          [](std::string &b) { put_at(b, container_kind_at, std::uint32_t{2}); });
  refused({"4294967295 sections"}, [](std::string &b) { put_at(b, container_sections_at, ~std::uint32_t{0}); });
  refused({"sections at byte 18446744073709551615"}, [&](std::string &b) { put_at(b, container_table_at, huge); });
  refused({"unknown element type 3"},
          [](std::string &b) { put_at(b, table_entry(b, "values") + entry_type_at, std::uint32_t{3}); });
  refused({"name does not end"}, [](std::string &b) { std::memset(b.data() + table_entry(b, "values"), 'x', 40); });
  refused({"section values", "go beyond"},
          [&](std::string &b) { put_at(b, table_entry(b, "values") + entry_count_at, huge); });
  refused({"section values", "go beyond"},
          [&](std::string &b) { put_at(b, table_entry(b, "values") + entry_count_at, huge / 8 + 1); });
  refused({"section values", "aligned"},
          [](std::string &b) { put_at(b, table_entry(b, "values") + entry_offset_at, std::uint64_t{65}); });
  refused({"section values", "go beyond"},
          [&](std::string &b) { put_at(b, table_entry(b, "values") + entry_offset_at, huge - 63); });
  refused({"section index.0: 3 elements, expected 2"},
          [](std::string &b) { put_at(b, table_entry(b, "values") + entry_count_at, std::uint64_t{2}); });
  refused({"section values", "expected f32 or f64"},
          [](std::string &b) { put_at(b, table_entry(b, "values") + entry_type_at, std::uint32_t{12}); });
  refused({"section index.0", "expected i32 or i64"},
          [](std::string &b) { put_at(b, table_entry(b, "index.0") + entry_type_at, std::uint32_t{1}); });
  refused({"without section index.1"}, [](std::string &b) { put_at(b, table_entry(b, "index.1"), 'I'); });
  refused({"1 dim, expected 2 to 64"},
          [](std::string &b) { put_at(b, table_entry(b, "dims") + entry_count_at, std::uint64_t{1}); });
  refused({"a dim is -1"}, [](std::string &b) { put_at(b, container_header_size, i64{-1}); });
  refused({"a dim is 0"}, [](std::string &b) { put_at(b, container_header_size, i64{0}); });
  refused({"index_base is 2"}, [](std::string &b) { put_at(b, container_header_size + 64, i64{2}); });
  refused({"product above"}, [](std::string &b) {
    put_at(b, container_kind_at, std::uint32_t{2});
    put_at(b, container_header_size, i64{1} << 40);
    put_at(b, container_header_size + 8, i64{1} << 40);
  });
}

TEST(io_binary, ktensor_made_up) {
  const TempFolder folder;
  const i64 dims[] = {2, 3};
  write_ktensor(Ktensor(dims, 2, ValueType::f64), folder.file("k.tdb"), {});
  const std::string whole = folder.get("k.tdb");
  const auto refused = [&](std::initializer_list<std::string_view> parts, auto &&change) {
    std::string bytes = whole;
    change(bytes);
    seal_container(bytes);
    expect_error(Status::io, parts, [&] { read_ktensor_bytes({"k", bytes}); });
  };
  refused({"factor.0: 4 elements, expected 200"}, [](std::string &b) { put_at(b, container_header_size, i64{100}); });
  refused({"above 2^63 - 1"},
          [](std::string &b) { put_at(b, container_header_size, std::numeric_limits<i64>::max()); });
  refused({"expected both or none"}, [](std::string &b) {
    for (const std::string name : {"weights", "factor.0", "factor.1"})
      put_at(b, table_entry(b, name) + entry_count_at, std::uint64_t{0});
  });
  refused({"not of the type of factor.0"},
          [](std::string &b) { put_at(b, table_entry(b, "factor.1") + entry_type_at, std::uint32_t{1}); });
  refused({"a weight is nan"}, [](std::string &b) {
    put_at(b, number_at<std::uint64_t>(b, table_entry(b, "weights") + entry_offset_at),
           std::numeric_limits<double>::quiet_NaN());
  });
  refused({"factor 1", "row 0, column 1", "inf"}, [](std::string &b) {
    put_at(b, number_at<std::uint64_t>(b, table_entry(b, "factor.1") + entry_offset_at) + 8,
           std::numeric_limits<double>::infinity());
  });
}

TEST(io_binary, checksum_does_not_depend_on_threads) {
  std::string bytes(5'000'001, 'a');
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<char>(i * i >> 7);
  EXPECT_EQ(checksum(bytes, 1), checksum(bytes, 4));
  EXPECT_EQ(checksum(std::string_view("123456789"), 3), 0xcbf43926u); // the check value of CRC-32/ISO-HDLC
  const std::span<const char> all = bytes;
  EXPECT_EQ(join_checksums(checksum(all.first(777), 1), checksum(all.subspan(777), 1), 5'000'001 - 777),
            checksum(all, 1));
}

} // namespace

} // namespace td::io
