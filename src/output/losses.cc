// SPDX-License-Identifier: Apache-2.0
#include "output/losses.h"

#include <fmt/format.h>

#include "output/words.h"

namespace malloscope::output {

std::vector<Loss> losses(const analyze::Reading& reading) {
  const trace::Tables& tables = reading.tables();
  const analyze::Totals totals = reading.accounts().totals();
  uint64_t lost = 0, cut = 0, stopped = 0, not_followed = 0;
  for (const trace::Image* image : reading.selected()) {
    lost += image->lost;
    cut += image->truncated_stacks;
    stopped += image->unwind_failures;
    not_followed += image->not_followed;
  }
  std::vector<Loss> found;
  auto say = [&](bool figures, uint64_t n, std::string_view one, std::string_view many,
                 std::string_view rest) {
    if (n) found.push_back({count_text(n, one, many) + std::string(rest), figures});
  };
  if (!tables.complete)
    found.push_back({"The trace is not complete: " + (tables.incomplete_because.empty()
                                                          ? std::string("its end is missing")
                                                          : tables.incomplete_because),
                     true});
  say(true, lost, "event was", "events were", " lost: the figures are too low by that much");
  say(true, totals.unmatched_frees, "free was", "frees were",
      tables.header.has_free_stacks()
          ? " of what was no live block (malloscope leaks shows where)"
          : " of a block not known to be live: freed twice, older than the recording, or its event "
            "lost (record with --free-stacks to see where)");
  say(true, totals.order_violations, "event came", "events came",
      lost > 0 ? " in an impossible order, since others were lost"
               : " in an impossible order: please report this as a bug");
  say(true, not_followed, "child process", "child processes",
      " could not be followed (malloscope info says which)");
  say(false, cut, "stack is", "stacks are", " cut at the outer end: too deep");
  say(false, stopped, "stack ends", "stacks end", " early, where the unwinder could not go on");
  return found;
}

}  // namespace malloscope::output
