// SPDX-License-Identifier: Apache-2.0
#include "analyze/strand_selector.h"

#include <algorithm>

namespace malloscope::analyze {

bool is_meant(const trace::Thread& thread, const std::vector<Pattern>& patterns) {
  return std::any_of(patterns.begin(), patterns.end(), [&](const Pattern& pattern) {
    return pattern.matches(thread.name) || pattern.matches_whole(std::to_string(thread.tid));
  });
}

bool StrandSelector::selects_thread(ImageId image, ThreadId thread) {
  const std::vector<trace::Thread>& threads = tables_.image(image).threads;
  if (raw(thread) == 0 || raw(thread) > threads.size()) return false;
  if (threads_known_.empty()) threads_known_.resize(tables_.images.size() + 1);
  std::vector<Known>& known = threads_known_[raw(image)];
  if (known.empty()) known.resize(threads.size() + 1);
  Known& here = known[raw(thread)];
  if (here == Known::kNot)
    here = is_meant(threads[raw(thread) - 1], threads_meant_) ? Known::kYes : Known::kNo;
  return here == Known::kYes;
}

bool StrandSelector::selects_phases(PhasesId phases) {
  if (phases_known_.empty()) phases_known_.resize(phases_.paths.size());
  if (raw(phases) >= phases_known_.size()) return false;
  Known& here = phases_known_[raw(phases)];
  if (here == Known::kNot) {
    bool meant = std::ranges::any_of(phases_.paths[raw(phases)], [&](uint32_t name) {
      return name < tables_.mark_names.size() &&
             matches_any(phases_meant_, tables_.mark_names[name]);
    });
    here = meant ? Known::kYes : Known::kNo;
  }
  return here == Known::kYes;
}

}  // namespace malloscope::analyze
