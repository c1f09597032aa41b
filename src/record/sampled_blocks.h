// SPDX-License-Identifier: Apache-2.0
// The live blocks that are in the sample, so that of a free it is known whether anybody cares.
//
// A block has a place in one line of the table, which is a cache line: the one that its address
// falls on. Where a line is full it says so for good, and from then on every free that falls on it
// is told: the reader ignores those that it knows no block of. So nothing is lost, however many
// there are, and no lock is needed.

#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "base/attributes.h"

namespace malloscope::record {

// Lives in zeroed memory that is wiped on fork: what a child inherits is not in its account.
class SampledBlocks {
 public:
  // Before anybody else can know of the block.
  void add(const void* block) {
    Line& line = line_of(block);
    for (std::atomic<uintptr_t>& place : line.blocks) {
      uintptr_t nobody = 0;
      if (place.load(std::memory_order_relaxed) == 0 &&
          place.compare_exchange_strong(nobody, reinterpret_cast<uintptr_t>(block),
                                        std::memory_order_relaxed))
        return;
    }
    line.was_full.store(1, std::memory_order_relaxed);
  }

  // Whether the block may be one. Before anybody else can be given its address.
  MSCOPE_FAST bool take_out(const void* block) {
    Line& line = line_of(block);
    for (std::atomic<uintptr_t>& place : line.blocks)
      if (place.load(std::memory_order_relaxed) == reinterpret_cast<uintptr_t>(block)) {
        place.store(0, std::memory_order_relaxed);
        return true;
      }
    return line.was_full.load(std::memory_order_relaxed) != 0;
  }

 private:
  struct alignas(64) Line {
    std::array<std::atomic<uintptr_t>, 7> blocks;
    std::atomic<uintptr_t> was_full;
  };
  static constexpr unsigned kLinesLog2 = 15;  // 2 MiB, of which only what is used becomes real.

  Line& line_of(const void* block) {
    return lines_[(reinterpret_cast<uintptr_t>(block) >> 4) * 0x9e3779b97f4a7c15 >>
                  (64 - kLinesLog2)];
  }

  std::array<Line, size_t{1} << kLinesLog2> lines_;
};

}  // namespace malloscope::record
