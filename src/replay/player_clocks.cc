// SPDX-License-Identifier: Apache-2.0
#include "replay/player_clocks.h"

#include "replay/player_base.h"

namespace malloscope::replay {

uint64_t timing_cycles, timing_ns;
double cycles_per_tick;

namespace {

// What it costs to read a clock, on average; without the times when something came in between.
template <typename Clock>
uint64_t cost_of(Clock&& clock) {
  uint64_t least = UINT64_MAX, sum = 0, count = 0;
  for (int i = 0; i < 4000; ++i) {
    uint64_t from = clock(), took = clock() - from;
    if (took < least) least = took;
    if (took > 3 * least) continue;
    sum += took;
    ++count;
  }
  return (sum + count / 2) / count;
}

}  // namespace

void calibrate() {
  uint64_t ns = clock_ns(), from = cycles_ordered();
  while (clock_ns() - ns < 20'000'000) {
  }
  board->cycles_per_ns =
      static_cast<double>(cycles_ordered() - from) / static_cast<double>(clock_ns() - ns);
  timing_cycles = cost_of(cycles_before_loads);
  board->timing_cycles = timing_cycles;
  timing_ns = cost_of(thread_cpu_ns);
  if (board->speed > 0) cycles_per_tick = tail.ns_per_tick * board->cycles_per_ns / board->speed;
}

}  // namespace malloscope::replay
