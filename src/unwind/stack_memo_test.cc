// SPDX-License-Identifier: Apache-2.0
// A toy machine calls and returns at random, takes signals, jumps out of calls and
// switches stacks; now and then it captures its stack, and what the memo tells
// must be exactly what the machine, which keeps its own account, knows. It has only
// a few functions, so that stacks which differ in one word and agree in all
// the others come up often.

#include "unwind/stack_memo.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include "unwind/ledger_for_test.h"

namespace malloscope::unwind {
namespace {

Arena& arena = *new (map_wiped_on_fork(kPageBytes)) Arena;

uintptr_t& at(uintptr_t address) { return *reinterpret_cast<uintptr_t*>(address); }

// A function is a shape of frame. It calls from a few places, each with a key of its own.
enum Shape { kPlain, kClobbersFp, kFramePointer, kRealigned, kTrampoline, kRootByCfi, kShapes };
constexpr unsigned kSites = 2;

struct Function {
  Shape shape;
  unsigned words;  // Of locals.

  uintptr_t key(unsigned site) const { return 0x10000 + shape * 0x1000 + words * 0x100 + site; }
  Rule rule() const {
    switch (shape) {
      case kPlain:
        return Rule::make(Rule::kSp, 8 + words * 8, 0);
      case kClobbersFp:
        return Rule::make(Rule::kSp, 16 + words * 8, -16);
      case kFramePointer:
        return Rule::make(Rule::kFp, 16, -16);
      case kRealigned:
        return Rule::make(Rule::kFpDeref, -8, 0);
      case kTrampoline:
        return Rule(Rule::kSignal);
      default:
        return Rule(Rule::kEnd);
    }
  }
};

// `resized` is another library at the same addresses: all its frames are larger.
void install_rules(unsigned resized) {
  for (unsigned shape = 0; shape < kShapes; ++shape)
    for (unsigned words = 0; words < 4; ++words)
      for (unsigned site = 0; site < kSites; ++site) {
        Function f = {static_cast<Shape>(shape), words};
        Rule rule = Function{f.shape, words + resized}.rule();
        rule_cache.insert(f.key(site), rule, epoch().generation(), arena);
        rule_cache.insert(f.key(site) | kInterrupted, rule, epoch().generation(), arena);
      }
}

struct Regs {
  uintptr_t key, sp, fp;
};

struct Stack {
  std::vector<uintptr_t> words;
  Regs regs;
  std::vector<Regs> callers;  // What each call will return to; [0] is the root's 0.
  bool in_alternate = false;  // A signal is being handled on the alternate stack.
  std::vector<size_t> alternate_at;

  explicit Stack(size_t size = 8192) : words(size) {}
  uintptr_t low() const { return reinterpret_cast<uintptr_t>(words.data()); }
  uintptr_t high() const { return reinterpret_cast<uintptr_t>(words.data() + words.size()); }
};

struct Machine {
  std::mt19937 random;
  std::vector<Stack> stacks;
  std::vector<uintptr_t> alternate = std::vector<uintptr_t>(1024);
  size_t current = 0;
  unsigned resized = 0;

  explicit Machine(unsigned seed, size_t count = 1, size_t size = 8192) : random(seed) {
    for (size_t i = 0; i < count; ++i) stacks.emplace_back(size);
    for (Stack& s : stacks) begin(s);
  }

  unsigned pick(unsigned below) { return static_cast<unsigned>(random() % below); }
  Stack& stack() { return stacks[current]; }
  StackBounds bounds() const { return {stacks[0].low(), stacks[0].high()}; }

  // The root either returns to 0 or has CFI that says it is the root.
  void begin(Stack& s) {
    s.callers.clear();
    s.in_alternate = false;
    s.regs = {0, s.high() - 64, 0};
    if (pick(2)) s.regs.key = Function{kRootByCfi, 0}.key(0);
    size_t saved = current;
    current = static_cast<size_t>(&s - stacks.data());
    call({kPlain, 1});
    current = saved;
  }

  void call(Function f) {
    Stack& s = stack();
    s.callers.push_back(s.regs);
    uintptr_t cfa = s.regs.sp;
    at(cfa - 8) = s.regs.key & ~kInterrupted;
    enter(f, cfa);
  }

  void enter(Function f, uintptr_t cfa) {
    Regs& regs = stack().regs;
    unsigned words = f.words + resized;
    switch (f.shape) {
      case kPlain:
        regs.sp = cfa - 8 - words * 8;
        break;
      case kClobbersFp:  // fp is just another register to it, and often looks like an address.
        at(cfa - 16) = regs.fp;
        regs.fp = pick(2) ? pick(3) : cfa - 16 + pick(2) * 64;
        regs.sp = cfa - 16 - words * 8;
        break;
      case kFramePointer:
        at(cfa - 16) = regs.fp;
        regs.fp = cfa - 16;
        regs.sp = regs.fp - (words + pick(3)) * 8;
        break;
      default: {
        uintptr_t aligned = (cfa - 8) & ~uintptr_t{31};
        at(aligned - 8) = at(cfa - 8);
        at(aligned - 16) = regs.fp;
        at(aligned - 24) = cfa;
        regs.fp = aligned - 16;
        regs.sp = aligned - 24 - words * 8;
      }
    }
    move_on(f);
  }

  // The function goes on to another of its call sites.
  void move_on(Function f) { stack().regs.key = f.key(pick(kSites)); }

