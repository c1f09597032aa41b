// SPDX-License-Identifier: Apache-2.0
#include "record/last_touch.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <random>
#include <unordered_map>

namespace malloscope::record {
namespace {

struct Free {
  void operator()(void* p) const { std::free(p); }
};
using Table = std::unique_ptr<LastTouch, Free>;

// As in the recorder: in memory that begins as zeros.
Table make() { return Table(static_cast<LastTouch*>(std::calloc(1, sizeof(LastTouch)))); }

constexpr uintptr_t kBlock = 0x7f12'3456'7890;

TEST(LastTouch, OneLaneIsAlwaysInOrder) {
  Table t = make();
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(t->same_lane(kBlock, 1, LastTouch::kMade));
    EXPECT_TRUE(t->same_lane(kBlock, 1, LastTouch::kFreed));
  }
}

TEST(LastTouch, ABlockFromAnotherLaneIsTold) {
  Table t = make();
  EXPECT_TRUE(t->same_lane(kBlock, 1, LastTouch::kMade)) << "nobody had it before";
  EXPECT_FALSE(t->same_lane(kBlock, 2, LastTouch::kFreed));
  EXPECT_FALSE(t->same_lane(kBlock, 1, LastTouch::kMade)) << "freed by another";
  EXPECT_TRUE(t->same_lane(kBlock, 1, LastTouch::kFreed));
}

TEST(LastTouch, AnAddressBeyond48BitsIsNeverTakenForAnother) {
  Table t = make();
  constexpr uintptr_t kHigh = kBlock | uintptr_t{1} << 50;
  EXPECT_FALSE(t->same_lane(kHigh, 1, LastTouch::kMade));
  EXPECT_FALSE(t->same_lane(kHigh, 1, LastTouch::kFreed));
}

// Places are shared, so it may forget; it may never take a block for its lane's own that is not.
TEST(LastTouch, NeverWrongOverRandomHandOvers) {
  Table t = make();
  std::mt19937_64 random(7);
  struct Last {
    uint32_t lane;
    LastTouch::How how;
  };
  std::unordered_map<uintptr_t, Last> last;
  int own = 0, forgotten = 0;
  for (int i = 0; i < 2'000'000; ++i) {
    uintptr_t block = 0x7000'0000'0000 + random() % 4 * (64 << 20) + random() % 50'000 * 16;
    uint32_t lane = 1 + static_cast<uint32_t>(random() % 16 == 0);
    auto [it, fresh] = last.try_emplace(block, Last{lane, LastTouch::kFreed});
    LastTouch::How how = it->second.how == LastTouch::kFreed ? LastTouch::kMade : LastTouch::kFreed;
    bool same = fresh || it->second.lane == lane;
    bool said = t->same_lane(block, lane, how);
    ASSERT_TRUE(same || !said) << "event " << i;
    own += said;
    forgotten += same && !said;
    it->second = {lane, how};
  }
  EXPECT_GT(own, 100'000);
  EXPECT_GT(forgotten, 100'000);
}

}  // namespace
}  // namespace malloscope::record
