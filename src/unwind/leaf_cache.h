// SPDX-License-Identifier: Apache-2.0
// Remembers the inner ends of many stacks, where the memo has only the last. The
// idea is told in stack_memo.cc, the memo being the only one that uses it.

#pragma once

#include <cstddef>
#include <cstdint>

#include "base/arena.h"
#include "base/attributes.h"
#include "base/ids.h"
#include "unwind/walk.h"

namespace malloscope::unwind {

// What each of a leaf's words is multiplied by; see Leaf::weighed().
struct WordFactors {
  static constexpr unsigned kWords = 20;
  uint64_t of[kWords];
};
inline constexpr WordFactors kFactors = [] {
  WordFactors factors = {};
  uint64_t state = 0;
  for (uint64_t& factor : factors.of) {
    state += 0x9e3779b97f4a7c15;
    uint64_t x = (state ^ state >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    factor = (x ^ x >> 31) | 1;
  }
  return factors;
}();

// Two cache lines, since looking at it must not push the program's own data out.
struct alignas(64) Leaf {
  static constexpr unsigned kWords = WordFactors::kWords;

  // The state in the innermost frame (whose sp is slot + 8).
  uintptr_t key, slot, fp;
  // The words loaded from there out to the anchor have this sum; see words_now().
  uint64_t word_sum;
  // The path hash is that of the anchor, extended by so many frames, plus this.
  uint64_t inner_hash;
  // The stack whose anchor has this hash. If it is whole, there is no anchor.
  uint64_t anchor_hash;
  StackId id;
  uint32_t era;  // 0: empty.

  // The frame of the memo at which the rest of the stack goes on.
  uintptr_t anchor_slot, anchor_fp;
  uint16_t anchor;
  uint8_t words, inner_frames;
  bool fp_live : 1, anchor_fp_live : 1, whole : 1, stopped : 1, recent : 1;
  // Where the words are: distance from the slot, in words.
  int16_t distance[kWords];

  // The words are on the thread's own stack, where any may be loaded at any time, so they need not
  // be compared one by one. The factors have nothing to do with each other: with an arithmetic
  // series, say, changes of +x, -2x and +x in a row would go unnoticed, and recursions have such.
  MSCOPE_FAST static uint64_t weighed(unsigned i, uintptr_t word) { return word * kFactors.of[i]; }
  MSCOPE_FAST uint64_t words_now() const {
    uint64_t sum = 0;
    for (unsigned i = 0; i < words; ++i) {
      uintptr_t address = slot + static_cast<intptr_t>(distance[i]) * 8;
      sum += weighed(
          i, __atomic_load_n(reinterpret_cast<const uintptr_t*>(address), __ATOMIC_RELAXED));
    }
    return sum;
  }
};
static_assert(sizeof(Leaf) == 128);

// All zero is a cache that is off.
class LeafCache {
 public:
  bool is_on() const { return sets_ != nullptr; }
  void turn_on(Arena& arena) {
    index_ = arena.take_array<Index>(1);
    if (index_) sets_ = arena.take_array<Set>(kSets);
    if (sets_) expected_ = sets_->ways;
    era_ = 1;
  }
  void clear() { ++era_; }

  // The one that came last.
  const Leaf& last() const { return sets_->ways[history_ % (kSets * kWays)]; }

  // The leaf that came next when last the same few came before.
  MSCOPE_FAST Leaf* expected() const { return expected_; }

  // Whether a walk that begins in this state begins as the one that the leaf was made of.
  MSCOPE_FAST bool begins_as(const Leaf& leaf, uintptr_t key, uintptr_t slot, uintptr_t fp) const {
    return leaf.slot == slot && leaf.key == key && leaf.era == era_ &&
           (!leaf.fp_live || leaf.fp == fp);
  }

  // The leaf of such a walk whose words are the present ones, or nullptr; `moved` then tells
  // whether there was one with other words. The caller's state helps to look in the right place.
  MSCOPE_FAST Leaf* find(uintptr_t key, uintptr_t slot, uintptr_t fp, const State& caller,
                         bool* moved) {
    uint64_t x = hash(key, caller);
    *moved = false;
    for (unsigned way = 0; way < kWays; ++way) {
      if (index_->tags[x % kSets].ways[way] != x >> 32) continue;
      Leaf& leaf = sets_[x % kSets].ways[way];
      if (!begins_as(leaf, key, slot, fp)) continue;
      if (leaf.words_now() == leaf.word_sum) return &leaf;
      *moved = true;
    }
    return nullptr;
  }

  // To be told of each capture: the leaf that was found, as expected or not, or none.
  MSCOPE_FAST void came_as_expected() {
    ++hits_;
    if (!expected_->recent) expected_->recent = true;
    go_on(expected_);
  }
  void came(Leaf* leaf) {
    index_->next[place_in_history()] = static_cast<uint16_t>(leaf - sets_->ways);
    go_on(leaf);
  }
  void hit(Leaf* leaf) {
    ++hits_;
    leaf->recent = true;
    came(leaf);
  }
  void miss() {
    constexpr uint32_t kPeriod = 256;
    if (++misses_ < kPeriod) return;
    few_hits_ = hits_ < kPeriod / 8;
    hits_ = misses_ = 0;
  }

  // A place for a new leaf, or nullptr: where few are ever met again, writing
  // them all down would cost more than it gives. One in eight then is, by chance, since
  // programs have rhythms.
  Leaf* place(uintptr_t key, const State& caller) {
    chance_ = chance_ * 1664525 + 1013904223;
    if (few_hits_ && chance_ >> 29 != 0) return nullptr;
    uint64_t x = hash(key, caller);
    Set& set = sets_[x % kSets];
    Tags& tags = index_->tags[x % kSets];
    // Rather than another leaf, its like that was of no use.
    unsigned way = 0;
    bool found = false;
    for (unsigned i = 0; i < kWays; ++i) {
      if (set.ways[i].recent && set.ways[i].era == era_) continue;
      if (!found || tags.ways[i] == x >> 32) way = i;
      found = true;
    }
    if (!found)
      for (Leaf& leaf : set.ways) leaf.recent = false;
    tags.ways[way] = static_cast<uint32_t>(x >> 32);
    set.ways[way].era = era_;
    return &set.ways[way];
  }

 private:
  static constexpr size_t kSets = 256, kWays = 4, kHistories = 4096;
  static_assert(kSets * kWays == 1 << 10);
  struct Set {
    Leaf ways[kWays];
  };
  // Close together, so that to find that there is no leaf costs nothing.
  struct Tags {
    uint32_t ways[kWays];
  };
  struct Index {
    Tags tags[kSets];
    uint16_t next[kHistories];
  };

  MSCOPE_FAST void go_on(const Leaf* leaf) {
    history_ = history_ << 10 | static_cast<uint32_t>(leaf - sets_->ways);
    expected_ = sets_->ways + index_->next[place_in_history()];
    __builtin_prefetch(expected_);
  }

  // The last three leaves.
  MSCOPE_FAST size_t place_in_history() const {
    return (uint64_t{history_ & 0x3fffffff} * 0x9e3779b97f4a7c15) >> 52;
  }

  MSCOPE_FAST static uint64_t hash(uintptr_t key, const State& caller) {
    uint64_t x = (key ^ caller.key * 3 ^ caller.slot << 7) * 0x9e3779b97f4a7c15;
    return x ^ x >> 32;
  }

  Set* sets_;
  Index* index_;
  Leaf* expected_;
  uint32_t history_;
  uint32_t era_;
  uint32_t hits_, misses_;  // Lately.
  bool few_hits_;
  uint32_t chance_;
};

}  // namespace malloscope::unwind
