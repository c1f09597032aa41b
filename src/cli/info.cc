// SPDX-License-Identifier: Apache-2.0
#include "output/info.h"

#include <csignal>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "output/json.h"
#include "output/sink.h"

namespace malloscope::cli {

int main_info(const Words& words) {
  std::string trace;
  bool json = false;
  Color color = Color::kAuto;
  CLI::App app("What is in a trace: processes, threads, modules, losses, settings.",
               "malloscope info");
  add_trace(app, &trace);
  add_json(app, &json, "What report --json prints, and threads and modules");
  add_color(app, &color);
  if (auto code = parse(app, words, "malloscope info app.mscope")) return *code;

  std::signal(SIGPIPE, SIG_IGN);  // A closed pipe is told by write(), with a sentence.
  int exit_code = kOk;
  std::unique_ptr<analyze::Reading> reading =
      read_trace(trace, {}, &exit_code, {}, /*says_losses=*/!json);
  if (!reading) return exit_code;
  output::FileSink sink(fileno(stdout), "stdout");
  if (json)
    output::write_info_json(reading.get(), &sink);
  else
    output::write_info(*reading, {wants_color(color, stdout), terminal_width(stdout)}, &sink);
  if (Result<void> done = sink.finish(); !done) return complain(kUnreadable, done.error().sentence);
  return kOk;
}

}  // namespace malloscope::cli
