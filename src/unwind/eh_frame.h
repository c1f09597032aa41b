// SPDX-License-Identifier: Apache-2.0
// Reads .eh_frame and .eh_frame_hdr: which table describes a pc, and what it
// says there. All reads stay inside the sections given; time is bounded by their
// size. What is malformed or unknown to us yields nothing, never a guess.

#pragma once

#include <cstddef>
#include <cstdint>

#include "unwind/arch.h"
#include "unwind/rule.h"

namespace malloscope::unwind {

// Bytes, and the address at which they are meant to lie (in the process itself:
// where they do lie). Pointers inside are relative to that.
struct Section {
  const uint8_t* bytes = nullptr;
  size_t size = 0;
  uintptr_t address = 0;
};

// Reads numbers off the front of some bytes. Past the end, or after a number
// that makes no sense, it is `bad` and reads zeros.
class Cursor {
 public:
  Cursor(const uint8_t* at, const uint8_t* end) : at_(at), end_(end) {}

  template <typename T>
  T fixed();
  uint8_t byte() { return fixed<uint8_t>(); }
  uint64_t uleb();
  int64_t sleb();
  void skip(uint64_t bytes);

  const uint8_t* at() const { return at_; }
  const uint8_t* end() const { return end_; }
  size_t left() const { return static_cast<size_t>(end_ - at_); }
  bool done() const { return at_ == end_; }
  bool bad() const { return bad_; }
  void fail() { at_ = end_, bad_ = true; }

 private:
  const uint8_t* at_;
  const uint8_t* end_;
  bool bad_ = false;
};

// One function's description (an FDE with its CIE).
struct Fde {
  Section section;
  uintptr_t start = 0, end = 0;  // The pcs described.
  uint64_t code_align = 0;
  int64_t data_align = 0;
  bool signal = false;  // Its caller was interrupted, not called.
  // The instructions, as offsets in the section.
  uint32_t common = 0, common_end = 0, own = 0, own_end = 0;
};

// Where the .eh_frame section is that a header belongs to. 0 if it does not say.
uintptr_t frames_address(const Section& header);

// By the header's search table, or by a scan of all if there is no usable table
// (`header` may be empty).
bool find_fde(const Section& header, const Section& frames, uintptr_t pc, Fde* out);

// Calls `each` with every well-formed FDE until it returns true; stops at the
// section's terminator or at the first entry that makes no sense.
// Returns the offset at which it stopped.
size_t scan_fdes(const Section& frames, bool (*each)(const Fde&, void* context), void* context);

// Where a register of the caller can be found.
struct Place {
  enum Kind : uint8_t {
    kUnset,         // Nothing said: unchanged if callee-saved, lost otherwise.
    kSame,          // Unchanged.
    kLost,          // Not recoverable; for the return address: there is no caller.
    kAtCfa,         // At CFA + value.
    kCfaPlus,       // Is CFA + value.
    kRegister,      // Is in register `reg` (for the CFA: that register + value).
    kAtExpression,  // At the address that an expression computes.
    kIsExpression,  // Is what an expression computes.
  };
  Kind kind = kUnset;
  uint8_t reg = 0;
  int32_t value = 0;  // For expressions: their (counted) block's offset in the section.
};

// What CFI says at one pc. A row of all registers is for slow steps; nearly
// always the four below are enough, and small enough for anyone's stack.
struct FullRow {
  Place cfa;
  Place reg[arch::kRegisters];
  Place* of(uint64_t number) { return number < arch::kRegisters ? &reg[number] : nullptr; }
};
struct SmallRow {
  Place cfa, fp, sp, pc;
  Place* of(uint64_t number) {
    switch (number) {
      case arch::kFp:
        return &fp;
      case arch::kSp:
        return &sp;
      case arch::kPc:
        return &pc;
    }
    return nullptr;
  }
};

// The row in hand, the one every function starts with, and those put aside by
// DW_CFA_remember_state (compilers nest one deep).
template <typename Row>
struct Rows {
  static constexpr unsigned kRemembered = 2;
  Row now, initial, remembered[kRemembered];
};

// Leaves the row at `pc` (a looked-up pc: see lookup_pc) in `rows->now`.
bool run(const Fde& fde, uintptr_t pc, Rows<SmallRow>* rows);
bool run(const Fde& fde, uintptr_t pc, Rows<FullRow>* rows);

// The bytes of an expression that a Place refers to.
Cursor expression(const Fde& fde, const Place& place);

// The rule for `key`, of which `row` is the row and `fde` the description.
Rule compile(const Fde& fde, const SmallRow& row, uintptr_t key);

// All of it: kStop if nothing is found or understood.
Rule rule_from(const Section& header, const Section& frames, uintptr_t key);

}  // namespace malloscope::unwind
