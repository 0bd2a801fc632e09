// Tables: names become indices, and what is wrong in them is said with its line.
#include <map>
#include <random>
#include <set>

#include "io_files.hpp"

#include "io/gzip.hpp"
#include "io/readers.hpp"
#include "io/time_pattern.hpp"

namespace td::io {

namespace {

using Settings = std::initializer_list<std::pair<std::string_view, std::string_view>>;

ReadTensor read(std::string_view text, const Settings &settings, int threads = 2) {
  return read_table({"x", {text.data(), text.size()}}, ReadChoices::from(options(settings), threads));
}

std::string label(const ReadTensor &tensor, std::size_t mode, i64 index) {
  return std::string((*tensor.labels.list(static_cast<int>(mode)))[index]);
}

double value(const Entries &x, i64 k) {
  return x.values.type() == ValueType::f64 ? x.values.as<double>()[k] : static_cast<double>(x.values.as<float>()[k]);
}

/// "user: ann bob; item: tea; ann tea = 2; ..." so that a test says all of a small table in one line.
std::string show(const ReadTensor &tensor) {
  const auto &x = std::get<Entries>(tensor.content);
  std::string text;
  for (std::size_t m = 0; m < x.dims.size(); ++m) {
    text += tensor.labels.name(static_cast<int>(m)) + ":";
    for (i64 i = 0; i < x.dims[m]; ++i)
      text += " " + label(tensor, m, i);
    text += ";";
  }
  for (i64 k = 0; k < x.values.size(); ++k) {
    for (std::size_t m = 0; m < x.dims.size(); ++m)
      text += " " + label(tensor, m, x.indices[m][k]);
    text += fmt::format(" = {};", value(x, k));
  }
  return text;
}

std::string read_and_show(std::string_view text, const Settings &settings) { return show(read(text, settings)); }

TEST(io_table, names_become_indices) {
  const ReadTensor x =
      read("user,item,count\nbob,tea,2\nann,cake,1\nbob,tea,0.5\n", {{"columns", "user,item"}, {"value", "count"}});
  EXPECT_EQ(show(x), "user: ann bob;item: cake tea; bob tea = 2; ann cake = 1; bob tea = 0.5;");
  EXPECT_EQ(x.source, "table of 3 columns, with a header, separated by comma; modes: user, item; value: count");
}

TEST(io_table, without_a_value_column_each_line_counts_1) {
  EXPECT_EQ(read_and_show("a,b\nx,y\nx,z\n", {{"columns", "b,a"}}), "b: y z;a: x; y x = 1; z x = 1;");
}

TEST(io_table, header) {
  EXPECT_EQ(read_and_show("x,y,3\n", {{"columns", "1,2"}, {"value", "3"}}), ": x;: y; x y = 3;");
  EXPECT_EQ(read_and_show("a,b,c\nx,y,3\n", {{"columns", "1,2"}, {"value", "3"}, {"header", "yes"}}),
            "a: x;b: y; x y = 3;");
  EXPECT_EQ(read_and_show("a,b,c\nx,y,3\n", {{"columns", "1,2"}, {"value", "c"}}), "a: x;b: y; x y = 3;");
  EXPECT_EQ(read_and_show("2,1\nx,y\n", {{"columns", "1,2"}, {"header", "yes"}}), "1: y;2: x; y x = 1;");
  EXPECT_EQ(read_and_show("1,2\n2,1\n", {{"columns", "1,2"}, {"header", "no"}}), ": 1 2;: 1 2; 1 2 = 1; 2 1 = 1;");
}

TEST(io_table, separators) {
  for (const char c : {',', '\t', ';', '|'}) {
    std::string text = "a,b\nx,y\n";
    std::replace(text.begin(), text.end(), ',', c);
    EXPECT_EQ(read_and_show(text, {{"columns", "a,b"}}), "a: x;b: y; x y = 1;") << c;
  }
  EXPECT_EQ(read_and_show("a,a;b\nx,1;y,2\n", {{"columns", "1,2"}, {"separator", "semicolon"}, {"header", "yes"}}),
            "a,a: x,1;b: y,2; x,1 y,2 = 1;");
  EXPECT_EQ(read_and_show("\"a\t\t\",b\nx,y\n", {{"columns", "1,b"}}), "a: x;b: y; x y = 1;"); // tabs within quotes
}

TEST(io_table, quotes) {
  EXPECT_EQ(read_and_show("a,\"b, c\"\n\"x, y\",\"say \"\"z\"\"\"\n\"\",\"1\n2\"\r\nv,w", {{"columns", "a,\"b, c\""}}),
            "a:  v x, y;b, c: 1\n2 say \"z\" w; x, y say \"z\" = 1;  1\n2 = 1; v w = 1;");
  EXPECT_EQ(read_and_show("a,b\n5\" disk,\"y\n", {{"columns", "a,b"}, {"quotes", "0"}}),
            "a: 5\" disk;b: \"y; 5\" disk \"y = 1;");
}

TEST(io_table, line_ends) {
  constexpr const char *expected = "a: u x;b: v y; x y = 1; u v = 1;";
  for (const std::string_view text :
       {"a,b\nx,y\nu,v\n", "a,b\r\nx,y\r\nu,v\r\n", "a,b\nx,y\nu,v", "a,b\r\nx,y\r\nu,v\r",
        "\xef\xbb\xbf"
        "a,b\nx,y\n\n\r\nu,v\n\n",
        "\n\r\na,b\nx,y\nu,v\n"})
    EXPECT_EQ(read_and_show(text, {{"columns", "a,b"}}), expected) << text;
}

TEST(io_table, blank_lines_before_the_first) {
  std::string text(3 * table_block, '\n');
  text += "\r\na,b\nx,y\nu,\n1\n"; // GCC 12 warns of a sum
  expect_error(Status::io, {fmt::format("x: line {}: has 1 field", 3 * table_block + 5)}, [&] {
    read(text, {{"columns", "a,b"}});
  });
  EXPECT_EQ(read_and_show(text.substr(0, text.size() - 2), {{"columns", "a,b"}}), "a: u x;b:  y; x y = 1; u  = 1;");
}

TEST(io_table, order_of_names) {
  EXPECT_EQ(read_and_show("a,b\n10,z\n9,10\n-1.5,9\n1e1,\n", {{"columns", "a,b"}}),
            "a: -1.5 9 10 1e1;b:  10 9 z; 10 z = 1; 9 10 = 1; -1.5 9 = 1; 1e1  = 1;");
  EXPECT_EQ(read_and_show("a,b\nlonger than eight,1\nlonger than 8,1\nlonger t,1\n\xc3\xa9,1\n", {{"columns", "a,b"}}),
            "a: longer t longer than 8 longer than eight \xc3\xa9;b: 1; longer than eight 1 = 1; longer than 8 1 = 1; "
            "longer t 1 = 1; \xc3\xa9 1 = 1;");
}

TEST(io_table, times) {
  EXPECT_EQ(read_and_show("t,b\n2024-03-17,x\n2023-12-01,x\n2024-03-01T10:00:00Z,x\n", {{"columns", "t:%Y-%m,b"}}),
            "t: 2023-12 2024-03;b: x; 2024-03 x = 1; 2023-12 x = 1; 2024-03 x = 1;");
  EXPECT_EQ(read_and_show("t\n2024-03-17 23:59\n2024-03-18 01:00\n", {{"columns", "t:%a,t:%H"}}),
            "t:%a: Mon Sun;t:%H: 01 23; Sun 23 = 1; Mon 01 = 1;");
  // Chronological, not by letters.
  EXPECT_EQ(read_and_show("t,b\n05.11.2023,x\n04.02.2024,x\n", {{"columns", "t:%d.%m.%Y>%b %Y,b"}}),
            "t: Nov 2023 Feb 2024;b: x; Nov 2023 x = 1; Feb 2024 x = 1;");
}

TEST(io_table, time_patterns) {
  const auto label = [](std::string_view pattern, std::string_view text) {
    std::string problem;
    const auto p = TimePattern::parse(pattern, problem);
    if (!p)
      return "no pattern: " + problem;
    const auto key = p->key(text);
    return key ? p->label(*key) : p->problem(text);
  };
  for (const std::string_view same :
       {"2024-02-29T12:34:56", "2024-02-29 12:34:56.789Z", "2024-02-29T12:34:56+01:00", "2024-02-29T12:34:56-0130",
        "2024/02/29 12:34:56", "20240229T12:34:56", "2024-02-29 12:34:56,5 +02"})
    EXPECT_EQ(label("%Y%m%d %H.%M.%S %u", same), "20240229 12.34.56 4") << same;
  EXPECT_EQ(label("%s>%Y-%m-%d %H:%M:%S", "0"), "1970-01-01 00:00:00");
  EXPECT_EQ(label("%s>%Y-%m-%d %H:%M:%S", "-1"), "1969-12-31 23:59:59");
  EXPECT_EQ(label("%s>%Y-%m-%d %H:%M:%S", "1709210096.25"), "2024-02-29 12:34:56");
  EXPECT_EQ(label("%m/%d/%Y>100%% %Y", "12/31/1999"), "100% 1999");
  EXPECT_EQ(label("%Y", "2024-07"), "2024");
  EXPECT_EQ(label("%Y-%m-%d", "2023-02-29"), "'2023-02-29' is on no calendar");
  EXPECT_EQ(label("%H", "2023-02-28 24:00"), "'2023-02-28 24:00' is on no calendar");
  EXPECT_EQ(label("%Y-%m-%d", "2024-07"), "'2024-07' has no day");
  EXPECT_EQ(label("%H", "2024-07-01"), "'2024-07-01' has no hour");
  for (const std::string_view none : {"", "2024", "202403", "2024-3-1", "2024-03-17x", "24-03-17", "2024-03/17",
                                      "2024-03-17T", "2024-03-17 12:00+1", "17.03.2024"})
    EXPECT_NE(label("%Y", none).find("is not a time as ISO 8601 has it"), std::string::npos) << none;
  EXPECT_EQ(label("%d.%m.%Y>%Y", "2024-03-17"), "'2024-03-17' is not a time in the pattern before '>'");
  EXPECT_EQ(label("%s>%Y", "999999999999"), "'999999999999' is not a time in the pattern before '>'");
  EXPECT_EQ(label("%Y-%q", ""), "no pattern: '%q' in it, expected % and one of YmbdHMSua");
  EXPECT_EQ(label("%Y%", ""), "no pattern: '%' in it, expected % and one of YmbdHMSua");
  EXPECT_EQ(label("%a>%Y", ""), "no pattern: '%a' in it, expected % and one of YmdHMSs");
  EXPECT_EQ(label("month", ""), "no pattern: it writes no field of a time, as \"%Y-%m\" does");
}

TEST(io_table, refused_lines) {
  const auto refused = [](std::string_view text, std::initializer_list<std::string_view> parts, Settings more = {}) {
    Options o = options({{"columns", "a,b"}, {"value", "v"}});
    for (const auto &[name, setting] : more)
      o.set_text(name, setting);
    for (const int threads : {1, 3})
      expect_error(Status::io, parts, [&] {
        read_table({"x", {text.data(), text.size()}}, ReadChoices::from(o, threads));
      });
  };
  using namespace std::string_view_literals;
  refused("", {"x: the file is empty"});
  refused("\n\n", {"x: the file is empty"});
  refused("a,b,v\n", {"x: no line follows the header"});
  refused("a,b,v\n\n\n", {"x: no line follows the header"});
  refused("a,b,v\n1,2,3\n1,2\n", {"x: line 3: has 2 fields, expected 3 as in the first line"});
  refused("a,b,v\n1,2,3,4\n", {"x: line 2: has 4 fields, expected 3"});
  refused("a,b,v\n\"1\n1\",2,3\n\n \n", {"x: line 5: has 1 field, expected 3"}); // a quoted line end counts
  refused("a,b,v\n1,2,x\n", {"x: line 2: column 3: 'x' is not a number"});
  refused("a,b,v\n1,2,\n", {"x: line 2: column 3: is empty, expected a number"});
  refused("a,b,v\n1,2,3 #\n", {"x: line 2: column 3: '3 #' is not a number"});
  refused("a,b,v\n1,2,inf\n", {"x: line 2: column 3: 'inf' is not finite"});
  refused("a,b,v\n1,2,1e999\n", {"x: line 2: column 3: '1e999' is beyond the range of f64"});
  refused("a,b,v\n1,2,1e99\n", {"'1e99' is beyond the range of f32"}, {{"value_type", "f32"}});
  refused("a,b,v\n1,2,3\n1,\xff,3\n", {"x: line 3: column 2: '\\xff' is not UTF-8"});
  refused("a,b,v\n1,\xff,3\n1,2\n", {"x: line 2: column 2"}); // the first of two
  refused("a,b,v\n1,\0,3\n"sv, {"x: line 2: column 2: '\\x00' is not UTF-8 without NUL"});
  refused("a,b,v\n1,2\"2,3\n", {"x: line 2: a quote within a field", "quotes = 0"});
  refused("a,b,v\n1,\"2\"2,3\n", {"x: line 2: text behind a field's closing quote"});
  refused("a,b,v\n1,\"2,3\n", {"x: line 2: a quote that is not closed"});
  refused("a,b,v\n1,\"2,3\n" + std::string(5 << 20, 'y') + ",1,2\n", {"x: line 2: has more than 4194304 bytes"});
  refused("a,b," + std::string(5 << 20, 'v') + "\n", {"x: line 1: has more than 4194304 bytes"});
  refused("\"a,b,v\n", {"x: line 1: a quote that is not closed"});
  refused("a,b,v\r1,2,3\r", {"x: line 1: a CR that no LF follows"});
  refused("\xff\xfe"
          "a\0,\0"sv,
          {"x: the text is UTF-16, expected UTF-8"});
  refused("a,a,b,v\n1,2,3,4\n", {"x: line 1 names more than one column 'a'"});
  refused("\xff,a,b,v\n1,2,3,4\n", {"x: line 1: the name of column 1, '\\xff', is not UTF-8"});
  refused("a,b,v\n2024-03-17,1,1\nmonday,1,1\n", {"x: line 3: column 1: 'monday' is not a time"},
          {{"columns", "a:%Y,b"}});
}

TEST(io_table, refused_options) {
  const auto refused = [](Settings settings, std::initializer_list<std::string_view> parts) {
    expect_error(Status::option_range, parts, [&] { read("user,item,v\n1,2,3\n", settings); });
  };
  refused({{"columns", "user"}}, {"\"user\": 1 column, expected 2 to 64"});
  refused({{"columns", "user:%Y\xff,item"}}, {"\"user:%Y\\xff,item\": is not UTF-8"});
  refused({{"columns", "usr,item"}}, {"x: no column 'usr' (did you mean 'user'?); the first line names user, item, v"});
  refused({{"columns", "user,item"}, {"value", "w"}}, {"x: no column 'w'"});
  refused({{"columns", "1,4"}}, {"x: no column '4': the table has 3 columns and no header, expected 1 to 3"});
  refused({{"columns", "user,user"}}, {"names user twice"});
  refused({{"columns", "1,1"}}, {"names column 1 twice"});
  refused({{"columns", "user,,item"}}, {"column 2 has no name"});
  refused({{"columns", "user:,item"}}, {"column 1 has no pattern"});
  refused({{"columns", "\"user,item"}}, {"a quote is not closed"});
  refused({{"columns", "user:month,item"}}, {"pattern 'month' of column 'user'", "%Y-%m"});
  refused({{"value", "v"}}, {"option 'value' = \"v\" without option 'columns'"});
}

// ---- a literal twin ----

struct Line {
  std::vector<std::string> names;
  double value;
};

/// A table whose fields hold what is hard to cut, and what is in it.
std::string random_table(std::mt19937_64 &random, std::size_t lines, std::vector<Line> &out) {
  static constexpr const char *odd[] = {"", ",", "\n", "\"", "\r\n", "a\"b", "\xc3\xa9", " x ", "\n\n\"\"\n", "plain"};
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  std::string text = "one,two,three,v\n";
  for (std::size_t i = 0; i < lines; ++i) {
    Line line{{}, static_cast<double>(below(1000)) / 8};
    for (int m = 0; m < 3; ++m) {
      std::string name = m == 0 ? std::to_string(below(5000)) : "name " + std::to_string(below(m == 1 ? 20000 : 7));
      if (below(50) == 0)
        name = odd[below(std::size(odd))];
      std::string field = name;
      if (name.find_first_of(",\"\r\n") != std::string::npos || below(20) == 0) {
        field = "\"";
        for (const char c : name)
          field += c == '"' ? std::string("\"\"") : std::string(1, c);
        field += "\"";
      }
      text += field + ",";
      line.names.push_back(name);
    }
    text += fmt::format("{}{}", line.value, below(9) == 0 ? "\r\n" : "\n");
    if (below(40) == 0)
      text += "\n";
    out.push_back(std::move(line));
  }
  return text;
}

void expect_same(const ReadTensor &tensor, const std::vector<Line> &lines) {
  const auto &x = std::get<Entries>(tensor.content);
  ASSERT_EQ(x.values.size(), static_cast<i64>(lines.size()));
  for (std::size_t m = 0; m < 3; ++m) {
    std::set<std::string> names;
    for (const Line &line : lines)
      names.insert(line.names[m]);
    ASSERT_EQ(x.dims[m], static_cast<i64>(names.size()));
    i64 index = 0;
    for (const std::string &name : names) // some name is no number: by bytes, as the set has them
      ASSERT_EQ(label(tensor, m, index++), name);
    for (std::size_t k = 0; k < lines.size(); ++k)
      ASSERT_EQ(label(tensor, m, x.indices[m][static_cast<i64>(k)]), lines[k].names[m]);
  }
  for (std::size_t k = 0; k < lines.size(); ++k)
    ASSERT_EQ(value(x, static_cast<i64>(k)), lines[k].value);
}

TEST(io_table, as_a_literal_reader) {
  std::mt19937_64 random(5);
  std::vector<Line> lines;
  const std::string text = random_table(random, 160000, lines); // of two blocks, each of several ranges
  ASSERT_GT(text.size(), std::size_t{1} << 22);
  const Settings settings = {{"columns", "one,two,three"}, {"value", "v"}};
  for (const int threads : {1, 5})
    expect_same(read(text, settings, threads), lines);
  expect_same(read(text, {{"columns", "one,two,three"}, {"value", "v"}, {"value_type", "f32"}}, 2), lines);
  for (const i64 block : {2000, 65537})
    expect_same(read_table({"x", {text.data(), text.size()}}, ReadChoices::from(options(settings), 2), block), lines);
  const std::string members = gzip_member(std::string_view(text).substr(0, text.size() / 3)) +
                              gzip_member(std::string_view(text).substr(text.size() / 3));
  const ReadTensor zipped = read(members, settings, 3);
  expect_same(zipped, lines);
  EXPECT_EQ(zipped.source.rfind("gzip of table of 4 columns", 0), 0u);
}

TEST(io_table, lines_in_another_order_have_the_same_indices) {
  const Settings settings = {{"columns", "a,b"}};
  const ReadTensor x = read("a,b\nu,1\nv,10\nw,9\n", settings), y = read("a,b\nw,9\nv,10\nu,1\n", settings);
  for (std::size_t m = 0; m < 2; ++m)
    EXPECT_EQ(x.labels.list(static_cast<int>(m))->text(), y.labels.list(static_cast<int>(m))->text());
}

TEST(io_table, memory_limit) {
  std::string text = "a,b\n";
  for (int i = 0; i < 400000; ++i)
    text += std::to_string(i) + ",x\n";
  const Settings little = {{"columns", "a,b"}, {"memory_limit", "20000000"}};
  expect_error(Status::host_memory, {"reading a table"}, [&] { read(text, little); });
  EXPECT_EQ(std::get<Entries>(read(text, {{"columns", "a,b"}, {"memory_limit", "80000000"}}).content).dims[0], 400000);
}

TEST(io_table, is_read_where_columns_are_asked_for) {
  const TempFolder folder;
  const std::string path = folder.put("t.csv", "a,b\nx,y\n");
  EXPECT_EQ(show(read_tensor(path, options({{"columns", "a,b"}}), 2)), "a: x;b: y; x y = 1;");
  expect_error(Status::io, {"t.csv: line 1", "option columns"}, [&] { read_tensor(path, {}, 2); });
  write_tensor(DenseArrayView{std::vector<i64>{1, 1}, {}, ValueType::f64, std::vector<double>{1}.data()},
               folder.file("x.tdb"), {});
  expect_error(Status::unsupported, {"x.tdb: is no table"}, [&] {
    read_tensor(folder.file("x.tdb"), options({{"columns", "a,b"}}), 2);
  });
}

} // namespace

} // namespace td::io
