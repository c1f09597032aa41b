// SPDX-License-Identifier: Apache-2.0
// Whatever the toy machine does, what the memo tells must be exactly what the machine
// knows. Leaves have their own tests (leaf_cache_test.cc).

#include "unwind/stack_memo.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "unwind/ledger_for_test.h"
#include "unwind/toy_machine_for_test.h"

namespace malloscope::unwind {
namespace {

using namespace toy;
using StackMemoTest = ToyTest;

TEST_F(StackMemoTest, FindsExactlyTheStackThatIsThere) {
  for (unsigned seed = 1; seed <= 9; ++seed) {
    // Alone on a known stack; with others; on stacks of which nothing is known.
    Machine m(seed, seed % 3 == 1 ? 1 : 4);
    Ledger ledger;
    Memo memo(seed % 3 == 0 ? StackBounds{} : m.bounds(), ledger.finder());
    // Shallow stacks come up again and again, with all their neighbours.
    unsigned depth = seed % 4 == 0 ? 150 : 2 + seed, generation = epoch().generation();
    uint64_t known = 0;
    for (int i = 0; i < 150'000; ++i) {
      m.live(depth);
      if (m.pick(3)) continue;
      Captured captured = memo->capture(m.hook());
      known += captured.id != StackId::kNone;
      ASSERT_EQ(captured.generation, generation);
      ASSERT_FALSE(captured.cut || captured.stopped) << "seed " << seed << " step " << i;
      ASSERT_TRUE(ledger.check(captured, m.truth(), memo.memo, m.pick(16) == 0))
          << "seed " << seed << " step " << i;
    }
    EXPECT_GT(known, 300u) << "seed " << seed << ": too few stacks came up again";
    EXPECT_TRUE(memo->has_leaf_cache());
  }
}

TEST_F(StackMemoTest, ForgetsEverythingWhenCodeIsReplaced) {
  Machine m(7);
  Ledger ledger;
  Memo memo(m.bounds(), ledger.finder());
  for (int i = 0; i < 300'000; ++i) {
    m.live(20);
    if (i % 3000 == 0) {
      m.leave(1000);
      m.resized ^= 1;
      m.begin(m.stack());
      flush();
      install_rules(m.resized);
    }
    if (m.pick(8)) continue;
    ASSERT_TRUE(ledger.check(memo->capture(m.hook()), m.truth(), memo.memo)) << "step " << i;
  }
}

TEST_F(StackMemoTest, BelievesNothingWhileCodeIsBeingUnloaded) {
  Machine m(1);
  Memo memo(m.bounds());
  for (int i = 0; i < 10; ++i) m.call({kPlain, 1});
  memo->capture(m.hook());
  memo->name(StackId{1});
  EXPECT_EQ(memo->capture(m.hook()).id, StackId{1});
  begin_unload();
  Captured captured = memo->capture(m.hook());
  EXPECT_EQ(captured.id, StackId::kNone);
  EXPECT_TRUE(captured.stopped) << "no loader knows the toy's code, and no cache was asked";
  end_unload();
  captured = memo->capture(m.hook());
  EXPECT_EQ(captured.kept, 0u) << "what was captured meanwhile is not built upon";
  EXPECT_FALSE(captured.stopped);
}

TEST_F(StackMemoTest, UnwindsOnlyWhatIsNew) {
  Machine m(1);
  Memo memo(m.bounds());
  for (int i = 0; i < 40; ++i) m.call({static_cast<Shape>(i % 4), 1});
  memo->capture(m.hook());
  EXPECT_EQ(memo->stepped(), m.truth().size());
  memo->capture(m.hook());
  EXPECT_EQ(memo->stepped(), 0u);
  m.leave(2);
  m.call({kPlain, 2});
  memo->capture(m.hook());
  EXPECT_LE(memo->stepped(), 2u);
}

TEST_F(StackMemoTest, DoesNotCareAboutAnFpThatNobodyReads) {
  Machine m(1);
  Memo memo(m.bounds());
  for (int i = 0; i < 10; ++i) m.call({i == 5 ? kClobbersFp : kPlain, 1});
  memo->capture(m.hook());
  m.stack().regs.fp = 0x1234567;  // Frame 5 saved its caller's; the value here is its own.
  memo->capture(m.hook());
  EXPECT_EQ(memo->stepped(), 0u);
}

TEST_F(StackMemoTest, CaresAboutAnFpThatIsReadFurtherOut) {
  Machine m(1);
  Memo memo(m.bounds());
  m.call({kFramePointer, 1});
  uintptr_t fp = m.stack().regs.fp;
  for (int i = 0; i < 5; ++i) m.call({kPlain, 1});
  memo->capture(m.hook());
  m.stack().regs.fp = fp - 16;
  at(fp - 8) = Function{kPlain, 0}.key(1);  // Where the frame's return address would then be.
  Captured captured = memo->capture(m.hook());
  ASSERT_GE(captured.fresh.size() + captured.kept, 2u);
  EXPECT_GT(memo->stepped(), 0u);
}

// Two frames that were pushed in one place: the outer one's fp differs, while every
// return address, and even what the frame itself had saved, is where it was.
TEST_F(StackMemoTest, CaresAboutEverySavedFpThatIsReadFurtherOut) {
  for (Shape saver : {kClobbersFp, kFramePointer, kRealigned, kTrampoline}) {
    Machine m(1);
    Memo memo(m.bounds());
    m.call({kPlain, 1});
    m.call({kFramePointer, 1});
    uintptr_t fp = m.stack().regs.fp;
    uintptr_t key = m.stack().regs.key;
    m.stack().regs.sp = fp - 64;
    auto push = [&](uintptr_t saved) {
      m.stack().regs.fp = saved;
      if (saver == kTrampoline) {
        uintptr_t frame = fp - 512;
        at(frame + 160) = m.stack().regs.sp;
        at(frame + 168) = key;
        at(frame + 120) = saved;
        m.stack().regs = {Function{kTrampoline, 0}.key(0), frame, 5};
      } else {
        m.call({saver, 0});
        m.stack().regs.key = Function{saver, 0}.key(0);
      }
      Captured captured = memo->capture(m.hook());
      m.stack().regs = {key, fp - 64, fp};
      return captured.hash;
    };
    // The same frame, a little lower, called by another.
    at(fp - 32) = at(fp);
    at(fp - 24) = Function{kPlain, 0}.key(1);
    uint64_t first = push(fp), second = push(fp - 32);
    EXPECT_NE(first, second) << saver;
    EXPECT_EQ(push(fp), first) << saver;
  }
}

TEST_F(StackMemoTest, BuildsOnlyOnStacksThatWereNamed) {
  Machine m(1);
  Memo memo(m.bounds());
  for (int i = 0; i < 5; ++i) m.call({kPlain, 1});
  Captured first = memo->capture(m.hook());
  size_t size = m.truth().size();
  EXPECT_EQ(first.fresh.size(), size);
  Captured again = memo->capture(m.hook());
  EXPECT_EQ(again.id, StackId::kNone);
  EXPECT_EQ(again.kept, 0u) << "the first one was dropped";
  EXPECT_EQ(again.fresh.size(), size);
  memo->name(StackId{7});
  EXPECT_EQ(memo->capture(m.hook()).id, StackId{7});
  m.call({kPlain, 0});
  Captured deeper = memo->capture(m.hook());
  EXPECT_EQ(deeper.owner, StackId{7});
  EXPECT_EQ(deeper.kept + deeper.fresh.size(), size + 1);
}

TEST_F(StackMemoTest, KeepsTheInnermostFramesOfAStackThatIsTooDeep) {
  Machine m(1, 1, 100'000);
  Memo memo(m.bounds());
  Ledger ledger;
  uint64_t cut = counts.cut;
  while (m.depth() < kMaxFrames) m.call({kPlain, m.pick(2)});
  Captured captured = memo->capture(m.hook());
  EXPECT_FALSE(captured.cut);
  EXPECT_TRUE(ledger.check(captured, m.truth(), memo.memo));

  for (int i = 0; i < 300; ++i) {
    m.call({kPlain, m.pick(2)});
    auto truth = m.truth();
    captured = memo->capture(m.hook());
    ASSERT_TRUE(captured.cut) << i;
    ASSERT_TRUE(ledger.check(captured, std::span(truth).last(kCutFrames), memo.memo)) << i;
  }
  EXPECT_LT(counts.cut - cut, 20u) << "the whole stack was walked nearly every time";

  m.leave(1000);
  captured = memo->capture(m.hook());
  EXPECT_FALSE(captured.cut);
  EXPECT_TRUE(ledger.check(captured, m.truth(), memo.memo));
}

TEST_F(StackMemoTest, GivesOneIdToACutStackThatComesUpAgain) {
  Machine m(1, 1, 100'000);
  Memo memo(m.bounds());
  while (m.depth() < kMaxFrames + 300) m.call({kPlain, 1});
  m.stack().regs.key = Function{kPlain, 1}.key(0);
  Captured captured = memo->capture(m.hook());
  ASSERT_TRUE(captured.cut);
  memo->name(StackId{3});
  EXPECT_EQ(memo->capture(m.hook()).id, StackId{3});
  m.stack().regs.key = Function{kPlain, 1}.key(1);
  EXPECT_EQ(memo->capture(m.hook()).id, StackId::kNone);
}

TEST_F(StackMemoTest, StopsWhereMemoryEnds) {
  Machine m(1);
  Memo memo(m.bounds());
  m.call({kFramePointer, 0});
  size_t frames_inside = 0;
  for (; frames_inside < 3; ++frames_inside) m.call({kPlain, 1});
  for (uintptr_t wild : {uintptr_t{0}, uintptr_t{8}, UINTPTR_MAX - 7, m.stack().regs.sp | 1,
                         m.stack().regs.sp - 64, uintptr_t{1} << 60}) {
    m.stack().regs.fp = wild;
    Captured captured = memo->capture(m.hook());
    EXPECT_TRUE(captured.stopped);
    EXPECT_EQ(captured.fresh.size(), frames_inside + 1) << std::hex << wild;
    EXPECT_EQ(captured.kept, 0u);
  }
}

TEST_F(StackMemoTest, NoticesThatAForeignStackIsGoneAndBack) {
  Machine m(1);
  Memo memo(m.bounds());
  for (int i = 0; i < 20; ++i) m.call({kPlain, 1});
  memo->capture(m.hook());
  ForeignStack foreign;
  Captured captured = memo->capture(foreign.hook());
  EXPECT_FALSE(captured.stopped);
  EXPECT_EQ(captured.fresh.size(), 3u);
  memo->name(StackId{5});
  EXPECT_EQ(memo->capture(foreign.hook()).id, StackId{5});

  foreign.unmap_outer_page();
  captured = memo->capture(foreign.hook());
  EXPECT_TRUE(captured.stopped);
  EXPECT_EQ(captured.fresh.size(), 2u);
  memo->name(StackId{6});

  foreign.map_outer_page();
  captured = memo->capture(foreign.hook());
  EXPECT_FALSE(captured.stopped);
  EXPECT_EQ(captured.fresh.size(), 3u);
}

TEST_F(StackMemoTest, HashesTellHowAStackEnds) {
  std::vector<uint64_t> seeds;
  for (uint32_t generation : {1u, 2u})
    for (bool cut : {false, true})
      for (bool stopped : {false, true}) seeds.push_back(path_seed(generation, cut, stopped));
  std::sort(seeds.begin(), seeds.end());
  EXPECT_EQ(std::unique(seeds.begin(), seeds.end()), seeds.end());
}

TEST_F(StackMemoTest, ReadsOnlyItsOwnStackWhereItMayNotAsk) {
  // In a child, because it cannot be undone.
  EXPECT_EXIT(
      {
        start(arena);
        install_rules(0);
        Machine m(1, 2);
        Memo memo(m.bounds());
        for (int i = 0; i < 1000; ++i) m.call({kPlain, 1});
        memo->capture(m.hook());
        sys::sandboxed.store(true);
        bool good = !memo->capture(m.hook()).stopped;
        m.current = 1;
        for (int i = 0; i < 1000; ++i) m.call({kPlain, 1});
        good = good && memo->capture(m.hook()).stopped;
        _exit(good ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST_F(StackMemoTest, StartsSmall) {
  Machine m(1);
  Memo memo(m.bounds());
  for (int i = 0; i < 30; ++i) m.call({static_cast<Shape>(i % 4), 1});
  auto before = reinterpret_cast<uintptr_t>(arena.take(64));
  for (int i = 0; i < 900; ++i) {
    memo->capture(m.hook());
    memo->name(StackId{1});
  }
  auto after = reinterpret_cast<uintptr_t>(arena.take(64));
  EXPECT_LT(after - before + sizeof(StackMemo), 10'240u);
  EXPECT_FALSE(memo->has_leaf_cache());
}

TEST_F(StackMemoTest, PlainWalkFindsTheSameStack) {
  Machine m(3, 3);
  std::vector<uintptr_t> room(300);
  Memo memo(m.bounds());
  for (int i = 0; i < 30'000; ++i) {
    m.live(100);
    if (m.pick(8)) continue;
    auto truth = m.truth();
    Captured captured = walk_plain(m.hook(), m.bounds(), room);
    ASSERT_TRUE(Ledger::equal(captured.fresh, truth)) << i;
    ASSERT_EQ(captured.hash, memo->capture(m.hook()).hash) << i;
    captured = walk_plain(m.hook(), m.bounds(), std::span(room).first(5));
    if (truth.size() <= 5) continue;
    ASSERT_TRUE(captured.cut);
    ASSERT_TRUE(Ledger::equal(captured.fresh, std::span(truth).last(5)));
  }
}

}  // namespace
}  // namespace malloscope::unwind
