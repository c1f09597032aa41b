// SPDX-License-Identifier: Apache-2.0
// What `replay` and `workload` have in common: from a trace, or a part of it, to a workload.

#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "analyze/heap.h"
#include "replay/plan.h"
#include "replay/reader.h"

namespace malloscope::cli {

struct ReplayInput {
  std::string file;  // A trace or a workload.
  analyze::Selection process;
  std::string from, to;
  std::string threads = "recorded";
  bool anonymize = false;
};
void add_replay_input(CLI::App& app, ReplayInput* input);

// What the calls are of.
struct ReplaySource {
  std::string process;  // "process 4711 (app)"; empty if the file does not say.
  // Of a trace, which can be known again by it; a workload tells nothing of that.
  bool is_trace = false;
  uint64_t bytes = 0, events = 0;
  int64_t started_unix_ns = 0;
  ImageId image = ImageId::kNone;
  int pid = 0;
  std::string allocator;  // That the program was recorded on; empty if the file does not say.
};

// The workload of a trace, written to `output`, or to a file without a name if that is empty; or
// the one that `input` is. What was complained about is in `exit_code`; what the user should know
// is added to `notes`.
std::optional<replay::WorkloadReader> workload_of(const ReplayInput& input,
                                                  const std::string& output, ReplaySource* source,
                                                  std::vector<std::string>* notes, int* exit_code);

}  // namespace malloscope::cli
