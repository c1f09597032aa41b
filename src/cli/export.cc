// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "output/folded.h"
#include "output/sink.h"

namespace malloscope::cli {

namespace {

struct ExportOptions {
  std::string trace;
  std::string format;
  std::string metric = "peak";
  std::string output;  // "-": standard output.
  bool force = false;
  std::optional<int> pid;
};

analyze::Metric metric_named(const std::string& name) {
  using analyze::Metric;
  return name == "allocations" ? Metric::kAllocations
         : name == "allocated" ? Metric::kAllocated
         : name == "live"      ? Metric::kLive
         : name == "temporary" ? Metric::kTemporary
                               : Metric::kPeak;
}

int write_export(const ExportOptions& options) {
  std::signal(SIGPIPE, SIG_IGN);  // A closed pipe is told by write(), with a sentence.
  bool to_stdout = options.output == "-";
  struct stat there = {};
  if (options.output.empty()) return complain(kUsage, "-o needs a file name; it was empty");
  if (!to_stdout && stat(options.output.c_str(), &there) == 0 && !S_ISREG(there.st_mode) &&
      !S_ISCHR(there.st_mode))
    return complain(kUsage, fmt::format("{} is not a file; name one, or - for standard output",
                                        options.output));
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
  analyze::Query query;
  query.selection.pid = options.pid;
  std::unique_ptr<analyze::Reading> reading = read_trace(options.trace, query, &exit_code);
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

}  // namespace

int main_export(const Words& words) {
  ExportOptions options;
  CLI::App app("Writes what other tools read. folded: for flamegraph.pl and speedscope.",
               "malloscope export");
  add_trace(app, &options.trace);
  app.add_option("--format", options.format, "folded")
      ->required()
      ->check(one_of({"folded"}))
      ->type_name("FORMAT");
  app.add_option("--metric", options.metric,
                 "allocations, allocated, live, peak or temporary [peak]")
      ->check(one_of({"allocations", "allocated", "live", "peak", "temporary"}))
      ->type_name("METRIC");
  app.add_option("-o,--output", options.output, "File to write; - is standard output")
      ->required()
      ->type_name("FILE");
  app.add_flag("-f,--force", options.force, "Overwrite the file if it exists");
  add_process(app, &options.pid);
  if (auto code = parse(
          app, words, "malloscope export app.mscope --format folded --metric peak -o peak.folded"))
    return *code;
  return write_export(options);
}

}  // namespace malloscope::cli
