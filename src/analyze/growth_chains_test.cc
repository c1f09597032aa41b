// SPDX-License-Identifier: Apache-2.0
#include "analyze/growth_chains.h"

#include <gtest/gtest.h>

namespace malloscope::analyze {
namespace {

using wire::Kind;
using wire::Op;

struct Story {
  Heap heap;
  std::vector<GrowthChain> chains;
  GrowthChains observer{[this](ImageId, const GrowthChain& chain) { chains.push_back(chain); }};
  uint64_t tick = 0;

  Story() {
    heap.add_observer(&observer);
    trace::Image image;
    image.id = ImageId{1};
    heap.image_started(image);
  }
  void show(Kind kind, uint64_t address, uint64_t size, uint32_t stack, uint32_t thread) {
    wire::Event event;
    event.tick = ++tick;
    event.kind = kind;
    event.op = kind == Kind::kFree ? Op::kFree : Op::kMalloc;
    event.address = address;
    event.size = size;
    event.stack = StackId{stack};
    event.thread = ThreadId{thread};
    event.image = ImageId{1};
    heap.events({&event, 1});
  }
  void make(uint64_t address, uint64_t size, uint32_t stack = 1, uint32_t thread = 1) {
    show(Kind::kAlloc, address, size, stack, thread);
  }
  void free(uint64_t address, uint32_t thread = 1) { show(Kind::kFree, address, 0, 0, thread); }
  void change(uint64_t from, uint64_t to, uint64_t size, uint32_t stack = 1) {
    show(Kind::kReallocBegin, from, 0, stack, 1);
    show(Kind::kReallocEnd, to, size, stack, 1);
  }
};

TEST(GrowthChains, FollowsAVectorThatDoubles) {
  Story s;
  s.make(16, 24);
  for (uint64_t step = 1; step <= 4; ++step) {
    s.make(16 + step * 1024, 24 << step);
    s.free(step == 1 ? 16 : 16 + (step - 1) * 1024);
  }
  EXPECT_TRUE(s.chains.empty());  // Not before its last block is gone.
  s.heap.finish();
  ASSERT_EQ(s.chains.size(), 1u);
  EXPECT_EQ(s.chains[0].growths, 4u);
  EXPECT_EQ(s.chains[0].copied_bytes, 24u + 48 + 96 + 192);
  EXPECT_EQ(s.chains[0].largest_size, 384u);
  EXPECT_EQ(s.chains[0].first_size, 24u);
  EXPECT_TRUE(s.chains[0].of_one_element);
  EXPECT_FALSE(s.chains[0].by_realloc);
  EXPECT_DOUBLE_EQ(s.chains[0].factors, 8.0);
}

TEST(GrowthChains, FollowsOneThatThreadsShare) {
  Story s;
  s.make(16, 100, 1, 1);
  s.make(4096, 150, 1, 2);
  s.free(16, 2);
  s.make(8192, 151, 1, 3);
  s.free(4096, 3);
  s.free(8192, 1);
  ASSERT_EQ(s.chains.size(), 1u);
  EXPECT_EQ(s.chains[0].growths, 2u);
  EXPECT_FALSE(s.chains[0].of_one_element);
}

TEST(GrowthChains, IsNotFooled) {
  Story s;
  s.make(16, 100);
  s.make(1024, 100);  // As large: no growth.
  s.free(16);
  s.make(2048, 50);  // Smaller.
  s.free(1024);
  s.make(3072, 200, /*stack=*/2);  // By somebody else.
  s.free(2048);
  s.make(4096, 300);
  s.free(4096);  // What is older than itself cannot follow it.
  s.make(5120, 400, 1, 2);
  s.free(3072, 1);  // Larger, but another thread's.
  s.heap.finish();
  EXPECT_TRUE(s.chains.empty());
}

TEST(GrowthChains, LooksOnlyAtTheLastFew) {
  for (size_t between : {GrowthChains::kRecent - 1, GrowthChains::kRecent}) {
    Story s;
    s.make(16, 100);
    s.make(32, 200);
    for (size_t i = 0; i < between; ++i) s.make(1024 + 16 * i, 8, 9);
    s.free(16);
    s.heap.finish();
    EXPECT_EQ(s.chains.size(), between < GrowthChains::kRecent ? 1u : 0u) << between;
  }
}

TEST(GrowthChains, GivesABlockOnePredecessor) {
  Story s;
  s.make(16, 10);
  s.make(32, 11);
  s.make(48, 500);
  s.free(16);
  s.free(32);
  s.heap.finish();
  // 48 follows 16; 32 is nobody's.
  ASSERT_EQ(s.chains.size(), 1u);
  EXPECT_EQ(s.chains[0].copied_bytes, 10u);
}

TEST(GrowthChains, CopiesByReallocOnlyWhatMoves) {
  Story s;
  s.make(16, 100);
  s.change(16, 16, 200);
  s.change(16, 4096, 400);
  s.change(4096, 4096, 10);  // Shrinks: no step, and the chain goes on.
  s.change(4096, 8192, 800);
  s.free(8192);
  ASSERT_EQ(s.chains.size(), 1u);
  EXPECT_EQ(s.chains[0].growths, 3u);
  EXPECT_EQ(s.chains[0].copied_bytes, 200u + 10);
  EXPECT_EQ(s.chains[0].largest_size, 800u);
  EXPECT_TRUE(s.chains[0].by_realloc);
}

}  // namespace
}  // namespace malloscope::analyze
