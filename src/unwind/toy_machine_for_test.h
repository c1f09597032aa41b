// SPDX-License-Identifier: Apache-2.0
// A toy machine for the memo's tests: it calls and returns at random, takes signals,
// jumps out of calls and switches stacks, and keeps its own account of the stack that
// is there. It has only a few functions, so that stacks which differ in one word and
// agree in all the others come up often.

#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <random>
#include <vector>

#include "unwind/stack_memo.h"

namespace malloscope::unwind::toy {

inline Arena& arena = *new (map_wiped_on_fork(kPageBytes)) Arena;

inline uintptr_t& at(uintptr_t address) { return *reinterpret_cast<uintptr_t*>(address); }

// A function is a shape of frame. It calls from a few places, each with a key of its own.
enum Shape { kPlain, kClobbersFp, kFramePointer, kRealigned, kTrampoline, kRootByCfi, kShapes };
inline constexpr unsigned kSites = 2;

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
inline void install_rules(unsigned resized) {
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

class ToyTest : public testing::Test {
 protected:
  void SetUp() override {
    start(arena);
    install_rules(0);
  }
};

}  // namespace malloscope::unwind::toy
