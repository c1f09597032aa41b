// SPDX-License-Identifier: Apache-2.0
// Which lane touched a block last. The stamps of two events of one block must be
// in the order of the events. If both are in one lane they are, whatever the
// stamps; only where a block goes from one thread to another must the clock be
// read in order with the program's loads, which costs five times a plain read.
//
// A place of the table holds the last event of any block that falls on it, so a
// block is either found with its very last event or not found at all: whoever
// hands a block over has written here before, and the reader sees that or later.

#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "base/attributes.h"

namespace malloscope::record {

// Lives in zeroed memory that is wiped on fork.
class LastTouch {
 public:
  enum How : uint64_t { kMade = 0, kFreed = 1 };

  // Writes down that `lane` makes or frees the block. True if what was done to the block before
  // was done in the same lane, or before there were threads.
  MSCOPE_FAST bool same_lane(uintptr_t block, uint32_t lane, How how) {
    std::atomic<uint64_t>& last = last_[place_of(block)];
    uint64_t now = block << kLaneBits | uint64_t{lane} << 1 | how;
    uint64_t before = last.load(std::memory_order_relaxed);
    last.store(now, std::memory_order_relaxed);
    bool opposite = before == (now ^ kFreed);
    return (opposite || before == 0) && block >> (64 - kLaneBits) == 0;
  }

 private:
  static constexpr int kLaneBits = 16;
  static constexpr uintptr_t kPlaces = 1 << 16;
  // Neighbours share a cache line; equal offsets in different arenas do not share a place.
  static uintptr_t place_of(uintptr_t block) {
    constexpr uintptr_t kScatter = 40503;
    return ((block >> 5) + (block >> 21) * kScatter) % kPlaces;
  }

  std::array<std::atomic<uint64_t>, kPlaces> last_;
};

}  // namespace malloscope::record
