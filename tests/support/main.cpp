// Runs the tests and prints the seed after each failure.
#include <iostream>

#include <gtest/gtest.h>

#include "support/problem.hpp"

namespace {

class SeedPrinter : public testing::EmptyTestEventListener {
  void OnTestEnd(const testing::TestInfo &info) override {
    if (info.result()->Failed())
      std::cout << "seed " << tdtest::base_seed() << " (TD_TEST_SEED=" << tdtest::base_seed() << " repeats it)\n";
  }
};

} // namespace

int main(int argc, char **argv) {
  testing::InitGoogleTest(&argc, argv);
  testing::UnitTest::GetInstance()->listeners().Append(new SeedPrinter);
  return RUN_ALL_TESTS();
}
