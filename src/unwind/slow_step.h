// SPDX-License-Identifier: Apache-2.0
// Steps out of frames whose CFI says more than a Rule can hold. The idea is told
// in slow_step.cc.

#pragma once

#include <cstdint>

#include "unwind/arch.h"
#include "unwind/eh_frame.h"
#include "unwind/stack_reader.h"
#include "unwind/walk.h"

namespace malloscope::unwind {

// About 1.3 KiB, in memory of the thread's own, not on its stack.
class FullWalk {
 public:
  // A new capture: what was known is no longer so.
  void forget() { begun_ = false; }

  // Steps out of the frame that a walk has come to, which must be outside of the
  // caller. False if it cannot be done.
  bool step(State* at, StackReader& reader);

 private:
  static constexpr unsigned kStack = 32, kMaxOperations = 1000;

  bool step_once(StackReader& reader);
  bool evaluate(Cursor in, const uint64_t* initial, StackReader& reader, uint64_t* result);
  bool find(const Fde& fde, const Place& place, uint64_t cfa, StackReader& reader, uint64_t* value,
            uintptr_t* address);
  bool is_known(uint64_t reg) const {
    return reg < arch::kRegisters && (registers_.known >> reg & 1) != 0;
  }

  bool begun_;
  State at_;  // Whose registers these are.
  arch::Registers registers_, next_;
  Rows<FullRow> rows_;
  uint64_t stack_[kStack];
};

}  // namespace malloscope::unwind
