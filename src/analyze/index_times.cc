// SPDX-License-Identifier: Apache-2.0
#include "analyze/index_times.h"

#include <algorithm>

#include "analyze/time_point.h"

namespace malloscope::analyze {

IndexTimes::IndexTimes(const trace::Header& header, uint64_t end_tick)
    : ns_per_tick(header.ns_per_tick) {
  for (uint32_t i = 0; i < kCuts; ++i) {
    // The very number that TimePoint::parse makes of "41.3%".
    TimePoint point = {TimePoint::Kind::kShare, 0, static_cast<double>(i) / 10 / 100};
    cuts[i] = tick_of(point, header, std::max(end_tick, header.start_tick), 0);
  }
}

uint32_t IndexTimes::step_of(uint64_t tick) const {
  auto cut = std::lower_bound(cuts.begin(), cuts.end(), tick);
  auto before = static_cast<uint32_t>(cut - cuts.begin());  // Cuts below the tick.
  return 2 * before + (cut != cuts.end() && *cut == tick);
}

}  // namespace malloscope::analyze
