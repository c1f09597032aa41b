// SPDX-License-Identifier: Apache-2.0
// The same figures of many recordings, and whether the newest has grown.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/answer.h"
#include "base/error.h"

namespace malloscope::analyze {

// A recording in a line.
struct Run {
  std::string trace;    // Path.
  std::string program;  // Name of the first program in it.
  int64_t start_unix_ns = 0;
  uint64_t duration_ns = 0;
  uint64_t processes = 0;
  uint64_t allocations = 0;
  uint64_t allocated_bytes = 0;
  uint64_t peak_bytes = 0;
  uint64_t live_bytes = 0;
  uint64_t temporary = 0;
  uint64_t peak_rss_bytes = 0;  // Of the process that had most.
  uint64_t lost = 0;
  bool complete = true;
  uint64_t merged = 0;        // Recordings that it was merged from.
  uint64_t sample_bytes = 0;  // Of --sample; 0: every block was recorded.
};

Result<Run> run_of(const std::string& path);

// The traces of a folder (*.mscope), or the one that is named itself; sorted by name.
Result<std::vector<std::string>> traces_at(const std::string& path);

// Oldest first.
void sort_by_time(std::vector<Run>* runs);

// As on the command line.
std::vector<std::string> history_metrics();

// Of each program, the last run against the median of those before.
struct Growth {
  std::string program;
  uint64_t last = 0;
  double median = 0;
  size_t runs_before = 0;  // 0: nothing to compare with.

  double percent() const;  // Infinite if there was nothing before and there is something now.
};
std::vector<Growth> growth(const std::vector<Run>& runs, std::string_view metric);
// "app: peak is 12.0 MiB, 20.0 % more than the median of 5 runs before (10.0 MiB)".
std::string growth_text(const Growth& growth, std::string_view metric);

Answer history_answer(const std::vector<Run>& runs);

}  // namespace malloscope::analyze
