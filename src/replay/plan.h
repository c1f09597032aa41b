// SPDX-License-Identifier: Apache-2.0
// From a trace to a workload: what each thread of one process did, what has to wait for what, and
// nothing else. How it is decided is told in plan.cc.

#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/error.h"
#include "replay/survey.h"
#include "replay/workload.h"
#include "trace/event_stream.h"

namespace malloscope::replay {

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
