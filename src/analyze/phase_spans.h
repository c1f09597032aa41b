// SPDX-License-Identifier: Apache-2.0
// The phases of a recording as spans of time: each from its begin to the end of the same name.

#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "trace/tables.h"

namespace malloscope::analyze {

struct PhaseSpan {
  uint32_t name = 0;  // In Tables::mark_names.
  ImageId image = ImageId::kNone;
  ThreadId thread = ThreadId::kNone;  // kNone: of the whole process.
  uint64_t from_tick = 0, to_tick = 0;
  bool ended = true;  // False: it was open when the process or the recording ended.
};

// By their begins. `end_tick`: when those end that nobody ended, if not with their process.
std::vector<PhaseSpan> phase_spans(const trace::Tables& tables, uint64_t end_tick);

}  // namespace malloscope::analyze
