// SPDX-License-Identifier: Apache-2.0
// What a replay found, for people and for programs.

#pragma once

#include <string>
#include <vector>

#include "analyze/answer.h"
#include "cli/replay_input.h"
#include "replay/compare.h"

namespace malloscope::cli {

// Of the file that the results are kept in (docs/replay.md); the version is that of its fields.
inline constexpr const char* kReplayFormat = "malloscope-replay";
inline constexpr uint64_t kReplayVersion = 1;

struct ReplayReport {
  ReplayInput input;
  ReplaySource source;
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
