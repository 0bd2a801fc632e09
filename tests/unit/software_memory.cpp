#include <gtest/gtest.h>

#include "software/memory.hpp"

namespace {

using td::software::Memory;

// What the tests on GPUs in software rest on: the host gets a signal, copies and kernels do not.
TEST(SoftwareMemoryDeathTest, IsNotTouchedByTheHost) {
  Memory memory(0);
  auto *const there = static_cast<char *>(memory.allocate(100));
  EXPECT_DEATH(*static_cast<volatile char *>(there) = 1, "");
  const char bytes[] = {5, 7};
  memory.copy(there + 98, bytes, 2);
  EXPECT_DEATH(static_cast<void>(*static_cast<volatile char *>(there + 99)), "");
  EXPECT_EQ(*memory.inside(there + 99), 7);
  char back[2] = {};
  memory.copy(back, there + 98, 2);
  EXPECT_EQ(back[0], 5);
  EXPECT_EQ(memory.inside(bytes), bytes) << "the host's stays where it is";
}

TEST(SoftwareMemory, BlocksAreApartAndComeBack) {
  Memory memory(0);
  char *const a = static_cast<char *>(memory.allocate(100));
  char *const b = static_cast<char *>(memory.allocate(1));
  char *const c = static_cast<char *>(memory.allocate(300));
  EXPECT_GE(b - a, 100);
  EXPECT_GE(c - b, 1);
  EXPECT_TRUE(memory.holds(c + 299));
  EXPECT_EQ(memory.allocate(td::i64{1} << 50), nullptr);
  memory.release(a);
  memory.release(b);
  EXPECT_EQ(memory.allocate(400), a) << "the two are one again";
  memory.release(c);
}

} // namespace
