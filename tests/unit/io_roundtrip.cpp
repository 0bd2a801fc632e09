// What is written reads back bit for bit, in every format.
#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "io_files.hpp"

#include "io/gzip.hpp"

namespace td::io {

namespace {

constexpr double odd_values[] = {0.0,
                                 -0.0,
                                 1.0,
                                 0.1,
                                 -1.0 / 3.0,
                                 1e22,
                                 123456789012345678.0,
                                 std::numeric_limits<double>::max(),
                                 std::numeric_limits<double>::min(),
                                 std::numeric_limits<double>::denorm_min()};

/// A random finite number: any bits but those of infinities and NaN.
template <class T> T any_finite(std::mt19937_64 &random) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  for (;;) {
    const T v = std::bit_cast<T>(static_cast<Bits>(random()));
    if (std::isfinite(v))
      return v;
  }
}

template <class T> void fill(T *values, i64 count, std::mt19937_64 &random) {
  for (i64 k = 0; k < count; ++k)
    values[k] = k < static_cast<i64>(std::size(odd_values)) && sizeof(T) == 8 ? static_cast<T>(odd_values[k])
                                                                              : any_finite<T>(random);
}

void fill(ValueBuffer &values, std::mt19937_64 &random) {
  dispatch(values.type(), [&](auto zero) { fill(values.as<decltype(zero)>(), values.size(), random); });
}

/// Whether f64 numbers `got` are the numbers `wanted`, sign of zero included.
void expect_same(const ValueBuffer &got, const ValueBuffer &wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (i64 k = 0; k < got.size(); ++k) {
    const auto number = [k](const ValueBuffer &b) {
      return b.type() == ValueType::f64 ? b.as<double>()[k] : static_cast<double>(b.as<float>()[k]);
    };
    ASSERT_EQ(std::bit_cast<u64>(number(got)), std::bit_cast<u64>(number(wanted))) << "element " << k;
  }
}

struct Sparse {
  std::vector<i64> dims;
  std::int32_t index_base;
  std::vector<std::vector<i64>> indices;
  std::vector<std::vector<std::int32_t>> narrow;
  ValueBuffer values;
  IndexType index_type;
  std::vector<const void *> columns;

  Sparse(std::vector<i64> d, i64 nnz, std::int32_t base, IndexType itype, ValueType vtype, std::mt19937_64 &random)
      : dims(std::move(d)), index_base(base), values(vtype, nnz, "a test"), index_type(itype) {
    for (const i64 dim : dims) {
      std::uniform_int_distribution<i64> any(base, dim - 1 + base);
      auto &column = indices.emplace_back();
      for (i64 k = 0; k < nnz; ++k)
        column.push_back(any(random));
      narrow.emplace_back(column.begin(), column.end());
    }
    fill(values, random);
    for (std::size_t m = 0; m < dims.size(); ++m)
      columns.push_back(itype == IndexType::i64 ? static_cast<const void *>(indices[m].data()) : narrow[m].data());
  }

