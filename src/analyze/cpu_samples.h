// SPDX-License-Identifier: Apache-2.0
// The CPU time of a recording, sample by sample. Samples are among a trace's tables, and each tells
// its time, thread and stack: whatever is asked of them is answered without a look at events.

#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "analyze/accounts.h"
#include "analyze/phases.h"
#include "trace/tables.h"

namespace malloscope::analyze {

// Whether the CPU time was recorded, be it none.
bool has_cpu(const trace::Tables& tables);

class CpuSamples {
 public:
  struct Sample {
    uint64_t tick = 0;
    uint64_t nanoseconds = 0;
    ImageId image = ImageId::kNone;
    StackId stack = StackId::kNone;
    StrandId strand = StrandId::kNone;
  };

  explicit CpuSamples(const trace::Tables& tables);

  // Those of an image in order of time, one image behind the other.
  const std::vector<Sample>& all() const { return samples_; }
  // What their strands mean.
  const PhasePaths& phases() const { return phases_; }

  // Calls visit(slice, nanoseconds) for each slice between two of `cuts` that a sample's time lies
  // in. It was used up to the sample's moment, and since when is not told: we take it that the
  // thread did nothing else, so that no thread is ever busier than one CPU. What would be outside
  // of all slices is in the next one.
  template <typename Visit>
  static void spread(const Sample& sample, std::span<const uint64_t> cuts, double ns_per_tick,
                     Visit&& visit) {
    const size_t last = cuts.size() - 2;
    const auto inside = [&](double tick) {
      return std::clamp(tick, static_cast<double>(cuts.front()), static_cast<double>(cuts.back()));
    };
    const auto ns = static_cast<double>(sample.nanoseconds);
    const double end = inside(static_cast<double>(sample.tick));
    const double begin = inside(static_cast<double>(sample.tick) - ns / ns_per_tick);
    // Slices are with the cut at their end.
    auto behind = std::ranges::lower_bound(cuts, sample.tick) - cuts.begin();
    size_t slice = std::min(behind == 0 ? 0 : static_cast<size_t>(behind) - 1, last);
    double left = ns;
    for (; slice > 0 && begin < static_cast<double>(cuts[slice]); --slice) {
      auto from = static_cast<double>(cuts[slice]);
      double part = std::min(end, static_cast<double>(cuts[slice + 1])) - from;
      double here = std::min(left, ns * (part / (end - begin)));
      visit(slice, here);
      left -= here;
    }
    visit(slice, left);
  }

  static bool is_in(const Window& window, uint64_t tick) {
    return tick <= window.to_tick &&
           (window.from_bytes == Window::kNever ? tick >= window.from_tick
                                                : tick > window.from_tick);
  }

 private:
  std::vector<Sample> samples_;
  PhasePaths phases_;
};

// A row for each stack, told apart by thread and phase as the options say; amounts are CPU time.
std::vector<Row> cpu_rows(const CpuSamples& samples, const trace::Tables& tables,
                          const Selection& selection, const Window& window,
                          const TallyOptions& options);
// Accounts that have these rows and nothing else.
std::unique_ptr<Accounts> cpu_accounts(const CpuSamples& samples, const trace::Tables& tables,
                                       const Selection& selection, const Window& window,
                                       const TallyOptions& options);

}  // namespace malloscope::analyze
