// SPDX-License-Identifier: Apache-2.0
// How to step out of a frame, in one word. What a table of CFI says about a pc
// nearly always comes down to two small offsets.

#pragma once

#include <cstdint>

#include "base/attributes.h"
#include "unwind/arch.h"

namespace malloscope::unwind {

// A pc as the unwinder meets it: the return address of a call, or, with the top
// bit set, the pc at which a signal interrupted the frame. They are looked up
// differently: a return address may be one past the end of its function (after
// a call that never returns), so what counts is the byte before it.
inline constexpr uintptr_t kInterrupted = uintptr_t{1} << 63;
inline constexpr uintptr_t pc_of(uintptr_t key) { return key & ~kInterrupted; }
inline constexpr uintptr_t lookup_pc(uintptr_t key) {
  return key & kInterrupted ? pc_of(key) : key - 1;
}

class Rule {
 public:
  // The effect of each, where sp and fp are the frame's own, cfa is the caller's
  // sp, and the return address is read from cfa + arch::kReturnSlot.
  enum Kind : uint8_t {
    kNone,     // No rule; an empty place in a table.
    kSp,       // (cfa, fp) = (sp + offset, *(cfa + fp_offset))
    kFp,       // (cfa, fp) = (fp + offset, *(cfa + fp_offset))
    kFpDeref,  // (cfa, fp) = (*(fp + offset), *fp): gcc's realigned frames ("DRAP")
    kSignal,   // (cfa, pc, fp) = the interrupted ones, from the kernel's frame at sp
    kEnd,      // There is no caller: the outermost frame of a stack.
    kSlow,     // Anything else CFI can say: slow_step.h runs it.
    kStop,     // There is a module, but no CFI or none that we understand.
    kUnknown,  // There is not even a module: must be asked again next time.
  };

  constexpr Rule() = default;
  explicit constexpr Rule(Kind kind) : bits_(kind) {}
  static constexpr Rule from_bits(uint64_t bits) { return Rule(bits); }

  // Where fp_offset 0 stands for: fp unchanged. kSlow if the offsets do not fit.
  static constexpr Rule make(Kind kind, int64_t offset, int64_t fp_offset) {
    if (offset % 8 != 0 || fp_offset % 8 != 0) return Rule(kSlow);
    offset /= 8, fp_offset /= 8;
    if (offset != sign_extended(static_cast<uint64_t>(offset), kOffsetBits)) return Rule(kSlow);
    if (fp_offset != sign_extended(static_cast<uint64_t>(fp_offset), kFpOffsetBits))
      return Rule(kSlow);
    uint64_t low = static_cast<uint64_t>(fp_offset) & ((1ull << kFpOffsetBits) - 1);
    uint64_t high = static_cast<uint64_t>(offset) & ((1ull << kOffsetBits) - 1);
    return Rule(kind | low << kFpOffsetShift | high << kOffsetShift);
  }

  constexpr Kind kind() const { return static_cast<Kind>(bits_ & 15); }
  constexpr int64_t offset() const { return sign_extended(bits_ >> kOffsetShift, kOffsetBits) * 8; }
  constexpr int64_t fp_offset() const {
    return sign_extended(bits_ >> kFpOffsetShift, kFpOffsetBits) * 8;
  }
  constexpr uint64_t bits() const { return bits_; }
  constexpr bool operator==(const Rule&) const = default;

  // Whether the step reads the frame's own fp. Unchanged, it is read further out, if at all.
  constexpr bool reads_fp() const { return kind() == kFp || kind() == kFpDeref; }
  constexpr bool passes_fp() const { return kind() == kSp && fp_offset() == 0; }

  // The bits a rule does not use; the cache keeps a generation there.
  static constexpr unsigned kBits = 48;

 private:
  //     47           24 23        4 3    0
  //    +---------------+-----------+------+
  //    |  offset / 8   | fp_off / 8| kind |
  //    +---------------+-----------+------+
  static constexpr unsigned kFpOffsetShift = 4, kFpOffsetBits = 20;
  static constexpr unsigned kOffsetShift = 24, kOffsetBits = 24;

  explicit constexpr Rule(uint64_t bits) : bits_(bits) {}
  static constexpr int64_t sign_extended(uint64_t value, unsigned bits) {
    return static_cast<int64_t>(value << (64 - bits)) >> (64 - bits);
  }

  uint64_t bits_ = 0;
};

}  // namespace malloscope::unwind
