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

// 384 bytes: six cache lines.
struct Leaf {
  static constexpr unsigned kWords = 24;
  static constexpr uint32_t kNoAnchor = 0xffff;

  // The innermost frame's key, and the state in its caller.
  uintptr_t leaf_key;
  State caller;
  // The words loaded from there out to the anchor, inner ones first: distance
  // from the caller's slot, in words, and value.
  int32_t distance[kWords];
  uintptr_t value[kWords];
  // The frame of the memo at which the rest of the stack goes on.
  uintptr_t anchor_slot, anchor_sp, anchor_fp;
  uint64_t anchor_hash;

  uint64_t hash;
  StackId id;
  uint32_t era;  // 0: empty.
  uint16_t anchor;
  uint8_t words;
  bool fp_live : 1, stopped : 1, recent : 1;

  MSCOPE_FAST bool words_hold() const {
    for (unsigned i = 0; i < words; ++i) {
      uintptr_t address = caller.slot + static_cast<intptr_t>(distance[i]) * 8;
      if (__atomic_load_n(reinterpret_cast<const uintptr_t*>(address), __ATOMIC_RELAXED) !=
          value[i])
        return false;
    }
    return true;
  }
};
static_assert(sizeof(Leaf) == 384);

// All zero is a cache that is off.
class LeafCache {
 public:
  bool is_on() const { return sets_ != nullptr; }
  void turn_on(Arena& arena) {
    sets_ = arena.take_array<Set>(kSets);
    era_ = 1;
  }
  void clear() { ++era_; }

  // The leaf with this key, caller and live fp; nullptr if there is none.
  MSCOPE_FAST Leaf* find(uintptr_t leaf_key, const State& caller) {
    for (Leaf& leaf : set_of(leaf_key, caller).ways) {
      if (leaf.leaf_key == leaf_key && leaf.caller.slot == caller.slot &&
          leaf.caller.key == caller.key && leaf.caller.sp == caller.sp && leaf.era == era_ &&
          (!leaf.fp_live || leaf.caller.fp == caller.fp))
        return &leaf;
    }
    return nullptr;
  }

  void hit(Leaf* leaf) {
    leaf->recent = true;
    rate_ += (kFull - rate_) >> 6;
  }
  void miss() { rate_ -= rate_ >> 6; }

  // A place for a new leaf, or nullptr: where few are ever met again, writing
  // them all down would cost more than it gives.
  Leaf* place(uintptr_t leaf_key, const State& caller) {
    if (rate_ < kFull / 8 && ++skipped_ % 8 != 0) return nullptr;
    Set& set = set_of(leaf_key, caller);
    Leaf& victim = set.ways[set.ways[0].recent && set.ways[0].era == era_ ? 1 : 0];
    for (Leaf& leaf : set.ways) leaf.recent = false;
    victim.era = era_;
    return &victim;
  }

 private:
  static constexpr size_t kSets = 256;
  static constexpr uint32_t kFull = 1 << 16;
  struct Set {
    Leaf ways[2];
  };

  MSCOPE_FAST Set& set_of(uintptr_t leaf_key, const State& caller) {
    uint64_t x = (leaf_key ^ caller.key * 3 ^ caller.slot << 7) * 0x9e3779b97f4a7c15;
    return sets_[x >> 32 & (kSets - 1)];
  }

  Set* sets_;
  uint32_t era_;
  uint32_t rate_;  // Of hits, decaying; kFull is all.
  uint32_t skipped_;
};

}  // namespace malloscope::unwind
