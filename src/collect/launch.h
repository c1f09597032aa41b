// SPDX-License-Identifier: Apache-2.0
// Runs a program under the recorder, as its parent: the program behaves as if it
// had been started by the shell itself.

#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace malloscope::collect {

struct LaunchOptions {
  std::vector<std::string> command;
  std::string
      output;  // Empty: malloscope.<program>.<pid>.mscope, numbered rather than overwritten.
  bool overwrite = false;
  std::string recorder;  // The path of libmalloscope.so, or of the detailed one.
  bool follow = true;
  std::string only;
  bool drop_when_full = false;
  bool free_stacks = false;  // These need the detailed recorder.
  bool time_calls = false;
  unsigned sample_log2 = 0;  // wire/sampling.h
  bool cpu = false;
};

struct LaunchResult {
  int exit_code = 0;       // The program's own; 128 + n for a signal; 126, 127 if it could not run.
  std::string trace;       // The file's path; empty if nothing was recorded.
  std::string problem;     // The recording is not complete because ...; a sentence.
  std::string obstacle;    // Nothing was recorded because ...; a sentence.
  std::string warning;     // Only a part may be recorded because ...; a sentence.
  std::string cannot_run;  // The program could not be run because ...; a sentence.
  std::string cannot_write;    // It was not started because there is no place for the trace.
  uint64_t still_running = 0;  // Descendants that go on being recorded.
};

// An error means that the program was not started: exit code 2.
Result<LaunchResult> launch(const LaunchOptions& options);

// For a program that was started with LD_PRELOAD alone: `fd` is a connection to its recorder.
// Collects until it and its children have ended.
Result<bool> collect_for(int fd, int pid, const std::string& recorder);

}  // namespace malloscope::collect
