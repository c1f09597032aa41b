// SPDX-License-Identifier: Apache-2.0
// How an index (index.h) cuts the time. It is cut at each tenth of a percent: kCuts ticks, which
// are what "41.3%" means as well. A step is the time between two cuts, or the one tick of a cut,
// since an event in that very tick belongs to what begins and to what ends there:
//
//     ticks    ... < cut 0 | cut 0 | between | cut 1 | between | ... | cut 1000 | > cut 1000
//     step           0         1        2        3        4             2001        2002

#pragma once

#include <array>
#include <cstdint>

#include "trace/event_stream.h"

namespace malloscope::analyze {

struct IndexTimes {
  static constexpr uint32_t kCuts = 1001;
  static constexpr uint32_t kSteps = 2 * kCuts + 1;
  // Steps that are also summed up together.
  static constexpr uint32_t kGroupSteps = 64;

  std::array<uint64_t, kCuts> cuts = {};  // Never sinking.
  double ns_per_tick = 1;

  IndexTimes() = default;
  IndexTimes(const trace::Header& header, uint64_t end_tick);
  uint32_t step_of(uint64_t tick) const;
  bool is_cut(uint64_t tick) const { return step_of(tick) % 2 == 1; }
  bool begins_step(uint64_t tick) const { return begin_of(step_of(tick)) == tick; }
  // The first tick of a step.
  uint64_t begin_of(uint32_t step) const {
    if (step == 0) return 0;
    return step % 2 == 1 ? cuts[step / 2] : cuts[step / 2 - 1] + 1;
  }
};

}  // namespace malloscope::analyze
