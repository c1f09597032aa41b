// SPDX-License-Identifier: Apache-2.0
// A leaf that is known is told by one step, and never taken for another.

#include <gtest/gtest.h>

#include <vector>

#include "unwind/ledger_for_test.h"
#include "unwind/stack_memo.h"
#include "unwind/toy_machine_for_test.h"

namespace malloscope::unwind {
namespace {

using namespace toy;
using LeafCacheTest = ToyTest;

// Goes to and fro between two leaves until the cache is on and has both. The first
// is then stack 2; the memo has the second, 3.
template <typename Hook>
void learn_leaves(Memo& memo, Hook hook) {
  for (uint32_t i = 0; i < StackMemo::kLeafCacheAfter + 40; ++i) {
    bool second = i % 2;
    if (memo->capture(hook(second)).id == StackId::kNone) memo->name(StackId{second ? 3u : 2u});
  }
  ASSERT_TRUE(memo->has_leaf_cache());
}

TEST_F(LeafCacheTest, TellsALeafItKnowsByOneStep) {
  Machine m(1);
  Memo memo(m.bounds());
  for (int i = 0; i < 40; ++i) m.call({static_cast<Shape>(i % 4), 1});
  m.call({kPlain, 1});
  auto hook = [&](unsigned site) {
    m.stack().regs.key = Function{kPlain, 1}.key(site);
    return m.hook();
  };
  learn_leaves(memo, hook);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(memo->capture(hook(i % 2)).id, StackId{i % 2 ? 3u : 2u});
    EXPECT_LE(memo->stepped(), 1u);
  }
}

TEST_F(LeafCacheTest, DoesNotKnowALeafWhoseOuterFramesHaveChanged) {
  for (unsigned outer_frames : {3u, 40u})  // The words are the leaf's own, or the memo's.
    for (unsigned changed : {1u, outer_frames / 2, outer_frames - 1}) {
      Machine m(1);
      Memo memo(m.bounds());
      std::vector<uintptr_t> slots;
      for (unsigned i = 0; i < outer_frames; ++i) {
        m.call({kPlain, 1});
        m.stack().regs.key = Function{kPlain, 1}.key(0);
        slots.push_back(m.stack().regs.sp - 8);
      }
      m.call({kPlain, 1});
      auto hook = [&](unsigned site) {
        m.stack().regs.key = Function{kPlain, 1}.key(site);
        return m.hook();
      };
      learn_leaves(memo, hook);
      ASSERT_EQ(memo->capture(hook(0)).id, StackId{2});
      at(slots[changed]) = Function{kPlain, 1}.key(1);  // Called from another line.
      EXPECT_EQ(memo->capture(hook(0)).id, StackId::kNone) << outer_frames << " " << changed;
      // Not even when the memo has already learnt of the change, by the other leaf.
      memo->capture(hook(1));
      memo->name(StackId{4});
      EXPECT_EQ(memo->capture(hook(0)).id, StackId::kNone) << outer_frames << " " << changed;
    }
}

TEST_F(LeafCacheTest, TellsManyLeavesOfOneCallerApart) {
  Machine m(1);
  Ledger ledger;
  Memo memo(m.bounds(), ledger.finder());
  constexpr unsigned kLeaves = 250;  // Many for 256 sets of two.
  for (unsigned site = 0; site < kLeaves; ++site)
    rule_cache.insert(Function{kPlain, 1}.key(site), Function{kPlain, 1}.rule(),
                      epoch().generation(), arena);
  for (int i = 0; i < 4; ++i) m.call({kPlain, 1});
  uint64_t known = 0;
  for (unsigned i = 0; i < 40 * kLeaves; ++i) {
    m.stack().regs.key = Function{kPlain, 1}.key(i * 7 % kLeaves);
    Captured captured = memo->capture(m.hook());
    known += captured.id != StackId::kNone;
    ASSERT_TRUE(ledger.check(captured, m.truth(), memo.memo)) << i;
  }
  EXPECT_GT(known, 10 * kLeaves);
}

// A call from a given site of a given function.
struct Call {
  Function function;
  unsigned site;
};

// Many inner paths, reached by many outer ones: what a leaf has seen with one it must tell
// with all, and never take one for another.
TEST_F(LeafCacheTest, TellsLeavesByWhicheverWayTheyAreReached) {
  for (unsigned seed = 1; seed <= 6; ++seed) {
    Machine m(seed);
    Ledger ledger;
    Memo memo(m.bounds(), ledger.finder());
    auto chains = [&](unsigned count, unsigned longest) {
      std::vector<std::vector<Call>> all(count);
      for (auto& chain : all)
        for (unsigned i = 1 + m.pick(longest); i-- > 0;)
          chain.push_back({{static_cast<Shape>(m.pick(4)), m.pick(3)}, m.pick(kSites)});
      return all;
    };
    // Few and short ones end in the same place by different ways; long ones need an anchor.
    auto outer = chains(seed % 2 ? 40 : 12, seed % 2 ? 3 : 40), inner = chains(10, 4);
    auto play = [&](const std::vector<Call>& chain) {
      for (const Call& call : chain) {
        m.call(call.function);
        m.stack().regs.key = call.function.key(call.site);
      }
    };
    uint64_t captures = 0, told = 0;
    for (int i = 0; i < 40'000; ++i) {
      m.leave(1000);
      m.stack().regs.key = Function{kPlain, 1}.key(0);
      play(outer[m.pick(static_cast<unsigned>(outer.size()))]);
      for (unsigned times = 1 + m.pick(6); times-- > 0; ++captures) {
        const auto& chain = inner[m.pick(static_cast<unsigned>(inner.size()))];
        play(chain);
        Captured captured = memo->capture(m.hook());
        told += captured.id != StackId::kNone && memo->stepped() <= 1;
        ASSERT_TRUE(ledger.check(captured, m.truth(), memo.memo)) << "seed " << seed << " " << i;
        m.leave(chain.size());
      }
    }
    EXPECT_GT(told, captures / 3) << "seed " << seed << ", of " << captures;
  }
}

TEST_F(LeafCacheTest, AsksForTheIdOfALeafReachedByAnotherWay) {
  Machine m(1);
  Ledger ledger;
  Memo memo(m.bounds(), ledger.finder());
  constexpr unsigned kOuterWays = 8;  // More than the cache has places for one leaf.
  for (unsigned site = 0; site < kOuterWays; ++site)
    rule_cache.insert(Function{kPlain, 1}.key(site), Function{kPlain, 1}.rule(),
                      epoch().generation(), arena);
  for (int i = 0; i < 10; ++i) m.call({kPlain, 1});
  uintptr_t outer_slot = m.stack().regs.sp + 40;
  for (int i = 0; i < 10; ++i) m.call({kPlain, 1});
  // By each way both leaves are captured; the first of them makes the memo know the way.
  uint64_t told = 0;
  for (unsigned i = 0; i < 4000; ++i) {
    unsigned way = i / 2 % kOuterWays, leaf = i % 2;
    size_t outer = 0;
    while (m.stack().callers[outer].sp - 8 != outer_slot) ++outer;
    m.stack().callers[outer].key = at(outer_slot) = Function{kPlain, 1}.key(way);
    m.stack().regs.key = Function{kPlain, 1}.key(leaf);
    Captured captured = memo->capture(m.hook());
    if (i >= 3000 && leaf == 1) told += captured.id != StackId::kNone && memo->stepped() <= 1;
    ASSERT_TRUE(ledger.check(captured, m.truth(), memo.memo)) << i;
  }
  EXPECT_GT(told, 400u) << "of 500";
}

// A recursion with two call sites: paths that differ by changes which cancel out, in many ways.
TEST_F(LeafCacheTest, TellsAllPathsOfARecursionApart) {
  Machine m(1);
  Ledger ledger(1 << 18, 1 << 23);
  Memo memo(m.bounds(), ledger.finder());
  constexpr unsigned kDepth = 15;
  for (unsigned path = 0; path < 1 << kDepth; ++path) {
    m.leave(1000);
    for (unsigned i = 0; i < kDepth; ++i) {
      m.call({kPlain, 1});
      m.stack().regs.key = Function{kPlain, 1}.key(path >> i & 1);
    }
    m.call({kPlain, 1});
    m.stack().regs.key = Function{kPlain, 1}.key(0);
    Captured captured = memo->capture(m.hook());
    ASSERT_EQ(captured.id, StackId::kNone) << path;
    ASSERT_TRUE(ledger.check(captured, m.truth(), memo.memo)) << path;
  }
  EXPECT_EQ(ledger.stacks(), 1u << kDepth);
}

TEST_F(LeafCacheTest, SaysOfALeafThatItsStackIsIncomplete) {
  for (bool whole : {true, false}) {
    Machine m(1);
    Memo memo(m.bounds());
    // The outermost function has no CFI, nor is it the root.
    uintptr_t unknown = 0x90000;
    rule_cache.insert(unknown, Rule(Rule::kStop), epoch().generation(), arena);
    m.stack().regs.key = unknown;
    for (int i = 0; i < (whole ? 3 : 40); ++i) {
      m.call({kPlain, 1});
      m.stack().regs.key = Function{kPlain, 1}.key(0);
    }
    auto hook = [&](unsigned site) {
      m.stack().regs.key = Function{kPlain, 1}.key(site);
      return m.hook();
    };
    learn_leaves(memo, hook);
    Captured captured = memo->capture(hook(0));
    EXPECT_EQ(captured.id, StackId{2});
    EXPECT_TRUE(captured.stopped);
  }
}

TEST_F(LeafCacheTest, DoesNotKnowALeafOnAnotherFp) {
  Machine m(1);
  Memo memo(m.bounds());
  m.call({kFramePointer, 1});
  uintptr_t fp = m.stack().regs.fp;
  for (int i = 0; i < 4; ++i) m.call({kPlain, 1});
  auto hook = [&](unsigned site) {
    m.stack().regs.key = Function{kPlain, 1}.key(site);
    return m.hook();
  };
  learn_leaves(memo, hook);
  ASSERT_EQ(memo->capture(hook(0)).id, StackId{2});
  m.stack().regs.fp = fp - 16;
  at(fp - 8) = 0;
  EXPECT_EQ(memo->capture(hook(0)).id, StackId::kNone);
}

TEST_F(LeafCacheTest, KeepsNoLeafOfAForeignStack) {
  Machine m(1);
  Memo memo(m.bounds());
  ForeignStack foreign;
  learn_leaves(memo, [&](unsigned site) { return foreign.hook(site); });
  foreign.unmap_outer_page();
  EXPECT_TRUE(memo->capture(foreign.hook(0)).stopped);
}

}  // namespace
}  // namespace malloscope::unwind
