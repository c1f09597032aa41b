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

  // After a capture that came without an id: the one it has now. It must have
  // been defined, since later captures will build on it.
  void name(StackId id);

  // Forgets everything; also after a signal handler has jumped out of a capture.
  void clear();

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
  uint32_t first_bad(uint32_t word_end);
  uint32_t frames_outside(uint32_t word, uint32_t inside) const;
  void append(uint32_t base, uint32_t fresh, uint32_t uncertified, Ending ending,
              const State& beyond);
  void add_words(Frame& frame, const State& outer, bool outer_fp_live);
  Captured result(uint32_t base, uint32_t fresh);
  Captured no_stack(Epoch now);
  Captured too_deep(Start start);
  bool is_cut_again(Start start, Captured* captured);
  bool expected_leaf(const State& at, Captured* captured);
  bool has_leaf(const State& caller, Captured* captured);
  bool tell(Leaf* leaf, Captured* captured);
  bool has_anchor_of(const Leaf& leaf);
  bool learn_id(Leaf* leaf, uint64_t hash);
  void name_leaf(Leaf* leaf, StackId id);
  void remember_leaf(StackId id);

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

}  // namespace malloscope::unwind
