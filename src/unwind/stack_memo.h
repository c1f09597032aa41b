// SPDX-License-Identifier: Apache-2.0
// Captures a thread's stack, remembering the last one, so that only the frames
// that are new are unwound. The idea, and why it is safe, is told in stack_memo.cc.

#pragma once

#include <cstddef>
#include <cstdint>

#include "base/arena.h"
#include "base/attributes.h"
#include "base/ids.h"
#include "unwind/leaf_cache.h"
#include "unwind/modules.h"
#include "unwind/rule.h"
#include "unwind/slow_step.h"
#include "unwind/stack_reader.h"
#include "unwind/walk.h"

namespace malloscope::unwind {

// Who knows which stacks have been named: tells the id of the one with this hash, or kNone.
struct StackFinder {
  StackId (*find)(void* context, uint64_t hash) = nullptr;
  void* context = nullptr;
};

// One per thread, used only by that thread and never from within itself: the
// recorder's guard keeps signal handlers out (they have walk_plain). Lives in
// zeroed memory, in which it is already in order: empty.
class StackMemo {
 public:
  // Before the first capture, and whenever the memo is given to another thread.
  void begin(Arena& arena, StackBounds bounds, StackFinder finder);

  Captured capture(Start start);

  // capture() in two steps: is it the stack that is expected next? kNone if not; then walk().
  MSCOPE_FAST StackId recall(Start start);
  Captured walk(Start start);

  // After a capture that came without an id: the one it has now. It must have
  // been defined, since later captures will build on it.
  void name(StackId id);

  // Forgets everything; also after a signal handler has jumped out of a capture.
  void clear();

  // For tests: the path hash of what recall() has just told.
  uint64_t recalled_hash() const { return hash_of(leaves_.last()); }

  // For tests and benchmarks: how much the last capture had to unwind.
  uint32_t stepped() const { return stepped_; }
  bool has_leaf_cache() const { return leaves_.is_on(); }

  static constexpr uint32_t kFirstFrames = 64, kLeafCacheAfter = 1000;

 private:
  // Frame 0 is the outermost; frame i is the caller of frame i + 1.
  struct Frame {
    uintptr_t key, slot, sp, fp;  // The State in it.
    Rule rule;
    uint64_t hash;      // Of the path from the root to here.
    StackId owner;      // A stack that begins with this path.
    StackId self;       // The stack that is this path; kNone if it has not been named.
    uint32_t word_end;  // The words that certify this frame's way out: [0, word_end).
    bool fp_live;       // Whether unwinding from here reads fp.
  };
  // A word that a walk has loaded.
  struct Word {
    uintptr_t address, value;
  };
  // How a walk came to its end.
  enum class Ending : uint8_t {
    kMet,      // It met the memo.
    kRoot,     // It came to a frame that has no caller by its CFI,
    kZero,     // or by a return address of 0,
    kNoCfi,    // or whose caller cannot be known: no CFI,
    kUnknown,  // or none yet.
    kBroken,   // It went astray.
    kTooDeep,
  };
  static constexpr uint32_t kAllHold = UINT32_MAX;

  bool refresh(Epoch now);
  void forget_frames();
  bool grow();
  bool grow_words(uint32_t wanted);
  bool slow_step(State* at, bool is_first);
  Rule rule_of(uintptr_t key);
  uint32_t frames_outside(uint32_t word, uint32_t inside) const;
  void append(uint32_t base, uint32_t fresh, uint32_t uncertified, Ending ending,
              const State& beyond);
  void add_words(Frame& frame, const State& outer, bool outer_fp_live);
  Captured result(uint32_t base, uint32_t fresh);
  Captured no_stack(Epoch now);
  Captured too_deep(Start start);
  bool is_cut_again(Start start, Captured* captured);
  void expect_again(StackId id);
  bool has_leaf(const State& caller, Captured* captured);
  bool tell(Leaf* leaf, Captured* captured);
  uint64_t hash_of(const Leaf& leaf) const;
  bool learn_id(Leaf* leaf, uint64_t hash);
  void name_leaf(Leaf* leaf, StackId id);
  void remember_leaf(StackId id);

  MSCOPE_FAST bool has_anchor_of(const Leaf& leaf);
  MSCOPE_FAST uint32_t first_bad(uint32_t word_end);
  MSCOPE_FAST uint16_t& hint(uintptr_t slot) { return hints_[slot >> 3 & hint_mask_]; }

