// SPDX-License-Identifier: Apache-2.0
// A strand: a thread of an image while certain phases were open. Blocks, rows and the cells of the
// index know theirs, so that whatever tells threads apart tells phases apart as well. Where a
// program names no phases, strands are threads and have their numbers.
//
//     plain       0 | thread 31                 no phase is open
//     in phases   1 | phases 12 | thread 19     `phases` is a place in Phases::paths()

#pragma once

#include <cstdint>
#include <optional>

#include "base/ids.h"

namespace malloscope::analyze {

enum class StrandId : uint32_t { kNone = 0 };

// Which phases were open, as a number; 0: none.
enum class PhasesId : uint32_t { kNone = 0 };

inline constexpr uint32_t kInPhases = uint32_t{1} << 31;
inline constexpr unsigned kPhaseThreadBits = 19;
inline constexpr uint32_t kMostPhaseThreads = uint32_t{1} << kPhaseThreadBits;
inline constexpr uint32_t kMostPhases = 1 << 12;

constexpr StrandId plain_strand(ThreadId thread) { return StrandId{raw(thread) & ~kInPhases}; }

// Nothing: there is no number for it.
constexpr std::optional<StrandId> strand_of(ThreadId thread, PhasesId phases) {
  if (phases == PhasesId::kNone) return plain_strand(thread);
  if (raw(thread) >= kMostPhaseThreads || raw(phases) >= kMostPhases) return std::nullopt;
  return StrandId{kInPhases | raw(phases) << kPhaseThreadBits | raw(thread)};
}
constexpr ThreadId thread_of(StrandId strand) {
  return ThreadId{raw(strand) & kInPhases ? raw(strand) & (kMostPhaseThreads - 1) : raw(strand)};
}
constexpr PhasesId phases_of(StrandId strand) {
  return PhasesId{raw(strand) & kInPhases ? (raw(strand) & ~kInPhases) >> kPhaseThreadBits : 0};
}
// The same with no thread.
constexpr StrandId without_thread(StrandId strand) {
  return StrandId{raw(strand) & kInPhases ? raw(strand) & ~(kMostPhaseThreads - 1) : 0};
}

}  // namespace malloscope::analyze
