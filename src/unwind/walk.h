// SPDX-License-Identifier: Apache-2.0
// Walking a stack from the inside out, one frame at a time.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/attributes.h"
#include "base/ids.h"
#include "unwind/arch.h"
#include "unwind/counts.h"
#include "unwind/modules.h"
#include "unwind/rule.h"
#include "unwind/rule_cache.h"
#include "unwind/stack_reader.h"

namespace malloscope::unwind {

// Where a walk begins: in a function with a frame pointer (a hook), whose return
// address lies at `slot` and whose caller's fp was `rbp`. The caller is the
// first frame of the stack.
struct Start {
  uintptr_t slot;
  uintptr_t rbp;
};

// Where we are in a walk: in the frame that goes on at `key`.
struct State {
  uintptr_t key;   // See rule.h.
  uintptr_t slot;  // The address the key was read from.
  uintptr_t sp;    // Once its callee has returned: slot + 8, except where a signal came.
  uintptr_t fp;
};

// A captured stack. All keys are in the order from the root to the leaf.
struct Captured {
  uint64_t hash = 0;               // Names the whole path, its flags and the generation. Not 0.
  StackId id = StackId::kNone;     // If it is already known, the rest is not needed.
  StackId owner = StackId::kNone;  // Otherwise: the first `kept` frames of this stack ...
  uint32_t kept = 0;
  std::span<const uintptr_t> fresh;  // ... then these. Valid until the next capture.
  uint32_t generation = 0;
  bool cut = false;      // Too deep: the outer frames are missing.
  bool stopped = false;  // The outer frames are missing because we could not go on.
};

inline constexpr uint32_t kMaxFrames = 16'384;
inline constexpr uint32_t kCutFrames = 256;  // What is kept of a stack that is deeper.

MSCOPE_FAST State first_state(Start start) {
  uintptr_t key = __atomic_load_n(reinterpret_cast<const uintptr_t*>(start.slot), __ATOMIC_RELAXED);
  return {key, start.slot, start.slot + sizeof(uintptr_t), start.rbp};
}

// Steps out by a rule that is neither an end nor slow. False if that leads
// nowhere: to memory that is not there, back inwards, or to what is no pc.
// Only a signal may have come from another stack. The new key may be 0: then the
// frame we were in was the outermost.
MSCOPE_FAST bool step(State* at, Rule rule, StackReader& reader) {
  uintptr_t cfa, slot, pc, fp = at->fp;
  if (rule.kind() == Rule::kSignal) {
    slot = at->sp + arch::kSignalPc;
    if (!reader.load(at->sp + arch::kSignalSp, &cfa) || !reader.load(slot, &pc) ||
        !reader.load(at->sp + arch::kSignalFp, &fp) || pc >> arch::kAddressBits)
      return false;
    *at = {pc ? pc | kInterrupted : 0, slot, cfa, fp};
    return true;
  }
  if (rule.kind() == Rule::kSp) {
    cfa = at->sp + rule.offset();
  } else if (rule.kind() == Rule::kFp) {
    cfa = at->fp + rule.offset();
  } else if (!reader.load(at->fp + rule.offset(), &cfa)) {
    return false;
  }
  slot = cfa + arch::kReturnSlot;
  if (slot < at->sp || cfa < slot) [[unlikely]] {
    count(counts.not_outward);
    return false;
  }
  if (!reader.load(slot, &pc)) return false;
  if (pc >> arch::kAddressBits) [[unlikely]] {
    count(counts.not_outward);
    return false;
  }
  if (rule.kind() == Rule::kFpDeref) {
    if (!reader.load(at->fp, &fp)) return false;
  } else if (rule.fp_offset() != 0) {
    if (!reader.load(cfa + rule.fp_offset(), &fp)) return false;
  }
  *at = {pc, slot, cfa, fp};
  return true;
}

// Path hashes: that of a stack is that of the stack without its leaf, extended by the leaf's key.
// Extending is linear in the hash, so what a run of inner frames adds does not depend on those
// outside of it:
//
//     hash(outer, inner) == hash(outer) * kPathStep ^ (number of inner frames) + inner
inline constexpr uint64_t kPathStep = 0xda942042e4dd58b5;

MSCOPE_FAST uint64_t spread(uint64_t key) {
  uint64_t x = key * 0x9e3779b97f4a7c15;
  x = (x ^ x >> 32) * 0xd6e8feb86659fd93;
  return x ^ x >> 29;
}
MSCOPE_FAST uint64_t extended(uint64_t hash, uint64_t key) {
  return hash * kPathStep + spread(key);
}
MSCOPE_FAST uint64_t path_seed(uint32_t generation, bool cut, bool stopped) {
  uint64_t end = uint64_t{generation} << 2 | uint64_t{cut} << 1 | uint64_t{stopped};
  return spread(end ^ 0x6d616c6c6f73636f);
}
MSCOPE_FAST uint64_t named(uint64_t hash) { return hash ? hash : 1; }

// A walk that remembers nothing and touches nothing but `room`: for a signal
// handler that has interrupted the recorder. It keeps the innermost frames as far
// as there is room; frames that need a slow step end it.
Captured walk_plain(Start start, StackBounds bounds, std::span<uintptr_t> room);

// The same, for up to `room.size()` frames, with a reader at hand.
Captured walk_plain(Start start, StackReader& reader, Epoch now, std::span<uintptr_t> room);

}  // namespace malloscope::unwind
