// Text dialects: what is read, and what is said about it.
#include <cmath>

#include "io_files.hpp"

#include "io/readers.hpp"

namespace td::io {

namespace {

ReadTensor read(std::string_view text, const Options &o = {}, int threads = 2) {
  return read_tensor_bytes({"x", {text.data(), text.size()}}, ReadChoices::from(o, threads));
}

/// "2x3; base 1; 1 2 = 0.5; ..." so that a test says all of a small tensor in one line.
std::string show(const ReadTensor &tensor) {
  std::string text;
  const auto add_dims = [&](const std::vector<i64> &dims) {
    for (const i64 dim : dims)
      text += (text.empty() ? "" : "x") + std::to_string(dim);
  };
  if (const auto *x = std::get_if<Entries>(&tensor.content)) {
    add_dims(x->dims);
    text += fmt::format("; base {}", x->index_base);
    for (i64 k = 0; k < x->values.size(); ++k) {
      text += ";";
      for (const auto &column : x->indices)
        text += fmt::format(" {}", column[k]);
      text += fmt::format(" = {}", x->values.type() == ValueType::f64 ? x->values.as<double>()[k]
                                                                      : static_cast<double>(x->values.as<float>()[k]));
    }
  } else {
    const auto &a = std::get<DenseArray>(tensor.content);
    add_dims(a.dims);
    text += ";";
    for (i64 k = 0; k < a.values.size(); ++k)
      text += fmt::format(" {}", a.values.as<double>()[k]);
  }
  return text;
}

std::string read_and_show(std::string_view text, const Options &o = {}) { return show(read(text, o)); }

TEST(io_text, frostt) {
  const auto x = read("1 1 2 0.5\n3 2 1 -1e-3\n");
  EXPECT_EQ(show(x), "3x2x2; base 1; 1 1 2 = 0.5; 3 2 1 = -0.001");
  EXPECT_EQ(x.source, "FROSTT text; 1-based, as FROSTT text is; dims are the largest indices");
}

TEST(io_text, parti) {
  const auto x = read("3\n4 5 6\n1 1 2 0.5\n4 2 1 2\n");
  EXPECT_EQ(show(x), "4x5x6; base 1; 1 1 2 = 0.5; 4 2 1 = 2");
  EXPECT_EQ(x.source, "ParTI text; 1-based, as ParTI text is");
}

TEST(io_text, sptensor_with_index_0_is_0_based) {
  const auto x = read("sptensor\n3\n2 2 2\n1\n0 1 1 7\n");
  EXPECT_EQ(show(x), "2x2x2; base 0; 0 1 1 = 7");
  EXPECT_EQ(x.source, "Tensor Toolbox sptensor text; 0-based: index 0 occurs in line 5");
}

TEST(io_text, sptensor_with_index_equal_to_dim_is_1_based) {
  const auto x = read("sptensor\n3\n2 3 4\n2\n1 1 1 7\n1 1 4 8\n");
  EXPECT_EQ(show(x), "2x3x4; base 1; 1 1 1 = 7; 1 1 4 = 8");
  EXPECT_EQ(x.source, "Tensor Toolbox sptensor text; 1-based: index 4 = dim of mode 2 occurs in line 6");
}

TEST(io_text, sptensor_with_neither_is_ambiguous) {
  constexpr std::string_view text = "sptensor\n2\n3 3\n1\n1 2 7\n";
  expect_error(Status::io, {"ambiguous", "index_base"}, [&] { read(text); });
  EXPECT_EQ(read_and_show(text, options({{"index_base", "0"}})), "3x3; base 0; 1 2 = 7");
  EXPECT_EQ(read_and_show(text, options({{"index_base", "1"}})), "3x3; base 1; 1 2 = 7");
  EXPECT_EQ(read_and_show(text, options({{"dialect", "genten"}})), "3x3; base 0; 1 2 = 7");
  EXPECT_EQ(read_and_show(text, options({{"dialect", "toolbox"}})), "3x3; base 1; 1 2 = 7");
}

TEST(io_text, sptensor_with_both_is_refused) {
  expect_error(Status::io, {"line 5", "line 6", "index_base"}, [] { read("sptensor\n2\n3 3\n2\n0 1 7\n1 3 8\n"); });
}

TEST(io_text, sptensor_beyond_dims_in_either_base_is_out_of_range) {
  expect_error(Status::index, {"line 5", "index 9", "mode 1"}, [] { read("sptensor\n2\n3 3\n1\n1 9 7\n"); });
}

TEST(io_text, genten_states_its_base) {
  const auto zero = read("sptensor indices-start-at-zero\n2\n3 3\n1\n1 2 7\n");
  EXPECT_EQ(show(zero), "3x3; base 0; 1 2 = 7");
  EXPECT_EQ(zero.source, "GenTen sptensor text; 0-based, stated in line 1");
  EXPECT_EQ(read_and_show("sptensor indices-start-at-one\n2\n3 3\n1\n1 2 7\n"), "3x3; base 1; 1 2 = 7");
}

TEST(io_text, dense_tensor) {
  EXPECT_EQ(read_and_show("tensor\n2\n2 3\n1\n2\n3\n4 5\n6"), "2x3; 1 2 3 4 5 6");
  expect_error(Status::io, {"6 values", "5 follow"}, [] { read("tensor\n2\n2 3\n1 2 3 4 5"); });
}

TEST(io_text, an_option_overrides_the_dialect) {
  // Without the option, one number in the first line is ParTI's order.
  expect_error(Status::io, {"line 1", "FROSTT"}, [] { read("3\n1 1 1\n", options({{"dialect", "frostt"}})); });
  expect_error(Status::io, {"line 1", "expected the number of modes alone"}, [] {
    read("1 1 1 2\n", options({{"dialect", "parti"}}));
  });
  expect_error(Status::io, {"'1'", "sptensor"}, [] { read("1 1 1 2\n", options({{"dialect", "toolbox"}})); });
  EXPECT_EQ(read_and_show("0 1 2 5\n", options({{"index_base", "0"}})), "1x2x3; base 0; 0 1 2 = 5");
}

TEST(io_text, blanks_comments_and_line_ends) {
  constexpr std::string_view expected = "3x2x2; base 1; 1 1 2 = 0.5; 3 2 1 = 4";
  EXPECT_EQ(read_and_show("1 1 2 0.5\r\n3 2 1 4\r\n"), expected);
  EXPECT_EQ(read_and_show("\t1\t1  2\t0.5 \t\n  3 2 1 4   \n\n \t\n"), expected);
  EXPECT_EQ(read_and_show("# a\n% b\n  // c\n1 1 2 0.5 # d\n\n3 2 1 4// e\n# f"), expected);
  EXPECT_EQ(read_and_show("\xef\xbb\xbf"
                          "1 1 2 0.5\n3 2 1 +4"),
            expected);
  EXPECT_EQ(read_and_show("# x\r\nsptensor\r\n% y\r\n 2 \r\n2 2 // z\r\n1\r\n2 2 3.5 \r\n"), "2x2; base 1; 2 2 = 3.5");
}

TEST(io_text, dims_in_a_comment_of_ours) {
  EXPECT_EQ(read_and_show("# td: dims 4 5 6\n1 1 2 0.5\n"), "4x5x6; base 1; 1 1 2 = 0.5");
  EXPECT_EQ(read_and_show("# td: dims 4 5 6\n"), "4x5x6; base 1");
  EXPECT_EQ(read_and_show("# so\n \t# td: dims 4 5 6\n# td: dims 4 5 6\n1 1 2 0.5\n"), "4x5x6; base 1; 1 1 2 = 0.5");
  expect_error(Status::io, {"line 2", "dims 4 5 7 after '# td: dims', expected 4 5 6"},
               [] { read("# td: dims 4 5 6\n# td: dims 4 5 7\n1 1 2 0.5\n"); });
  expect_error(Status::io, {"line 1", "'unknown' after '# td: dims'"}, [] { read("# td: dims unknown\n1 1 2 0.5\n"); });
  expect_error(Status::index, {"line 2", "index 7", "mode 2"}, [] { read("# td: dims 4 5 6\n1 1 7 0.5\n"); });
  expect_error(Status::io, {"line 2", "3 numbers", "3 dims"}, [] { read("# td: dims 4 5 6\n1 1 0.5\n"); });
}

TEST(io_text, no_entries) {
  EXPECT_EQ(read_and_show("sptensor\n3\n2 3 4\n0\n"), "2x3x4; base 1");
  EXPECT_EQ(read_and_show("2\n2 3\n"), "2x3; base 1");
}

TEST(io_text, values_are_rounded_once) {
  // 1 + 2^-24 + 2^-60: above the middle between two floats, but rounding to double first would land on the middle,
  // and then go down to the even one.
  const auto x = read("1 1 1.00000005960464477626\n", options({{"value_type", "f32"}}));
  EXPECT_EQ(std::get<Entries>(x.content).values.as<float>()[0], 1.0f + 0x1p-23f);
  EXPECT_EQ(read_and_show("1 1 1e-400\n"), "1x1; base 1; 1 1 = 0");
  EXPECT_EQ(read_and_show("1 1 4.9406564584124654e-324\n"), "1x1; base 1; 1 1 = 5e-324");
}

TEST(io_text, line_numbers_of_bad_lines) {
  const auto refused = [](std::string_view text, std::initializer_list<std::string_view> parts) {
    expect_error(Status::io, parts, [&] { read(text); });
  };
  refused("1 1 1 2\n\n# c\n1 1 2\n", {"line 4", "3 numbers", "3 indices and a value"});
  refused("1 1 1 2\n1 1 1 2 3\n", {"line 2", "more than 4 numbers"});
  refused("1 1 1 2\n1 x 1 2\n", {"line 2", "mode 1", "'x' is not a whole number"});
  refused("1 1 1 2\n1 1.5 1 2\n", {"line 2", "'1.5' is not a whole number"});
  refused("1 1 1 2\n1 -1 1 2\n", {"line 2", "'-1' is negative"});
  refused("1 1 1 2\n1 9223372036854775808 1 2\n", {"line 2", "above 2^63 - 1"});
  refused("1 1 1 2\n1 1 1 two\n", {"line 2", "'two' is not a number"});
  refused("1 1 1 2\n1 1 1 nan\n", {"line 2", "not finite"});
  refused("1 1 1 2\n1 1 1 -inf\n", {"line 2", "not finite"});
  refused("1 1 1 2\n1 1 1 1e999\n", {"line 2", "beyond the range of f64"});
  refused("1 1 1 2\n1 1 1 1e5x\n", {"line 2", "'1e5x' is not a number"});
  expect_error(Status::io, {"line 1", "beyond the range of f32"}, [] {
    read("1 1 1 1e39\n", options({{"value_type", "f32"}}));
  });
}

TEST(io_text, headers_that_make_no_sense) {
  const auto refused = [](Status status, std::string_view text, std::initializer_list<std::string_view> parts) {
    expect_error(status, parts, [&] { read(text); });
  };
  refused(Status::io, "", {"empty"});
  refused(Status::io, "# only a comment\n\n", {"empty"});
  refused(Status::io, "1 2\n", {"line 1", "2 numbers", "FROSTT", "ParTI"});
  refused(Status::io, "hello\n", {"line 1", "'hello'"});
  refused(Status::io, "ktensor\n2\n", {"line 1", "is a ktensor"});
  refused(Status::io, "sptensor\n3\n2 2\n0\n", {"line 3", "2 numbers", "expected 3 dims"});
  refused(Status::io, "sptensor\n3\n", {"ends after line 2", "dims"});
  refused(Status::io, "sptensor\n3\n2 2 2\n", {"ends after line 3", "number of entries"});
  refused(Status::io, "sptensor\n2\n2 2\n3\n1 1 1\n2 2 2\n", {"line 4 states 3 entries", "2 follow"});
  refused(Status::io, "sptensor\n2\n2 2\n1\n1 1 1\n2 2 2\n", {"line 4 states 1 entry", "2 follow"});
  refused(Status::io, "sptensor one\n", {"'one'"});
  refused(Status::shape, "sptensor\n1\n2\n0\n", {"line 2", "1 mode"});
  refused(Status::shape, "2\n2 0\n", {"line 2", "dim 0 of mode 1"});
  refused(Status::io, "2\n2 -3\n", {"line 2", "'-3' is negative"});
  refused(Status::io, std::string_view("1 1\0 2\n", 7), {"neither text nor"});
  refused(Status::shape, "tensor\n3\n4294967296 4294967296 4\n1\n", {"2^63 - 1"});
}

TEST(io_text, indices_out_of_range) {
  const auto refused = [](std::string_view text, std::initializer_list<std::string_view> parts) {
    expect_error(Status::index, parts, [&] { read(text); });
  };
  refused("1 1 1 2\n1 0 1 2\n", {"line 2", "index 0 of mode 1", "index_base to 0"});
  refused("2\n2 2\n1 1 5\n1 3 5\n", {"line 4", "index 3 of mode 1", "expected 1 to 2"});
  refused("sptensor indices-start-at-zero\n2\n2 2\n1\n1 2 5\n", {"line 5", "index 2 of mode 1", "expected 0 to 1"});
}

TEST(io_text, largest_index_there_is) {
  constexpr std::string_view text = "9223372036854775807 1 5\n";
  EXPECT_EQ(read_and_show(text), "9223372036854775807x1; base 1; 9223372036854775807 1 = 5");
  expect_error(Status::shape, {"index 9223372036854775807 of mode 0", "2^63 - 1"}, [&] {
    read(text, options({{"index_base", "0"}}));
  });
}

TEST(io_text, threads_agree) {
  std::string text = "sptensor\n3\n1000 1000 1000\n40000\n";
  for (i64 k = 0; k < 40000; ++k)
    text += fmt::format("{} {} {} {}\n", k % 1000 + 1, k * 7 % 1000 + 1, k * 13 % 1000 + 1, static_cast<double>(k) / 7);
  const ReadTensor one = read(text, {}, 1);
  const ReadTensor many = read(text, {}, 5);
  EXPECT_EQ(show(one), show(many));
  EXPECT_EQ(one.source, many.source);
  // Two bad lines: the earlier one is reported however many threads look.
  const auto bad = text.find("\n", text.size() / 3);
  text.replace(bad + 1, 1, "x");
  text.replace(text.find("\n", 2 * text.size() / 3) + 1, 1, "y");
  std::string first;
  for (const int threads : {1, 2, 7}) {
    try {
      read(text, {}, threads);
      FAIL();
    } catch (const Error &e) {
      if (first.empty())
        first = e.what();
      EXPECT_EQ(first, e.what());
    }
  }
}

TEST(io_text, aminoacid) {
  const std::string path = TD_TEST_DATA "/aminoacid_data.txt";
  if (!std::filesystem::exists(path))
    GTEST_SKIP() << path << " is not there";
  const ReadTensor x = read_tensor(path, {}, 2);
  EXPECT_EQ(x.source, "Tensor Toolbox sptensor text; 0-based: index 0 occurs in line 5");
  const auto &entries = std::get<Entries>(x.content);
  EXPECT_EQ(entries.dims, (std::vector<i64>{5, 201, 61}));
  ASSERT_EQ(entries.values.size(), 61305);
  double squares = 0;
  for (i64 k = 0; k < entries.values.size(); ++k)
    squares += entries.values.as<double>()[k] * entries.values.as<double>()[k];
  // 61305 roundings of relative size 2^-53 each: 1e-11 at most.
  EXPECT_NEAR(std::sqrt(squares), 47991.950132089260, 47991.95 * 1e-11);
}

} // namespace

} // namespace td::io