  EntriesView view() const {
    return {dims, values.size(), index_type, columns.data(), index_base, values.type(), values.data()};
  }
};

void expect_same(const ReadTensor &read, const Sparse &x) {
  const auto &entries = std::get<Entries>(read.content);
  ASSERT_EQ(entries.dims, x.dims) << read.source;
  for (std::size_t m = 0; m < x.dims.size(); ++m)
    for (i64 k = 0; k < x.values.size(); ++k)
      ASSERT_EQ(entries.indices[m][k] - entries.index_base, x.indices[m][static_cast<std::size_t>(k)] - x.index_base)
          << "mode " << m << " entry " << k;
  expect_same(entries.values, x.values);
}

TEST(io_roundtrip, sparse) {
  constexpr unsigned seed = 20240607;
  const TempFolder folder;
  std::mt19937_64 random(seed);
  for (const std::string format : {"frostt", "parti", "toolbox", "genten", "binary"})
    for (const std::string name : {"x", "x.gz"})
      for (const auto index_type : {IndexType::i32, IndexType::i64})
        for (const auto value_type : {ValueType::f32, ValueType::f64})
          for (const i64 nnz : {0, 100}) {
            const std::int32_t base = index_type == IndexType::i32 ? 0 : 1;
            SCOPED_TRACE(fmt::format("seed {}, {} {}, {} entries, base {}, {}", seed, format, name, nnz, base,
                                     name_of(value_type)));
            const Sparse x({7, 2, 40, 3}, nnz, base, index_type, value_type, random);
            write_tensor(x.view(), folder.file(name), options({{"file_format", format}}));
            EXPECT_EQ(is_gzip(folder.get(name)), format != "binary" && name == "x.gz");
            expect_same(read_tensor(folder.file(name), {}, 2), x);
          }
}

TEST(io_roundtrip, sparse_in_many_blocks) {
  const TempFolder folder;
  std::mt19937_64 random(7);
  const Sparse x({1000, i64{1} << 40}, 150000, 0, IndexType::i64, ValueType::f64, random);
  for (const std::string name : {"x.tns", "x.tns.gz", "x.txt", "x.txt.gz", "x.tdb"}) {
    SCOPED_TRACE(name);
    write_tensor(x.view(), folder.file(name), {});
    expect_same(read_tensor(folder.file(name), {}, 3), x);
  }
}

TEST(io_roundtrip, sparse_text_is_what_peers_read) {
  const TempFolder folder;
  const std::vector<i64> dims{2, 3};
  const std::vector<i64> rows{0, 1};
  const std::vector<i64> cols{2, 0};
  const std::vector<double> values{0.5, -2};
  const void *columns[] = {rows.data(), cols.data()};
  const EntriesView x{dims, 2, IndexType::i64, columns, 0, ValueType::f64, values.data()};
  const auto written = [&](std::string_view format) {
    write_tensor(x, folder.file("x"), options({{"file_format", format}}));
    return folder.get("x");
  };
  EXPECT_EQ(written("frostt"), "1 3 0.5\n2 1 -2\n");
  EXPECT_EQ(written("parti"), "2\n2 3\n1 3 0.5\n2 1 -2\n");
  EXPECT_EQ(written("toolbox"), "sptensor\n2\n2 3\n2\n1 3 0.5\n2 1 -2\n");
  EXPECT_EQ(written("genten"), "sptensor indices-start-at-zero\n2\n2 3\n2\n0 2 0.5\n1 0 -2\n");
}

TEST(io_roundtrip, dims_that_text_would_lose) {
  const TempFolder folder;
  const std::vector<i64> dims{5, 6};
  const std::int32_t index[] = {3};
  const float value[] = {0.1f};
  const void *columns[] = {index, index};
  const EntriesView x{dims, 1, IndexType::i32, columns, 1, ValueType::f32, value};
  write_tensor(x, folder.file("x.tns"), {});
  EXPECT_EQ(folder.get("x.tns"), "# td: dims 5 6\n3 3 0.10000000149011612\n");
  EXPECT_EQ(std::get<Entries>(read_tensor(folder.file("x.tns"), {}, 1).content).dims, dims);
  write_tensor(x, folder.file("x.txt"), {});
  EXPECT_TRUE(folder.get("x.txt").starts_with("sptensor indices-start-at-one\n"));
  EXPECT_EQ(std::get<Entries>(read_tensor(folder.file("x.txt"), {}, 1).content).index_base, 1);
}

struct Dense {
  std::vector<i64> dims{3, 4, 2};
  std::vector<i64> strides;
  ValueBuffer memory;
  i64 first;

