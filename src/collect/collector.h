// SPDX-License-Identifier: Apache-2.0
// The collector: beside the recorded processes, outside them, until the last of
// them has ended.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collect/session.h"
#include "trace/file_writer.h"

namespace malloscope::collect {

// What launcher and collector say to each other, over a socket pair.
struct LauncherMessage {
  enum Kind : uint32_t {
    kReady,         // Collector: the program may start.
    kExited,        // Launcher: the program has ended, with this status.
    kFinished,      // Collector: the file is complete, or as complete as it gets.
    kStillRunning,  // Collector: `number` descendants are alive; it goes on without the launcher.
  };
  Kind kind = kReady;
  int32_t status = 0;  // kExited: as from wait().
  uint64_t max_rss_bytes = 0;
  uint64_t number = 0;
  char text[512] = {};  // kFinished: what went wrong, or empty.
};

struct CollectorOptions {
  int launched_pid = 0;
  std::vector<std::string> command;  // Of the launched program.
  std::vector<std::string> settings;
  std::string only;  // A regular expression on program names; empty: all.
  bool follow = true;
};

// Runs until everything is recorded. `launcher_fd` is this end of the socket pair, or -1
// without a launcher; `first_fd` then is a connection on which the first process waits.
void collect(Session* session, trace::FileWriter* file, int launcher_fd,
             const CollectorOptions& options, int first_fd = -1);

}  // namespace malloscope::collect
