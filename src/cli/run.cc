// SPDX-License-Identifier: Apache-2.0
// `malloscope run`: record a program, then print the page. The program's own exit
// code is ours, unless the trace could not be written and the program said 0.

#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <cstring>
#include <regex>

#include "cli/commands.h"
#include "collect/launch.h"

namespace malloscope::cli {
namespace {

// Installed, it lies in the library folder; built, beside our own folder.
std::string find_recorder() {
  char self[PATH_MAX];
  ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
  if (n <= 0) {
    // Without /proc, the path that the kernel was given.
    const char* given = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
    if (!given || !realpath(given, self)) return {};
    n = static_cast<ssize_t>(strlen(self));
  }
  std::string folder(self, static_cast<size_t>(n));
  folder.resize(folder.rfind('/'));
  for (const char* place : {"/../lib/malloscope/libmalloscope.so", MSCOPE_RECORDER_FROM_BIN}) {
    std::string candidate = folder + place;
    char real[PATH_MAX];
    if (access(candidate.c_str(), R_OK) == 0 && realpath(candidate.c_str(), real)) return real;
  }
  return {};
}

}  // namespace

// Our own descriptors must not take the numbers of standard ones that are closed. Closed by exec,
// the placeholders leave them closed for the program.
static void keep_standard_descriptors() {
  for (int fd = 0; fd < 3; ++fd)
    if (fcntl(fd, F_GETFD) < 0) open("/dev/null", O_RDWR | O_CLOEXEC);
}

int run_command(const RunOptions& options) {
  keep_standard_descriptors();
  collect::LaunchOptions launch;
  launch.command = options.command;
  launch.output = options.output;
  launch.overwrite = options.force;
  launch.follow = options.follow;
  launch.only = options.only;
  launch.drop_when_full = options.drop_when_full;
  launch.recorder = find_recorder();
  if (launch.recorder.empty())
    return complain(kUsage,
                    "the recorder (libmalloscope.so) is not where it was installed; install "
                    "Malloscope again");
  if (!options.only.empty()) {
    try {
      (void)std::regex(options.only);
    } catch (const std::regex_error&) {
      return complain(kUsage, fmt::format("--only '{}' is not a regular expression", options.only));
    }
  }

  auto result = collect::launch(launch);
  signal(SIGPIPE, SIG_IGN);  // The program has ended; nobody reading must not change its exit code.
  if (!result) return complain(kUsage, result.error().sentence);
  if (!result->cannot_run.empty()) return complain(result->exit_code, result->cannot_run);
  if (!result->obstacle.empty()) {
    complain(0, fmt::format("nothing was recorded: {}", result->obstacle));
    return result->exit_code;
  }
  if (!result->warning.empty()) complain(0, result->warning);
  if (!options.quiet) print_page(result->trace, std::nullopt, stderr, options.color);
  if (result->still_running > 0)
    complain(0,
             fmt::format("{} still running and being recorded; {} is complete when the last ends",
                         result->still_running == 1
                             ? "1 process is"
                             : fmt::format("{} processes are", result->still_running),
                         result->trace));
  if (!result->problem.empty())
    return complain(result->exit_code ? result->exit_code : kUnreadable,
                    fmt::format("the trace is not complete: {}", result->problem));
  return result->exit_code;
}

// Started by a recorder that was preloaded alone (record/own_collector.cc), never by a user.
int collect_command(const std::string& pid) {
  constexpr int kSocket = 3;
  auto done = collect::collect_for(kSocket, atoi(pid.c_str()), find_recorder());
  return done ? kOk : complain(kUnreadable, done.error().sentence);
}

}  // namespace malloscope::cli
