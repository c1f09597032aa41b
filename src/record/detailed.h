// SPDX-License-Identifier: Apache-2.0
// The recorder is built twice. The plain one knows nothing of stacks of frees, of times of
// calls, of samples and of CPU time (`run --free-stacks`, `--time-calls`, `--sample`, `--cpu`), so
// that nobody pays for what he did not ask for; the detailed one asks at every event whether they
// are wanted.

#pragma once

#include "base/clock.h"
#include "record/process.h"
#include "record/thread_state.h"

namespace malloscope::record {

#ifdef MSCOPE_DETAILED
inline constexpr bool kDetailed = true;
#else
inline constexpr bool kDetailed = false;
#endif

MSCOPE_FAST bool times_calls() {
  return kDetailed && inherited.time_calls &&
         !inherited.clock_forbidden.load(std::memory_order_relaxed);
}

// Around the real call.
class CallTimer {
 public:
  MSCOPE_FAST CallTimer() {
    if (times_calls()) began_ = cycles_before_loads();
  }
  // Keeps the time for the event that tells of the call.
  MSCOPE_FAST void stop(ThreadState* t) {
    if (times_calls()) t->call_cycles = cycles_ordered() - began_;
  }

 private:
  uint64_t began_ = 0;
};

// The time that a timer shows around nothing.
uint64_t cost_of_timing();

// After the event of a call whose time was taken.
MSCOPE_FAST void tell_call_time(ThreadState* t) {
  if (!times_calls()) return;
  uint64_t cost = inherited.timing_cost;
  t->lane.call_time(t->call_cycles > cost ? t->call_cycles - cost : 0);
}

}  // namespace malloscope::record