  // The arrays have room for capacity_ frames: those of the memo from the front,
  // and a walk's new ones, as it meets them, from the back.
  Frame* frames_;
  Word* words_;
  uint16_t* hints_;  // From a slot to the frame that may be there.
  uintptr_t* keys_;  // The frames' keys again, side by side.
  uint32_t hint_mask_;
  uint32_t capacity_, word_capacity_;
  uint32_t size_;
  uint32_t valid_;      // Frames that may be met again; those inside a slow frame may not.
  uint32_t own_words_;  // The first so many words are on the thread's own stack.
  Epoch epoch_;
  bool uneasy_;        // Ask again, at every capture, whether what we know still holds:
  bool root_unknown_;  // because of the code around the root, or because of an unloading.
  bool root_stopped_;

  StackReader reader_;
  Arena* arena_;
  FullWalk* full_walk_;

  // The last capture, for name(): frames [first_unnamed_, last_end_), of which [0, last_base_)
  // were there before.
  uint32_t first_unnamed_, last_end_, last_base_;
  StackId last_met_;    // If the memo had all of it.
  bool leaf_moved_;     // Its leaf was known, but the words around it have changed.
  Leaf* unnamed_leaf_;  // Its leaf was known, but not by this way.
  uint32_t stepped_;
  uint32_t captures_;

  LeafCache leaves_;
  StackFinder finder_;

  // While a stack stays too deep (see is_cut_again).
  uintptr_t cut_slot_;
  uint32_t cut_left_;
  uint64_t cut_hash_;
  StackId cut_id_;
  bool last_was_cut_;
};

// Checks the words [0, word_end), last first. The index of the first that does
// not hold, or kAllHold.
MSCOPE_FAST uint32_t StackMemo::first_bad(uint32_t word_end) {
  const Word* const first = words_;
  const Word* word = first + word_end;
  for (const Word* own_end = first + own_words_; word > own_end;) {
    --word;
    uintptr_t value;
    if (!reader_.load(word->address, &value) || value != word->value)
      return static_cast<uint32_t>(word - first);
  }
  // On the thread's own stack any word may be loaded at any time, so several are taken at once.
  auto differs = [](const Word& w) {
    return __atomic_load_n(reinterpret_cast<const uintptr_t*>(w.address), __ATOMIC_RELAXED) ^
           w.value;
  };
  while (word - first >= 4) {
    if (differs(word[-1]) | differs(word[-2]) | differs(word[-3]) | differs(word[-4])) break;
    word -= 4;
  }
  while (word > first) {
    --word;
    if (differs(*word)) return static_cast<uint32_t>(word - first);
  }
  return kAllHold;
}

// Whether the memo has the frame in which the leaf's words end, and may build upon it. The words
// say that we came to anchor_slot, and what is there; and which fp we came with, if that was
// of interest when they were written down.
MSCOPE_FAST bool StackMemo::has_anchor_of(const Leaf& leaf) {
  if (leaf.anchor >= valid_) return false;
  const Frame& frame = frames_[leaf.anchor];
  return frame.slot == leaf.anchor_slot && frame.sp == leaf.anchor_slot + sizeof(uintptr_t) &&
         frame.key == __atomic_load_n(reinterpret_cast<const uintptr_t*>(leaf.anchor_slot),
                                      __ATOMIC_RELAXED) &&
         (!frame.fp_live || (leaf.anchor_fp_live && frame.fp == leaf.anchor_fp)) &&
         first_bad(frame.word_end) == kAllHold;
}

// Most programs do the same things again in the same order.
MSCOPE_FAST StackId StackMemo::recall(Start start) {
  if (!leaves_.is_on() || epoch() != epoch_ || uneasy_) return StackId::kNone;
  const Leaf& leaf = *leaves_.expected();
  if (!leaves_.begins_as(leaf, first_state(start).key, start.slot, start.rbp) ||
      leaf.words_now() != leaf.word_sum)
    return StackId::kNone;
  if (leaf.whole
          ? leaf.stopped
          : root_stopped_ || !has_anchor_of(leaf) || frames_[leaf.anchor].hash != leaf.anchor_hash)
    return StackId::kNone;  // A stack that is not complete is told by the slow way.
  StackId id = leaf.id;
  leaves_.came_as_expected();
  stepped_ = last_end_ = 0;
  return id;
}

}  // namespace malloscope::unwind
