// Enums that list the words of options of files in the order of their rows.
#include <gtest/gtest.h>

#include "io/table_layout.hpp"
#include "io/text_header.hpp"
#include "io/writers.hpp"

namespace td::io {
namespace {

/// The words behind auto, in the enum's order, are all that the option has.
template <class Enum>
void expect_words(const char *option, std::initializer_list<std::pair<std::string_view, Enum>> words) {
  EXPECT_EQ(Options().choice_behind_auto<Enum>(option), std::nullopt);
  std::string all = "auto";
  for (const auto &[word, value] : words) {
    Options options;
    options.set_text(option, word);
    EXPECT_EQ(options.choice_behind_auto<Enum>(option), value) << option << " = " << word;
    all += "|" + std::string(word);
  }
  EXPECT_EQ(option_row(option).choices, all);
}

TEST(io_options, EnumsListTheWordsOfTheirOptions) {
  expect_words<Dialect>("dialect", {{"frostt", Dialect::frostt},
                                    {"parti", Dialect::parti},
                                    {"toolbox", Dialect::toolbox},
                                    {"genten", Dialect::genten},
                                    {"matrixmarket", Dialect::matrix_market}});
  EXPECT_EQ(name_of(Dialect::matrix_market), "matrixmarket");
  expect_words<FileFormat>("file_format", {{"frostt", FileFormat::frostt},
                                           {"toolbox", FileFormat::toolbox},
                                           {"genten", FileFormat::genten},
                                           {"parti", FileFormat::parti},
                                           {"binary", FileFormat::binary},
                                           {"npy", FileFormat::npy},
                                           {"splatt", FileFormat::splatt}});
}

TEST(io_options, WordsOfTablesMeanWhatTheySay) {
  Options options;
  EXPECT_EQ(TableChoices::from(options).header, TableHeader::automatic);
  EXPECT_EQ(TableChoices::from(options).separator, std::nullopt);
  for (const auto &[word, header] : {std::pair{"yes", TableHeader::yes}, {"no", TableHeader::no}}) {
    options.set_text("header", word);
    EXPECT_EQ(TableChoices::from(options).header, header);
  }
  for (const auto &[word, separator] : {std::pair{"comma", ','}, {"tab", '\t'}, {"semicolon", ';'}, {"pipe", '|'}}) {
    options.set_text("separator", word);
    EXPECT_EQ(TableChoices::from(options).separator, separator);
  }
}

} // namespace
} // namespace td::io
