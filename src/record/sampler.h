// SPDX-License-Identifier: Apache-2.0
// Whether an allocation is recorded, where only a sample is (`run --sample`): one that is not costs
// no stack, no event and no time. wire/sampling.h says what a sample is and why it is right.

#pragma once

#include "record/recorder.h"
#include "record/throws.h"
#include "wire/sampling.h"

namespace malloscope::record {

MSCOPE_FAST bool samples() { return kDetailed && inherited.sample_log2 != 0; }

MSCOPE_FAST bool draws(ThreadState* t, size_t size) {
  unsigned weight_log2 = wire::sample_weight_log2(size, inherited.sample_log2);
  if (weight_log2 == 0) return true;
  if (t->random == 0) [[unlikely]]
    t->random = first_throw(reinterpret_cast<uintptr_t>(t), inherited.image_stamp);
  return throw_hits(&t->random, weight_log2);
}

// The thread's newest block, as far as the sample knows, is its newest no more.
MSCOPE_SLOW inline void tell_passed(ThreadState* t, uintptr_t frame) {
  begin_recording(t, frame);
  t->lane.passed_over();
  end_recording(t);
  t->passed = true;
}

// Whether nothing is to be told of this block; else it is in the sample now.
MSCOPE_FAST bool passes_over(ThreadState* t, uintptr_t frame, const void* block, size_t size) {
  if (!samples() || !block) return false;  // A failure is no block, and always told.
  if (draws(t, size)) [[unlikely]] {
    process().sampled.add(block);
    t->passed = false;
    return false;
  }
  if (!t->passed) [[unlikely]]
    tell_passed(t, frame);
  return true;
}

}  // namespace malloscope::record
