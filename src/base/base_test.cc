// SPDX-License-Identifier: Apache-2.0
// The small things everything rests on: numbers that survive their encoding, and
// memory that a forked child sees as empty.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "base/arena.h"
#include "base/pieces.h"
#include "base/varint.h"

namespace malloscope {
namespace {

TEST(Varint, ReadsBackWhatItWrote) {
  for (int bit = 0; bit < 64; ++bit) {
    for (uint64_t value :
         {(uint64_t{1} << bit) - 1, uint64_t{1} << bit, (uint64_t{1} << bit) + 1}) {
      uint8_t bytes[kMaxVarintBytes];
      uint8_t* end = put_varint(bytes, value);
      uint64_t back = ~value;
      EXPECT_EQ(get_varint(bytes, end, &back), end);
      EXPECT_EQ(back, value);
      EXPECT_EQ(get_varint(bytes, end - 1, &back), nullptr) << "a cut number is refused";
    }
  }
}

TEST(Varint, RefusesANumberThatNeverEnds) {
  std::vector<uint8_t> endless(20, 0x80);
  uint64_t value;
  EXPECT_EQ(get_varint(endless.data(), endless.data() + endless.size(), &value), nullptr);
}

TEST(Zigzag, KeepsSmallMagnitudesSmall) {
  EXPECT_EQ(zigzag(0), 0u);
  EXPECT_EQ(zigzag(-1), 1u);
  EXPECT_EQ(zigzag(1), 2u);
  for (int64_t value : {int64_t{0}, int64_t{-1}, INT64_MAX, INT64_MIN})
    EXPECT_EQ(unzigzag(zigzag(value)), value);
}

TEST(Arena, HandsOutDisjointZeroedMemory) {
  static constinit Arena arena;
  std::vector<char*> taken;
  for (size_t bytes : {1u, 64u, 65u, 4096u, 200'000u, 300'000u, 5'000'000u}) {
    char* memory = static_cast<char*>(arena.take(bytes));
    ASSERT_NE(memory, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 64, 0u);
    for (size_t i = 0; i < bytes; ++i) ASSERT_EQ(memory[i], 0);
    memset(memory, 0xab, bytes);
  }
}

TEST(Arena, IsEmptyInAForkedChild) {
  static constinit Arena arena;
  char* memory = static_cast<char*>(arena.take(100));
  *memory = 7;
  pid_t child = fork();
  if (child == 0) _exit(*memory);
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(*memory, 7);
}

TEST(Pieces, HoldsWhatAVectorHoldsAndStaysWhereItIs) {
  Pieces<int> pieces;
  const int* first = &pieces.push_back(0);
  for (int i = 1; i < 10'000; ++i) pieces.push_back(i);
  pieces.grow_to(20'000);
  EXPECT_EQ(first, &pieces[0]);
  Pieces<int> copy = pieces, moved = std::move(pieces);
  for (const Pieces<int>* each : {&copy, &moved}) {
    ASSERT_EQ(each->size(), 20'000u);
    for (size_t i = 0; i < 20'000; ++i) ASSERT_EQ((*each)[i], i < 10'000 ? static_cast<int>(i) : 0);
  }
  EXPECT_EQ(first, &moved[0]);
  EXPECT_EQ(pieces.size(), 0u);  // NOLINT(bugprone-use-after-move): it is empty, as promised.
}

}  // namespace
}  // namespace malloscope
