// SPDX-License-Identifier: Apache-2.0
#include "output/losses.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

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
  using Kind = Loss::Kind;
  auto say = [&](Kind kind, uint64_t n, std::string_view one, std::string_view many,
                 std::string_view rest) {
    if (n) found.push_back({count_text(n, one, many) + std::string(rest), kind});
  };
  if (!tables.complete)
    found.push_back({"The trace is not complete: " + (tables.incomplete_because.empty()
                                                          ? std::string("its end is missing")
                                                          : tables.incomplete_because),
                     Kind::kCut});
  if (tables.header.is_sampled()) found.push_back({reading.sample_sentence(), Kind::kSampled});
  say(Kind::kLost, lost, "event was", "events were",
      tables.header.is_sampled()
          ? " lost, of a sample in which each stands for others: the figures are off by that"
          : " lost: the figures are too low by that much");
  say(Kind::kLost, totals.unmatched_frees, "free was", "frees were",
      tables.header.has_free_stacks()
          ? " of what was no live block (malloscope leaks shows where)"
          : " of a block not known to be live: freed twice, older than the recording, or its event "
            "lost (record with --free-stacks to see where)");
  say(Kind::kLost, totals.order_violations, "event came", "events came",
      lost > 0 ? " in an impossible order, since others were lost"
               : " in an impossible order: please report this as a bug");
  say(Kind::kLost, not_followed, "child process", "child processes",
      " could not be followed (malloscope info says which)");
  say(Kind::kStacks, cut, "stack is", "stacks are", " cut at the outer end: too deep");
  say(Kind::kStacks, stopped, "stack ends", "stacks end",
      " early, where the unwinder could not go on");
  return found;
}

std::vector<std::string> remarks_on_names(analyze::Reading* reading) {
  using analyze::Metric;
  constexpr size_t kMost = 3;
  const analyze::Totals totals = reading->accounts().totals();
  const std::pair<Metric, uint64_t> wholes[] = {
      {Metric::kPeak, reading->accounts().peak().bytes},
      {Metric::kLive, totals.live_bytes},
      {Metric::kCalls, totals.allocations + totals.reallocations},
      {Metric::kAllocated, totals.allocated_bytes}};
  std::set<std::string> asked;  // Two modules may be one file, or have one name.
  std::vector<std::string> sentences;
  for (auto [metric, whole] : wholes) {
    const std::vector<analyze::Site>& sites = reading->sites();
    for (const analyze::Site* site : heaviest(sites, reading->frames(), metric, 10)) {
      const std::string& module = reading->frames().frame(site->frame).module;
      if (sentences.size() == kMost || analyze::value(site->amounts, metric) < whole / 10 ||
          !asked.insert(module).second)
        continue;
      std::string why = reading->remark(module);
      if (!why.empty() && std::ranges::find(sentences, why) == sentences.end())
        sentences.push_back(std::move(why));
    }
  }
  return sentences;
}

}  // namespace malloscope::output
