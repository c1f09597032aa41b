// SPDX-License-Identifier: Apache-2.0
// What `replay` and `workload` have in common: from a trace, or a part of it, to a workload.

#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "replay/plan.h"
#include "replay/reader.h"

namespace malloscope::cli {

struct ReplayInput {
  std::string file;  // A trace or a workload.
  std::optional<int> pid;
  std::string from, to;
  std::string threads = "recorded";
  bool anonymize = false;
};
void add_replay_input(CLI::App& app, ReplayInput* input);

// The workload of a trace, written to `output`, or to a file without a name if that is empty; or
// the one that `input` is. What was complained about is in `exit_code`; what the user should know
// is added to `notes`. `process` is whose calls they are, or empty if the file does not say.
std::optional<replay::WorkloadReader> workload_of(const ReplayInput& input,
                                                  const std::string& output, std::string* process,
                                                  std::vector<std::string>* notes, int* exit_code);

}  // namespace malloscope::cli
