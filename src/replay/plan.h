// SPDX-License-Identifier: Apache-2.0
// From a trace to a workload: what each thread of one process did, what has to wait for what, and
// nothing else. How it is decided is told in plan.cc.

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "replay/workload.h"
#include "trace/event_stream.h"

namespace malloscope::replay {

// What has to be known of a trace before it can be planned: a first pass.
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
  // The image with most calls, of those of that process if one is given; kNone if there is none.
  ImageId busiest(std::optional<int> pid) const;
};
using Progress = std::function<void(double)>;
Result<Survey> survey(const std::string& trace, Progress progress = {});

struct PlanOptions {
  ImageId image = ImageId::kNone;
  // Only what was called in between, on the heap as it was at the first.
  uint64_t from_tick = 0;
  uint64_t to_tick = UINT64_MAX;
  bool one_thread = false;  // All calls by one thread, in the order in which they happened.
  // Sizes and times are made coarse, so that they give away less of the program.
  bool anonymize = false;
};

// Told of a trace, it writes the workload to `fd`, which it closes; `path` is for messages.
class Planner : public trace::Listener {
 public:
  virtual Result<FileTail> finish() = 0;
};
std::unique_ptr<Planner> planner(const Survey& survey, const PlanOptions& options, int fd,
                                 const std::string& path);
Result<FileTail> plan(const std::string& trace, const Survey& survey, const PlanOptions& options,
                      int fd, const std::string& path, Progress progress = {});

// What anonymizing makes of a size: never smaller, and at most an eighth more above 128 bytes.
uint64_t coarse_size(uint64_t size);

}  // namespace malloscope::replay
