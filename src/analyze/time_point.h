// SPDX-License-Identifier: Apache-2.0
// A moment of a recording as a user names it: "2.5s", "300ms", "40%", "peak", "end".

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "trace/tables.h"

namespace malloscope::analyze {

struct TimePoint {
  enum class Kind { kStart, kNs, kShare, kPeak, kEnd };
  Kind kind = Kind::kStart;
  uint64_t ns = 0;     // kNs: since the recording began.
  double share = 0.0;  // kShare: of the whole recording, 0 to 1.

  // `option` is what the user typed it for, such as "--from".
  static Result<TimePoint> parse(std::string_view text, std::string_view option);

  bool needs_end() const { return kind == Kind::kShare || kind == Kind::kEnd; }
  bool needs_peak() const { return kind == Kind::kPeak; }
};

// `end_tick` and `peak_tick` matter only to points that need them.
uint64_t tick_of(const TimePoint& point, const trace::Header& header, uint64_t end_tick,
                 uint64_t peak_tick);

}  // namespace malloscope::analyze
