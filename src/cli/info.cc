// SPDX-License-Identifier: Apache-2.0
#include "output/info.h"

#include <csignal>

#include "cli/commands.h"
#include "output/json.h"
#include "output/sink.h"

namespace malloscope::cli {

int info_command(const InfoOptions& options) {
  std::signal(SIGPIPE, SIG_IGN);  // A closed pipe is told by write(), with a sentence.
  int exit_code = kOk;
  std::unique_ptr<analyze::Reading> reading = read_trace(options.trace, std::nullopt, &exit_code);
  if (!reading) return exit_code;
  output::FileSink sink(fileno(stdout), "stdout");
  if (options.json)
    output::write_info_json(reading.get(), &sink);
  else
    output::write_info(*reading, {wants_color(options.color, stdout), terminal_width(stdout)},
                       &sink);
  if (Result<void> done = sink.finish(); !done) return complain(kUnreadable, done.error().sentence);
  return kOk;
}

}  // namespace malloscope::cli
