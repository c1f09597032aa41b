// SPDX-License-Identifier: Apache-2.0
// Loads from a stack that may not be there. The idea is told in stack_reader.cc.

#pragma once

#include <atomic>
#include <cstdint>

#include "base/attributes.h"

namespace malloscope::unwind {

// The addresses a thread's own stack may occupy: [low, high). {0, 0} if unknown.
struct StackBounds {
  uintptr_t low = 0, high = 0;
};

// To be called whenever the program has unmapped, moved or protected memory (or
// freed a block so large that malloc may have).
void maps_changed();

// Whether a word can be read at `address`, asked of the kernel. Where that is forbidden only a
// thread's own stack is read.
enum class Answer { kYes, kNo, kForbidden };
Answer ask_readable(uintptr_t address);

// One per thread, or one per walk. All zero is a good start. Between two enter()s
// it belongs to one walk.
class StackReader {
 public:
  void set_bounds(StackBounds bounds);

  // A walk begins whose innermost word is at `slot`.
  MSCOPE_FAST void enter(uintptr_t slot) {
    here_ = slot & ~kPageMask;
    // On the thread's own stack, everything from here outwards is there to stay.
    if (here_ < own_low_ && here_ >= bounds_.low && slot < bounds_.high) {
      own_low_ = here_;
      own_bytes_ = bounds_.high - here_;
    }
  }

  // Whether the word is on the thread's own stack, where it is readable for ever.
  MSCOPE_FAST bool is_own(uintptr_t address) const {
    return address - own_low_ < own_bytes_ && address % sizeof(uintptr_t) == 0;
  }

  // The word at `address`; false if it must not be read.
  MSCOPE_FAST bool load(uintptr_t address, uintptr_t* value) {
    if (!is_own(address) && !is_readable(address)) [[unlikely]]
      return false;
    *value = __atomic_load_n(reinterpret_cast<const uintptr_t*>(address), __ATOMIC_RELAXED);
    return true;
  }

 private:
  static constexpr uintptr_t kPageMask = 4095;
  static constexpr unsigned kRanges = 4;
  struct Range {
    uintptr_t low, high;
  };

  bool is_readable(uintptr_t address);

  uintptr_t own_low_, own_bytes_;  // The part of bounds_ in which a walk has ever begun.
  uintptr_t here_;
  StackBounds bounds_;
  Range ranges_[kRanges];  // Asked, and found readable, while maps_ was this.
  uint32_t maps_;
  uint32_t next_range_;
};

}  // namespace malloscope::unwind
