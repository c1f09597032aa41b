// SPDX-License-Identifier: Apache-2.0
#include "analyze/phase_spans.h"

#include <algorithm>
#include <map>
#include <utility>

namespace malloscope::analyze {

using wire::MarkKind;

std::vector<PhaseSpan> phase_spans(const trace::Tables& tables, uint64_t end_tick) {
  std::vector<PhaseSpan> spans;
  for (const trace::Image& image : tables.images) {
    // Each thread's are in order; one thread may end what another began.
    std::vector<trace::Mark> marks = image.marks;
    std::ranges::stable_sort(marks, {}, &trace::Mark::tick);
    std::map<std::pair<ThreadId, uint32_t>, std::vector<size_t>> open;
    for (const trace::Mark& mark : marks) {
      bool begins = mark.kind == MarkKind::kPhaseBegin || mark.kind == MarkKind::kThreadPhaseBegin;
      bool of_thread =
          mark.kind == MarkKind::kThreadPhaseBegin || mark.kind == MarkKind::kThreadPhaseEnd;
      if (mark.kind == MarkKind::kMark) continue;
      ThreadId thread = of_thread ? mark.thread : ThreadId::kNone;
      std::vector<size_t>& begun = open[{thread, mark.name}];
      if (begins) {
        begun.push_back(spans.size());
        uint64_t last = std::max(image.end_tick.value_or(end_tick), mark.tick);
        spans.push_back({mark.name, image.id, thread, mark.tick, last, false});
      } else if (!begun.empty()) {
        spans[begun.back()].to_tick = mark.tick;
        spans[begun.back()].ended = true;
        begun.pop_back();
      }
    }
  }
  std::ranges::stable_sort(spans, {}, &PhaseSpan::from_tick);
  return spans;
}

}  // namespace malloscope::analyze
