// SPDX-License-Identifier: Apache-2.0
#include <csignal>
#include <filesystem>
#include <sstream>

#include "cli/commands.h"
#include "output/json.h"
#include "output/page.h"
#include "output/sink.h"

namespace malloscope::cli {

// What to type to run this very tool: its name if the shell would find it, else its path.
static std::string own_name() {
  namespace fs = std::filesystem;
  std::error_code failed;
  fs::path self = fs::read_symlink("/proc/self/exe", failed);
  if (failed) return "malloscope";
  const char* path = std::getenv("PATH");
  std::istringstream folders(path ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');) {
    fs::path there = fs::path(folder) / "malloscope";
    if (!fs::exists(there, failed)) continue;
    if (fs::equivalent(there, self, failed)) return "malloscope";
    break;  // Another one comes first.
  }
  fs::path from_here = self.lexically_relative(fs::current_path(failed));
  return from_here.empty() || *from_here.begin() == ".." ? self.string() : from_here.string();
}

int print_page(const std::string& trace, std::optional<int> pid, std::FILE* stream, Color color,
               size_t rows) {
  int exit_code = kOk;
  std::unique_ptr<analyze::Reading> reading = read_trace(trace, pid, &exit_code);
  if (!reading) return exit_code;
  std::fflush(stream);
  output::FileSink sink(fileno(stream), stream == stderr ? "stderr" : "stdout");
  output::write_page(reading.get(),
                     {wants_color(color, stream), terminal_width(stream), rows, own_name()}, &sink);
  if (Result<void> done = sink.finish(); !done) return complain(kUnreadable, done.error().sentence);
  return kOk;
}

int report_command(const ReportOptions& options) {
  std::signal(SIGPIPE, SIG_IGN);  // A closed pipe is told by write(), with a sentence.
  if (!options.json)
    return print_page(options.trace, options.pid, stdout, options.color,
                      options.top ? options.top : 5);
  int exit_code = kOk;
  std::unique_ptr<analyze::Reading> reading = read_trace(options.trace, options.pid, &exit_code);
  if (!reading) return exit_code;
  output::FileSink sink(fileno(stdout), "stdout");
  output::write_report_json(reading.get(), options.top, &sink);
  if (Result<void> done = sink.finish(); !done) return complain(kUnreadable, done.error().sentence);
  return kOk;
}

}  // namespace malloscope::cli
