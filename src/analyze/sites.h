// SPDX-License-Identifier: Apache-2.0
// Which code to blame, heaviest first.

#pragma once

#include <cstdint>
#include <vector>

#include "analyze/accounts.h"
#include "analyze/frames.h"

namespace malloscope::analyze {

enum class Metric {
  kAllocations,
  kAllocated,
  kLive,
  kPeak,
  kTemporary,
  kCalls,
  kLifetime,
  kOverhead,
  kAllocatorTime,
  kCpu
};

// kCalls: allocations and reallocations. kLifetime, kOverhead, kAllocatorTime: only of amounts that
// Reading::for_each_row gave. kCpu: of readings that were asked for it (TallyOptions::cpu), and of
// an Explorer's.
uint64_t value(const Amounts& amounts, Metric metric);

// All stacks, of all selected images, that blame the same frame.
struct Site {
  FrameId frame = {};
  Amounts amounts;
  uint64_t stacks = 0;
  // The heaviest of them, by its share of the peak, then by allocated bytes.
  ImageId image = ImageId::kNone;
  StackId stack = StackId::kNone;
};

// Heaviest first, by share of the peak, then by allocated bytes, then by calls.
std::vector<Site> sites(const Accounts& accounts, FrameTable* frames);

// The (at most) `most` heaviest by a metric, those with 0 left out; pointers into `sites`.
std::vector<const Site*> heaviest(const std::vector<Site>& sites, const FrameTable& frames,
                                  Metric metric, size_t most);

}  // namespace malloscope::analyze
