// SPDX-License-Identifier: Apache-2.0
#include "analyze/cpu_summary.h"

#include <map>
#include <unordered_map>

#include "analyze/cpu_samples.h"

namespace malloscope::analyze {

CpuSum cpu_sum(const Reading& reading) {
  CpuSum sum;
  for (const trace::Image* image : reading.selected())
    for (const trace::CpuSample& sample : image->cpu)
      if (CpuSamples::is_in(reading.accounts().window(), sample.tick)) {
        sum.nanoseconds += sample.nanoseconds;
        ++sum.samples;
      }
  return sum;
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
