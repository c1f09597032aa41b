// SPDX-License-Identifier: Apache-2.0
#include "analyze/cpu_summary.h"

#include <fmt/format.h>

#include <map>
#include <unordered_map>

#include "analyze/cpu_samples.h"
#include "analyze/numbers.h"

namespace malloscope::analyze {

CpuSum cpu_sum(const Reading& reading) {
  CpuSum sum;
  for (const trace::Image* image : reading.selected())
    for (const trace::CpuSample& sample : image->cpu)
      if (CpuSamples::is_in(reading.accounts().window(), sample.tick)) {
        sum.nanoseconds += sample.nanoseconds;
        ++sum.samples;
        if (sample.of_recorder) sum.recorder_nanoseconds += sample.nanoseconds;
      }
  return sum;
}

std::string recorders_share(const CpuSum& sum) {
  constexpr uint64_t kWorthSaying = 20;  // One part of so many.
  if (sum.recorder_nanoseconds * kWorthSaying < sum.nanoseconds || sum.nanoseconds == 0) return "";
  return fmt::format("about {} of it was spent on recording",
                     percent_text(sum.recorder_nanoseconds, sum.nanoseconds));
}

CpuFunction heaviest_function(Reading* reading) {
  std::map<std::string, uint64_t> functions;
  for (const trace::Image* image : reading->selected()) {
    std::unordered_map<StackId, uint64_t> stacks;
    for (const trace::CpuSample& sample : image->cpu)
      if (CpuSamples::is_in(reading->accounts().window(), sample.tick))
        stacks[sample.stack] += sample.nanoseconds;
    stacks.erase(StackId::kNone);
    for (auto [stack, nanoseconds] : stacks) {
      FrameId site = reading->frames().site(image->id, stack);
      functions[reading->frames().frame(site).function] += nanoseconds;
    }
  }
  CpuFunction heaviest;
  for (const auto& [name, nanoseconds] : functions)
    if (nanoseconds > heaviest.nanoseconds) heaviest = {name, nanoseconds};
  return heaviest;
}

}  // namespace malloscope::analyze
