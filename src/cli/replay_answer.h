// SPDX-License-Identifier: Apache-2.0
// What a replay found, for people and for programs.

#pragma once

#include <string>
#include <vector>

#include "analyze/answer.h"
#include "replay/compare.h"

namespace malloscope::cli {

struct ReplayReport {
  std::string file;
  std::string process;  // Whose calls they are; empty if nobody knows.
  const replay::WorkloadReader* workload = nullptr;
  const std::vector<replay::Contender>* contenders = nullptr;
  std::string touch, pace;
  uint64_t interval_ms = 0;
  bool verify = false;
  bool trims = false;  // --trim-every.
  std::vector<std::string> notes;
};

analyze::Answer replay_text(const ReplayReport& report);
// A row for each run, and for each moment at which its memory was looked at.
analyze::Answer replay_json(const ReplayReport& report);

}  // namespace malloscope::cli