  DenseArrayView view() const {
    return {dims, strides, memory.type(), static_cast<const char *>(memory.data()) + first * size_of(memory.type())};
  }
};

/// Element by element, whatever the strides of the two.
void expect_same(const DenseArray &got, const Dense &x) {
  ASSERT_EQ(got.dims, x.dims);
  const std::vector<i64> first_fastest{1, 3, 12};
  const auto &got_strides = got.strides.empty() ? first_fastest : got.strides;
  const auto &strides = x.strides.empty() ? first_fastest : x.strides;
  const auto number = [](const ValueBuffer &b, i64 k) {
    return b.type() == ValueType::f64 ? b.as<double>()[k] : static_cast<double>(b.as<float>()[k]);
  };
  for (i64 i = 0; i < 3; ++i)
    for (i64 j = 0; j < 4; ++j)
      for (i64 l = 0; l < 2; ++l)
        ASSERT_EQ(std::bit_cast<u64>(number(got.values, i * got_strides[0] + j * got_strides[1] + l * got_strides[2])),
                  std::bit_cast<u64>(number(x.memory, x.first + i * strides[0] + j * strides[1] + l * strides[2])))
            << i << ' ' << j << ' ' << l;
}

TEST(io_roundtrip, dense) {
  const TempFolder folder;
  std::mt19937_64 random(11);
  struct Layout {
    std::vector<i64> strides;
    i64 first;
  };
  const Layout layouts[] = {{{}, 0},          {{1, 3, 12}, 0},  {{8, 2, 1}, 0},
                            {{2, 10, 50}, 3}, {{-1, 3, 12}, 2}, {{0, 1, 4}, 0}};
  for (const auto type : {ValueType::f32, ValueType::f64})
    for (const Layout &layout : layouts)
      for (const std::string name : {"x.txt", "x.txt.gz", "x.tdb", "x.npy"}) {
        SCOPED_TRACE(fmt::format("seed 11, {} {} first {}", name, name_of(type), layout.first));
        Dense x{{3, 4, 2}, layout.strides, ValueBuffer(type, 120, "a test"), layout.first};
        fill(x.memory, random);
        write_tensor(x.view(), folder.file(name), {});
        const ReadTensor back = read_tensor(folder.file(name), {}, 2);
        expect_same(std::get<DenseArray>(back.content), x);
        if (name == "x.tdb" || name == "x.npy") {
          EXPECT_EQ(std::get<DenseArray>(back.content).values.type(), type);
        }
      }
}

TEST(io_roundtrip, formats_that_cannot_hold_it) {
  const TempFolder folder;
  const std::vector<i64> dims{1, 1};
  const double value[] = {1};
  const i64 index[] = {0};
  const void *columns[] = {index, index};
  const EntriesView sparse{dims, 1, IndexType::i64, columns, 0, ValueType::f64, value};
  const DenseArrayView dense{dims, {}, ValueType::f64, value};
  expect_error(Status::unsupported, {"npy", "sparse"}, [&] { write_tensor(sparse, folder.file("x.npy"), {}); });
  expect_error(Status::unsupported, {"frostt", "dense"}, [&] { write_tensor(dense, folder.file("x.tns"), {}); });
  expect_error(Status::unsupported, {"ending", ".tns"}, [&] { write_tensor(dense, folder.file("x.dat"), {}); });
  expect_error(Status::unsupported, {"ending", ".tns"}, [&] { write_tensor(sparse, folder.file("x.tdb.gz"), {}); });
  expect_error(Status::unsupported, {"splatt"}, [&] {
    write_tensor(sparse, folder.file("x"), options({{"file_format", "splatt"}}));
  });
  EXPECT_EQ(folder.count(), 0u);
}

TEST(io_roundtrip, value_type_converts) {
  const TempFolder folder;
  const std::vector<i64> dims{1, 2};
  const double values[] = {0.1, 1e300};
  write_tensor(DenseArrayView{dims, {}, ValueType::f64, values}, folder.file("x.tdb"), {});
  write_tensor(DenseArrayView{dims, {}, ValueType::f64, values}, folder.file("x.npy"), {});
  for (const std::string name : {"x.tdb", "x.npy"})
    expect_error(Status::io, {"f32"}, [&] { read_tensor(folder.file(name), options({{"value_type", "f32"}}), 1); });
  const float narrow[] = {0.1f, 2};
  write_tensor(DenseArrayView{dims, {}, ValueType::f32, narrow}, folder.file("y.tdb"), {});
  const auto back = read_tensor(folder.file("y.tdb"), options({{"value_type", "f64"}}), 1);
  EXPECT_EQ(std::get<DenseArray>(back.content).values.as<double>()[0], static_cast<double>(0.1f));
}

} // namespace

} // namespace td::io
