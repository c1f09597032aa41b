// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "cli/commands.h"
#include "output/folded.h"
#include "output/sink.h"

namespace malloscope::cli {

static analyze::Metric metric_named(const std::string& name) {
  using analyze::Metric;
  return name == "allocations" ? Metric::kAllocations
         : name == "allocated" ? Metric::kAllocated
         : name == "live"      ? Metric::kLive
         : name == "temporary" ? Metric::kTemporary
                               : Metric::kPeak;
}

int export_command(const ExportOptions& options) {
  std::signal(SIGPIPE, SIG_IGN);  // A closed pipe is told by write(), with a sentence.
  bool to_stdout = options.output == "-";
  // Before the reading: nobody likes to wait for a refusal.
  if (!to_stdout && !options.force && access(options.output.c_str(), F_OK) == 0)
    return complain(kUsage,
                    fmt::format("{} exists already; --force overwrites it", options.output));

  struct stat input = {}, output = {};
  if (!to_stdout && stat(options.trace.c_str(), &input) == 0 &&
      stat(options.output.c_str(), &output) == 0 && input.st_dev == output.st_dev &&
      input.st_ino == output.st_ino)
    return complain(kUsage, fmt::format("{} is the trace itself; name another file for the stacks",
                                        options.output));

  int exit_code = kOk;
  std::unique_ptr<analyze::Reading> reading = read_trace(options.trace, options.pid, &exit_code);
  if (!reading) return exit_code;

  int fd = STDOUT_FILENO;
  if (!to_stdout) {
    fd = open(options.output.c_str(),
              O_WRONLY | O_CREAT | O_CLOEXEC | (options.force ? O_TRUNC : O_EXCL), 0666);
    if (fd < 0)
      return complain(
          kUsage, fmt::format("{} could not be created: {}", options.output, std::strerror(errno)));
  }
  output::FileSink sink(fd, to_stdout ? "stdout" : options.output);
  output::write_folded(reading.get(), metric_named(options.metric), &sink);
  Result<void> done = sink.finish();
  if (!to_stdout && close(fd) != 0 && done)
    done = fail(fmt::format("{} could not be written to its end: {}", options.output,
                            std::strerror(errno)));
  return done ? kOk : complain(kUnreadable, done.error().sentence);
}

}  // namespace malloscope::cli
