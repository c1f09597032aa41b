// SPDX-License-Identifier: Apache-2.0
// `malloscope run`: record a program, then print the page. The program's own exit
// code is ours, unless the trace could not be written and the program said 0.

#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "analyze/numbers.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "collect/launch.h"

namespace malloscope::cli {
namespace {

struct RunOptions {
  std::string output;  // Empty: malloscope.<program>.<pid>.mscope in the current folder.
  bool force = false;  // Replace `output` if it is a trace.
  bool quiet = false;  // No page at the end.
  bool follow = true;  // Record the children too.
  std::string only;    // Regular expression on the program's name; empty: all.
  bool drop_when_full = false;
  bool free_stacks = false;
  bool time_calls = false;
  unsigned sample_log2 = 0;
  bool cpu = false;
  Color color = Color::kAuto;
  std::vector<std::string> command;  // The program and its arguments; never empty.
};

constexpr const char kPlainRecorder[] = "libmalloscope.so";
constexpr const char kDetailedRecorder[] = "libmalloscope-detailed.so";

// Our own descriptors must not take the numbers of standard ones that are closed. Closed by exec,
// the placeholders leave them closed for the program.
void keep_standard_descriptors() {
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
  launch.free_stacks = options.free_stacks;
  launch.time_calls = options.time_calls;
  launch.sample_log2 = options.sample_log2;
  launch.cpu = options.cpu;
  bool detailed =
      options.free_stacks || options.time_calls || options.sample_log2 > 0 || options.cpu;
  const char* recorder = detailed ? kDetailedRecorder : kPlainRecorder;
  launch.recorder = own_file(recorder);
  if (launch.recorder.empty())
    return complain(kUsage, fmt::format("the recorder ({}) is not where it was installed; install "
                                        "Malloscope again",
                                        recorder));
  if (!options.only.empty())
    if (auto only = analyze::Pattern::make(options.only, "--only"); !only)
      return complain(kUsage, only.error().sentence);

  auto result = collect::launch(launch);
  signal(SIGPIPE, SIG_IGN);  // The program has ended; nobody reading must not change its exit code.
  if (!result) return complain(kUsage, result.error().sentence);
  if (!result->cannot_write.empty()) return complain(kUnreadable, result->cannot_write);
  if (!result->cannot_run.empty()) return complain(result->exit_code, result->cannot_run);
  if (!result->obstacle.empty()) {
    complain(0, fmt::format("nothing was recorded: {}", result->obstacle));
    return result->exit_code;
  }
  if (!result->warning.empty()) complain(0, result->warning);
  if (!options.quiet) print_page(result->trace, {}, stderr, options.color);
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

// wire/sampling.h wants a power of two.
Result<unsigned> sample_log2_of(const std::string& text) {
  constexpr uint64_t kLeast = 2, kMost = uint64_t{1} << 30;
  Result<uint64_t> bytes = analyze::bytes_of(text, "--sample");
  if (!bytes) return std::unexpected(bytes.error());
  if (*bytes < kLeast || *bytes > kMost || !std::has_single_bit(*bytes))
    return fail(fmt::format(
        "--sample takes a power of two from 2 bytes to 1G, such as 512K, which {} is not", text));
  return static_cast<unsigned>(std::countr_zero(*bytes));
}

// Our own options end where the program's name is, or at "--".
size_t options_end(CLI::App& app, const Words& words) {
  size_t i = 0;
  while (i < words.size() && words[i].size() > 1 && words[i][0] == '-' && words[i] != "--") {
    const CLI::Option* option = app.get_option_no_throw(words[i]);
    bool takes_next = option && option->get_items_expected_max() > 0;
    i += takes_next ? 2 : 1;
  }
  return std::min(i, words.size());
}

}  // namespace

int main_run(const Words& words) {
  RunOptions options;
  CLI::App app(
      "Records a program and its children; at its end one page says what was found.\n"
      "The program runs as if alone and its exit code is passed on.",
      "malloscope run");
  app.add_option("-o,--output", options.output,
                 "Trace to write [malloscope.<program>.<pid>.mscope]")
      ->type_name("FILE");
  app.add_flag("-f,--force", options.force,
               "Replace the trace if it exists; nothing that is no trace");
  app.add_flag("-q,--quiet", options.quiet,
               "No page at the end, and no names looked up: before the program is\nrebuilt, let a "
               "report or symbolize do that");
  app.add_flag_callback(
      "--no-follow", [&options] { options.follow = false; },
      "Do not record the children of the program");
  app.add_option(
         "--only", options.only,
         "Record only programs whose file, or what they\nare called as, has a name that matches")
      ->type_name("REGEX");
  std::string on_full = "wait";
  app.add_option("--on-full", on_full,
                 "If the collector falls behind: wait for it, or drop and count [wait]")
      ->check(one_of({"wait", "drop"}))
      ->type_name("wait|drop");
  app.add_flag("--free-stacks", options.free_stacks,
               "Record the stacks of frees too: double frees, and who frees what. Recording "
               "costs about half as much again");
  app.add_flag("--time-calls", options.time_calls,
               "Time every call of the allocator, for --metric allocator-time. Costs about 60 ns "
               "a call");
  app.add_flag("--cpu", options.cpu,
               "Record where CPU time is spent too, for --metric cpu, by a signal for each\n"
               "millisecond that a thread computes (docs/cpu.md)");
  std::string sample;
  app.add_option("--sample", sample,
                 "Record only a sample, about one block for each SIZE bytes (a power of two, such\n"
                 "as 512K), large ones all; figures are estimates then (docs/sampling.md)")
      ->type_name("SIZE");
  add_color(app, &options.color);
  Words only_for_help;
  app.add_option("program", only_for_help, "The program and its arguments; -- may stand before it");

  size_t end = options_end(app, words);
  Words own(words.begin(), words.begin() + static_cast<ptrdiff_t>(end));
  if (auto code = parse(app, own, "malloscope run -o app.mscope ./app --its-own-option"))
    return *code;
  if (end < words.size() && words[end] == "--") ++end;
  options.command.assign(words.begin() + static_cast<ptrdiff_t>(end), words.end());
  options.drop_when_full = on_full == "drop";
  if (app.count("--sample") > 0) {
    Result<unsigned> log2 = sample_log2_of(sample);
    if (!log2) return complain(kUsage, log2.error().sentence);
    if (options.time_calls)
      return complain(kUsage,
                      "--sample and --time-calls do not go together: calls that are not in the "
                      "sample have no time");
    options.sample_log2 = *log2;
  }
  if (app.count("--output") > 0 && options.output.empty())
    return complain(kUsage, "-o needs a file name; it was empty");
  if (options.output == "-")
    return complain(kUsage, "a trace cannot go to standard output; name a file with -o");
  if (options.command.empty() || options.command[0].empty())
    return complain(kUsage, "no program to run (see malloscope run --help)");
  return run_command(options);
}

static constexpr int kSocket = 3;

// Started by a recorder that was preloaded alone (record/own_collector.cc), never by a user.
bool is_started_by_recorder() {
  int type = 0;
  socklen_t length = sizeof type;
  return getsockopt(kSocket, SOL_SOCKET, SO_TYPE, &type, &length) == 0 && type == SOCK_SEQPACKET;
}
int collect_command(const std::string& pid) {
  auto done = collect::collect_for(kSocket, atoi(pid.c_str()), own_file(kPlainRecorder));
  return done ? kOk : complain(kUnreadable, done.error().sentence);
}

}  // namespace malloscope::cli
