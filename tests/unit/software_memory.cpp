#include <gtest/gtest.h>

#include "software/memory.hpp"

namespace {

using td::software::Memory;

// What the tests on GPUs in software rest on: without an Access the host gets a signal, with one it does not.
TEST(SoftwareMemoryDeathTest, IsNotTouchedByTheHost) {
  Memory memory(0);
  auto *there = static_cast<volatile char *>(memory.allocate(100));
  EXPECT_DEATH(there[0] = 1, "");
  {
    const Memory::Access access(memory);
    const Memory::Access within(memory);
    there[99] = 7;
  }
  EXPECT_DEATH(static_cast<void>(there[99]), "");
  const Memory::Access access(memory);
  EXPECT_EQ(there[99], 7);
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
