// SPDX-License-Identifier: Apache-2.0
// The clock that stamps events: the CPU's own counter, which costs 10 ns and no
// system call. Ticks are the counter divided by a power of two so that one is
// about 100 ns; the trace says how long a tick is.
//
// A plain read may be executed before earlier loads have finished: a thread that
// has just been handed a block could stamp its free before the allocation. An
// ordered read waits for them (10 ns becomes 20). While a process has only one
// thread there is nobody to be out of order with, and a plain read will do.

#pragma once

#include <cstdint>

#include "base/attributes.h"
#include "base/syscall.h"

namespace malloscope {

#if defined(__x86_64__)
MSCOPE_FAST uint64_t cycles() {
  uint32_t low, high;
  asm volatile("rdtsc" : "=a"(low), "=d"(high));
  return static_cast<uint64_t>(high) << 32 | low;
}
MSCOPE_FAST uint64_t cycles_ordered() {
  uint32_t low, high;
  asm volatile("lfence; rdtsc" : "=a"(low), "=d"(high) : : "memory");
  return static_cast<uint64_t>(high) << 32 | low;
}
// Also keeps later loads from being executed before the read.
MSCOPE_FAST uint64_t cycles_before_loads() {
  uint64_t now = cycles_ordered();
  asm volatile("lfence" : : : "memory");
  return now;
}
MSCOPE_FAST void pause() { asm volatile("pause"); }
#else
#error "the clock of this CPU is to be added here"
#endif

// The kernel's clock, asked directly: the tools may run under a library that fakes it.
inline uint64_t clock_ns(int clock = CLOCK_MONOTONIC_RAW) {
  timespec now = {};
  sys::call(SYS_clock_gettime, clock, sys::arg(&now));
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace malloscope
