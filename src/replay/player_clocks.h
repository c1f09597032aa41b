// SPDX-License-Identifier: Apache-2.0
// How the player takes times: by the CPU's counter, whose reads cost as much as a fast malloc, and
// by the kernel's clock of the thread, which costs more and is never interrupted. What the reads
// cost is known beforehand, and taken off.

#pragma once

#include <sys/resource.h>

#include <cstdint>

#include "base/clock.h"

namespace malloscope::replay {

extern uint64_t timing_cycles, timing_ns;  // What it costs to read the one and the other.
extern double cycles_per_tick;             // Of the workload's, at the speed that was asked for.

// Learns all that, in some 20 ms.
void calibrate();

inline uint64_t thread_cpu_ns() { return clock_ns(CLOCK_THREAD_CPUTIME_ID); }

// How often the thread had to make room for others.
inline uint64_t interruptions() {
  rusage usage = {};
  getrusage(RUSAGE_THREAD, &usage);
  return static_cast<uint64_t>(usage.ru_nivcsw);
}

}  // namespace malloscope::replay
