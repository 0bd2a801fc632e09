// Enums that list an option's words in the order of its row.
#include "plan/settings.hpp"

#include <gtest/gtest.h>

#include "kernels/device.hpp"

namespace td::plan {
namespace {

template <class Enum> Enum chosen(const char *option, std::string_view word) {
  Options options;
  options.set_text(option, word);
  return options.choice<Enum>(option);
}

/// The words in the enum's order are all that the option has.
template <class Enum>
void expect_words(const char *option, std::initializer_list<std::pair<std::string_view, Enum>> words) {
  std::string all;
  for (const auto &[word, value] : words) {
    EXPECT_EQ(chosen<Enum>(option, word), value) << option << " = " << word;
    EXPECT_EQ(choice_at(option, static_cast<std::size_t>(value)), word);
    all += (all.empty() ? "" : "|") + std::string(word);
  }
  EXPECT_EQ(option_row(option).choices, all);
  EXPECT_EQ(choice_at(option, words.size()), "");
}

TEST(Settings, EnumsListTheWordsOfTheirOptions) {
  expect_words<Solve>("solve", {{"normal", Solve::normal}, {"qr", Solve::qr}});
  expect_words<Overlap>("overlap", {{"auto", Overlap::automatic}, {"on", Overlap::on}, {"off", Overlap::off}});
  expect_words<ShardingRule>(
      "sharding",
      {{"auto", ShardingRule::automatic}, {"rows", ShardingRule::rows}, {"entries", ShardingRule::entries}});
  using kernels::Conflicts;
  expect_words<Conflicts>("conflicts", {{"auto", Conflicts::automatic},
                                        {"private", Conflicts::privatize},
                                        {"atomic", Conflicts::atomic},
                                        {"owner", Conflicts::owner}});
  using kernels::DenseKernel;
  expect_words<DenseKernel>("dense_kernel", {{"auto", DenseKernel::automatic},
                                             {"elem", DenseKernel::elem},
                                             {"slice", DenseKernel::slice},
                                             {"tile", DenseKernel::tile},
                                             {"gemm", DenseKernel::gemm},
                                             {"fused", DenseKernel::fused},
                                             {"fused_tf32", DenseKernel::fused_tf32}});
  using formats::EmptyRows;
  expect_words<EmptyRows>("empty_rows",
                          {{"auto", EmptyRows::few}, {"keep", EmptyRows::keep}, {"drop", EmptyRows::drop}});
  using kernels::Exchange;
  expect_words<Exchange>(
      "exchange",
      {{"auto", Exchange::automatic}, {"nccl", Exchange::nccl}, {"peer", Exchange::peer}, {"host", Exchange::host}});
}

TEST(Settings, FormatsAreNamedAsTheirOptionHasThem) {
  for (const auto &[word, format] :
       {std::pair{"coo", Format::coo}, {"blco", Format::blco}, {"sorted", Format::sorted}}) {
    Options options;
    options.set_text("format", word);
    EXPECT_EQ(TensorSettings(options).format, format);
    EXPECT_EQ(name_of(format), word);
  }
  EXPECT_EQ(TensorSettings(Options()).format, std::nullopt);
  EXPECT_EQ(name_of(Format::dense), "dense");
}

TEST(Settings, WordsThatSwitchSomethingOnAreTheSecond) {
  Options options;
  EXPECT_FALSE(TensorSettings(options).refuse_duplicates || TensorSettings(options).f64_sums ||
               TensorSettings(options).f32_rows || SolverSettings(options).nvecs ||
               SolverSettings(options).distributed);
  for (const auto &[option, word] : {std::pair{"duplicates", "error"},
                                     {"accumulate", "f64"},
                                     {"gather", "f32"},
                                     {"init", "nvecs"},
                                     {"model", "distributed"}})
    options.set_text(option, word);
  EXPECT_TRUE(TensorSettings(options).refuse_duplicates && TensorSettings(options).f64_sums &&
              TensorSettings(options).f32_rows && SolverSettings(options).nvecs && SolverSettings(options).distributed);
}

TEST(GatherChunks, HaveAllRowsInOrder) {
  for (const i64 rows : {1, 2, 5, 1000, 123456789})
    for (const double ratio : {1.0, 0.66, 0.125})
      for (const Overlap overlap : {Overlap::automatic, Overlap::on, Overlap::off}) {
        const GatherChunks chunks = gather_chunks(overlap, rows, 256, ratio);
        SCOPED_TRACE(testing::Message() << rows << " rows, ratio " << ratio << ", " << chunks.count << " chunks");
        for (const i64 own : {rows, rows / 2, i64{0}}) { // others own as many or fewer
          i64 next = 0;
          for (int c = 0; c < chunks.count; ++c) {
            EXPECT_EQ(chunks.of(own, c).begin, next);
            EXPECT_GE(chunks.of(own, c).size(), 0);
            next = chunks.of(own, c).end;
          }
          EXPECT_EQ(next, own);
        }
      }
}

// What comes while a chunk is computed is the one before; nothing hides the last one.
TEST(GatherChunks, AreAsLongAsTheNextOneHides) {
  constexpr i64 row_bytes = 256;
  EXPECT_EQ(gather_chunks(Overlap::off, 10000000, row_bytes, 0.5).count, 1);
  EXPECT_EQ(gather_chunks(Overlap::automatic, 100000, row_bytes, 0.5).count, 1); // 26 MB
  const GatherChunks even = gather_chunks(Overlap::automatic, 10000000, row_bytes, 1);
  EXPECT_EQ(even.count, 8);
  EXPECT_NEAR(even.last(), 1. / 8, 1e-15);
  const GatherChunks halves = gather_chunks(Overlap::automatic, 1000000, row_bytes, 0.5);
  EXPECT_EQ(halves.count, 4); // 8, 4, 2 and 1 of 15: of 244 MiB 16 are left
  EXPECT_NEAR(halves.before(1), 8. / 15, 1e-15);
  EXPECT_NEAR(halves.last(), 1. / 15, 1e-15);
  const GatherChunks steep = gather_chunks(Overlap::automatic, 1000000, row_bytes, 0.125);
  EXPECT_EQ(steep.count, 2); // 27 of 244 MiB
  // Many entries a row take long, more GPUs send more.
  EXPECT_EQ(gather_ratio(5000, 5, 4, 2), 0.125);
  EXPECT_NEAR(gather_ratio(40, 5, 4, 2), 16. / 24, 1e-15);
  EXPECT_EQ(gather_ratio(40, 5, 4, 3), 1);
  EXPECT_EQ(gather_ratio(3, 5, 3, 2), 1); // no row is read for less than an entry
  EXPECT_EQ(gather_ratio(0, 0, 3, 2), 1);
}

} // namespace
} // namespace td::plan
