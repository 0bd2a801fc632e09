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

} // namespace
} // namespace td::plan
