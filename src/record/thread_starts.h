// SPDX-License-Identifier: Apache-2.0
// What threads that are about to start are to do; see hooks_signals.cc.

#pragma once

#include <atomic>
#include <cstdint>

namespace malloscope::record {

struct ThreadStart {
  std::atomic<uint32_t> taken;  // From before the thread is made until it has begun.
  void* (*routine)(void*);
  void* argument;
};

struct ThreadStarts {
  static constexpr int kAtOnce = 256;
  ThreadStart places[kAtOnce];

  // nullptr: too many threads are starting at once.
  ThreadStart* take() {
    for (ThreadStart& place : places) {
      uint32_t nobody = 0;
      if (place.taken.load(std::memory_order_relaxed) == 0 &&
          place.taken.compare_exchange_strong(nobody, 1, std::memory_order_acquire))
        return &place;
    }
    return nullptr;
  }
};

}  // namespace malloscope::record
