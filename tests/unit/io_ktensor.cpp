// Ktensors in text, folders and td's binary format; records.
#include <bit>
#include <cmath>

#include "io_files.hpp"

#include "io/gzip.hpp"
#include "io/readers.hpp"

namespace td::io {

namespace {

Ktensor sample(ValueType type) {
  const i64 dims[] = {4, 1, 3};
  Ktensor k(dims, 2, type);
  k.weights()[0] = 1.0 / 3.0;
  k.weights()[1] = -0.0;
  double next = 0.1;
  for (int m = 0; m < 3; ++m)
    dispatch(type, [&](auto zero) {
      using T = decltype(zero);
      const Matrix a = k.factor(m);
      for (i64 i = 0; i < a.rows; ++i)
        for (i64 r = 0; r < 2; ++r)
          a.row<T>(i)[r] = static_cast<T>(next = next * -1.7 + 1e-3);
    });
  return k;
}

void expect_same(const Ktensor &got, const Ktensor &wanted) {
  ASSERT_EQ(std::vector<i64>(got.dims().begin(), got.dims().end()),
            std::vector<i64>(wanted.dims().begin(), wanted.dims().end()));
  ASSERT_EQ(got.rank(), wanted.rank());
  for (i64 r = 0; r < got.rank(); ++r)
    EXPECT_EQ(std::bit_cast<u64>(got.weights()[static_cast<std::size_t>(r)]),
              std::bit_cast<u64>(wanted.weights()[static_cast<std::size_t>(r)]));
  const auto number = [](ConstMatrix a, i64 i, i64 r) {
    return a.type == ValueType::f64 ? a.row<double>(i)[r] : static_cast<double>(a.row<float>(i)[r]);
  };
  for (int m = 0; m < got.order(); ++m)
    for (i64 i = 0; i < got.factor(m).rows; ++i)
      for (i64 r = 0; r < got.rank(); ++r)
        EXPECT_EQ(std::bit_cast<u64>(number(got.factor(m), i, r)), std::bit_cast<u64>(number(wanted.factor(m), i, r)))
            << m << ' ' << i << ' ' << r;
}

Ktensor read(std::string_view text) { return read_ktensor_bytes({"k", {text.data(), text.size()}}); }

TEST(io_ktensor, roundtrip) {
  const TempFolder folder;
  for (const auto type : {ValueType::f32, ValueType::f64}) {
    const Ktensor k = sample(type);
    for (const std::string name : {"k.txt", "k.txt.gz", "k", "k.tdb"}) {
      SCOPED_TRACE(name);
      write_ktensor(k, folder.file(name), {});
      EXPECT_EQ(is_gzip(folder.get(name)), name.ends_with(".gz"));
      const Ktensor back = read_ktensor(folder.file(name));
      expect_same(back, k);
      if (name == "k.tdb") {
        EXPECT_EQ(back.type(), type);
      }
    }
    for (const std::string format : {"splatt", "npy"}) {
      SCOPED_TRACE(format);
      write_ktensor(k, folder.file(format), options({{"file_format", format}}));
      expect_same(read_ktensor(folder.file(format)), k);
      write_ktensor(k, folder.file(format), options({{"file_format", format}})); // over an older one
      expect_same(read_ktensor(folder.file(format)), k);
    }
    EXPECT_EQ(read_ktensor(folder.file("npy")).type(), type);
  }
  EXPECT_EQ(folder.get("splatt/lambda.mat"), "0.3333333333333333\n-0\n");
}

TEST(io_ktensor, text_of_tensor_toolbox) {
  const TempFolder folder;
  constexpr std::string_view text = "ktensor\n2\n2 3\n1\n2.5\nmatrix\n2\n2 1\n1\n-1\nmatrix\n2\n3 1\n0.5\n0\n4\n";
  const Ktensor k = read(text);
  EXPECT_EQ(k.weights()[0], 2.5);
  EXPECT_EQ(k.factor(0).row<double>(1)[0], -1);
  EXPECT_EQ(k.factor(1).row<double>(2)[0], 4);
  write_ktensor(k, folder.file("k"), {});
  EXPECT_EQ(folder.get("k"), text);
  // Line ends, comments and where the numbers are broken do not matter; GenTen says facmatrix.
  expect_same(read("# x\r\nktensor\r\n2\r\n2 3\r\n1\r\n2.5\r\nfacmatrix\r\n2\r\n2 1\r\n1 -1\r\nmatrix 2 3 1 0.5 0 4"),
              k);
}

TEST(io_ktensor, text_that_is_wrong) {
  const auto refused = [](std::string_view text, std::initializer_list<std::string_view> parts) {
    expect_error(Status::io, parts, [&] { read(text); });
  };
  const std::string head = "ktensor\n2\n2 1\n1\n2.5\n";
  refused("", {"empty"});
  refused("sptensor\n", {"line 1", "'sptensor'", "'ktensor'"});
  refused("ktensor\n1\n2\n1\n", {"line 2", "1 mode"});
  refused("ktensor\n2\n2 0\n1\n", {"line 3", "dim is 0"});
  refused("ktensor\n2\n2 2\n0\n", {"line 4", "rank is 0"});
  refused("ktensor\n2\n2 2.5\n", {"line 3", "'2.5'"});
  refused("ktensor\n2\n4000000000 1\n1\n1\n", {"more numbers than"});
  refused("ktensor\n2\n4000000000 1\n4000000000\n1\n", {"more numbers than"});
  refused(head + "vector\n", {"line 6", "'vector'", "'matrix'"});
  refused(head + "matrix\n2\n2 2\n1 1 1 1", {"line 8", "2 x 2", "expected 2 and 2 x 1"});
  refused(head + "matrix\n2\n2 1\n1\nx\n", {"line 10", "'x' is not a number"});
  refused(head + "matrix\n2\n2 1\n1\nnan\n", {"line 10", "not finite"});
  refused(head + "matrix\n2\n2 1\n1\n2\n", {"ends after line 10", "'matrix'"});
  refused(head + "matrix\n2\n2 1\n1\n2\nmatrix\n2\n1 1\n1\n5\n", {"line 15", "'5'", "expected the end"});
}

TEST(io_ktensor, folders_that_are_wrong) {
  const TempFolder folder;
  expect_error(Status::io, {"neither", "lambda.mat"}, [&] { read_ktensor(folder.path().string()); });
  folder.put("lambda.mat", "1\n2\n");
  expect_error(Status::io, {"0 factors", "mode1.mat is missing"}, [&] { read_ktensor(folder.path().string()); });
  folder.put("mode1.mat", "1 2\n3 4\n");
  folder.put("mode2.mat", "1 2\n3\n");
  expect_error(Status::io, {"mode2.mat", "line 2", "1 number", "expected 2"},
               [&] { read_ktensor(folder.path().string()); });
  folder.put("mode2.mat", "1\n3\n");
  expect_error(Status::io, {"mode2.mat", "1 column", "expected 2"}, [&] { read_ktensor(folder.path().string()); });
  folder.put("mode2.mat", "");
  expect_error(Status::io, {"mode2.mat", "empty"}, [&] { read_ktensor(folder.path().string()); });
  folder.put("mode2.mat", "5 6 \n");
  EXPECT_EQ(read_ktensor(folder.path().string()).factor(1).row<double>(0)[1], 6);
  folder.put("weights.npy", "");
  expect_error(Status::io, {"both"}, [&] { read_ktensor(folder.path().string()); });
}

TEST(io_ktensor, a_left_over_mode_is_not_mixed_in) {
  const TempFolder folder;
  folder.put("mode4.mat", "1 2\n");
  const auto write = [&] {
    write_ktensor(sample(ValueType::f64), folder.path().string(), options({{"file_format", "splatt"}}));
  };
  expect_error(Status::io, {"mode4.mat", "remove it"}, write);
  EXPECT_EQ(folder.count(), 1u);
}

TEST(io_ktensor, formats_that_cannot_hold_it) {
  const TempFolder folder;
  expect_error(Status::unsupported, {"frostt", "ktensor"}, [&] {
    write_ktensor(sample(ValueType::f64), folder.file("k"), options({{"file_format", "frostt"}}));
  });
}

TEST(io_ktensor, record) {
  const TempFolder folder;
  Record record;
  record.factors = sample(ValueType::f32);
  record.series = {{"fit", {0.5, 0.75, 1.0 / 3.0}}, {"empty", {}}};
  record.text = {{"options", "tol=1e-4\n"}, {"nothing", ""}};
  write_record(record, folder.file("r"));
  const Record back = read_record(folder.file("r"));
  expect_same(back.factors, record.factors);
  EXPECT_EQ(back.series, record.series);
  EXPECT_EQ(back.text, record.text);
  expect_same(read_ktensor(folder.file("r")), record.factors); // a checkpoint's model so far

  record.factors = {};
  write_record(record, folder.file("r"));
  EXPECT_EQ(read_record(folder.file("r")).factors.order(), 0);

  record.text = {{std::string(50, 'n'), ""}};
  expect_error(Status::argument, {"nnnn", "at most 39"}, [&] { write_record(record, folder.file("r2")); });
  EXPECT_EQ(folder.count(), 1u);
  expect_error(Status::io, {"not a td binary file"}, [&] { read_record(folder.put("t", "1 1 1\n")); });
}

} // namespace

} // namespace td::io
