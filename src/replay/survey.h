// SPDX-License-Identifier: Apache-2.0
// What has to be known of a trace before it can be planned: a first pass.

#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "trace/event_stream.h"

namespace malloscope::replay {

struct Survey {
  struct ThreadSpan {
    uint64_t first_tick = UINT64_MAX;
    uint64_t last_tick = 0;
  };
  struct ImageSpan {
    uint64_t calls = 0;               // Of the heap.
    std::vector<ThreadSpan> threads;  // By id.
  };
  trace::Tables tables;
  std::vector<ImageSpan> images;  // By id.

  void add(std::span<const wire::Event> events);
  // The image with most calls, of those that are wanted; kNone if there is none.
  ImageId busiest(const std::function<bool(const trace::Image&)>& wanted) const;
};
using Progress = std::function<void(double)>;
Result<Survey> survey(const std::string& trace, Progress progress = {});

}  // namespace malloscope::replay