  void signal() {
    Stack& s = stack();
    bool use_alternate = !s.in_alternate && pick(2);
    uintptr_t top = use_alternate ? reinterpret_cast<uintptr_t>(alternate.data() + alternate.size())
                                  : s.regs.sp - 128;
    uintptr_t frame = top - 256 - pick(2) * 16;
    at(frame + 160) = s.regs.sp;
    at(frame + 168) = s.regs.key;
    at(frame + 120) = s.regs.fp;
    s.regs.key |= kInterrupted;
    s.callers.push_back(s.regs);
    if (use_alternate) {
      s.in_alternate = true;
      s.alternate_at.push_back(s.callers.size());
    }
    s.regs = {Function{kTrampoline, 0}.key(0), frame, pick(3)};
    call({pick(2) ? kPlain : kFramePointer, pick(2)});
  }

  // Returns from the last call, or jumps out of several.
  void leave(size_t frames) {
    Stack& s = stack();
    while (frames-- > 0 && s.callers.size() > 1) {
      s.regs = s.callers.back();
      s.regs.key &= ~kInterrupted;
      if (s.in_alternate && s.callers.size() <= s.alternate_at.back()) {
        s.in_alternate = false;
        s.alternate_at.pop_back();
      }
      s.callers.pop_back();
      // A trampoline is not a function that calls; the signal's whole frame goes.
      if (s.regs.key == Function{kTrampoline, 0}.key(0)) ++frames;
    }
  }

  bool is_on_alternate() { return stack().in_alternate; }

  // Root first; the machine's own account.
  std::vector<uintptr_t> truth() {
    std::vector<uintptr_t> keys;
    for (const Regs& r : stack().callers)
      if (r.key) keys.push_back(r.key);
    keys.push_back(stack().regs.key);
    return keys;
  }

  size_t depth() { return stack().callers.size() + (stack().callers[0].key != 0); }

  // The current function calls the hook.
  Start hook() {
    Regs& regs = stack().regs;
    at(regs.sp - 8) = regs.key;
    return {regs.sp - 8, regs.fp};
  }

  void live(unsigned max_depth) {
    Stack& s = stack();
    unsigned what = pick(100);
    if (s.callers.size() == 1 && what < 20) {
      begin(s);  // Perhaps another root, in the same place.
    } else if (s.callers.size() > 1 && (what < 46 || s.callers.size() > max_depth)) {
      leave(1);
    } else if (what < 50) {
      leave(pick(20));
    } else if (what < 53) {
      signal();
    } else if (what < 55 && stacks.size() > 1 && !s.in_alternate) {
      current = pick(static_cast<unsigned>(stacks.size()));
    } else {
      call({static_cast<Shape>(pick(4)), pick(2)});
    }
  }
};

struct Memo {
  StackMemo* memo = new (arena.take(sizeof(StackMemo))) StackMemo;
  explicit Memo(StackBounds bounds, StackFinder finder = {}) { memo->begin(arena, bounds, finder); }
  StackMemo* operator->() { return memo; }
};

class StackMemoTest : public testing::Test {
 protected:
  void SetUp() override {
    start(arena);
    install_rules(0);
  }
};

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

// A stack of two pages that is not the thread's own; a frame's fp leads from the
// inner page to the outer, where the root is.
struct ForeignStack {
  static constexpr size_t kPage = 4096;
  char* pages = static_cast<char*>(
      mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  uintptr_t low = reinterpret_cast<uintptr_t>(pages), outer = low + kPage + 64;

  ForeignStack() { fill(); }
  ~ForeignStack() { munmap(pages, 2 * kPage); }
  void fill() { at(outer + 8) = Function{kRootByCfi, 0}.key(0); }
  Start hook(unsigned site = 0) {
    uintptr_t slot = low + kPage - 512;
    at(slot) = Function{kPlain, 0}.key(site);
    at(slot + 8) = Function{kFramePointer, 0}.key(0);
    return {slot, outer};
  }
  void unmap_outer_page() {
    munmap(pages + kPage, kPage);
    maps_changed();
  }
  void map_outer_page() {
    mmap(pages + kPage, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
         0);
    maps_changed();
    fill();
  }
};

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

// --- The leaf cache.

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

TEST_F(StackMemoTest, TellsALeafItKnowsByOneStep) {
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

TEST_F(StackMemoTest, DoesNotKnowALeafWhoseOuterFramesHaveChanged) {
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

TEST_F(StackMemoTest, TellsManyLeavesOfOneCallerApart) {
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
TEST_F(StackMemoTest, TellsLeavesByWhicheverWayTheyAreReached) {
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

TEST_F(StackMemoTest, AsksForTheIdOfALeafReachedByAnotherWay) {
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
TEST_F(StackMemoTest, TellsAllPathsOfARecursionApart) {
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

TEST_F(StackMemoTest, SaysOfALeafThatItsStackIsIncomplete) {
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

TEST_F(StackMemoTest, DoesNotKnowALeafOnAnotherFp) {
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

TEST_F(StackMemoTest, KeepsNoLeafOfAForeignStack) {
  Machine m(1);
  Memo memo(m.bounds());
  ForeignStack foreign;
  learn_leaves(memo, [&](unsigned site) { return foreign.hook(site); });
  foreign.unmap_outer_page();
  EXPECT_TRUE(memo->capture(foreign.hook(0)).stopped);
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
        forbid_syscalls();
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
