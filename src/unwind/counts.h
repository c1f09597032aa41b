// SPDX-License-Identifier: Apache-2.0
// What the unwinder could not do, counted for the reports. Only fresh steps
// count: a stack that is met again from memory adds nothing.

#pragma once

#include <atomic>
#include <cstdint>
#include <initializer_list>

namespace malloscope::unwind {

struct Counts {
  std::atomic<uint64_t> cut;           // Stacks deeper than the limit.
  std::atomic<uint64_t> no_cfi;        // Frames of modules without CFI that we understand.
  std::atomic<uint64_t> no_module;     // Frames in no module: code made at run time.
  std::atomic<uint64_t> unreadable;    // Steps that would have left readable memory.
  std::atomic<uint64_t> not_outward;   // Steps that did not lead outwards: wrong CFI.
  std::atomic<uint64_t> slow;          // Frames stepped by the full interpreter.
  std::atomic<uint64_t> no_memory;     // The arena gave nothing.
  std::atomic<uint64_t> modules_lost;  // Modules that found no place in the table.
};

inline constinit Counts counts = {};

inline void reset(Counts& all) {
  for (auto* each : {&all.cut, &all.no_cfi, &all.no_module, &all.unreadable, &all.not_outward,
                     &all.slow, &all.no_memory, &all.modules_lost})
    each->store(0, std::memory_order_relaxed);
}

inline void count(std::atomic<uint64_t>& what) { what.fetch_add(1, std::memory_order_relaxed); }

}  // namespace malloscope::unwind
