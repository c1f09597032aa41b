// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <sys/resource.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/output_file.h"
#include "output/json_writer.h"
#include "output/sink.h"
#include "output/words.h"
#include "trace/merge_traces.h"

namespace malloscope::cli {
namespace {

struct MergeWords {
  std::vector<std::string> traces;
  std::string output;
  bool together = false, force = false, json = false;
};

// All inputs are open at once, so that none can change under us.
void allow_many_files() {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

int merge(const MergeWords& words) {
  if (std::string wrong = obstacle(words.output, words.traces, words.force, kTraces);
      !wrong.empty())
    return complain(kUsage, wrong);
  allow_many_files();
  PartialFile partial(words.output);
  int fd = partial.create();
  auto unwritten = [&] {
    return complain(kUnreadable,
                    fmt::format("{} cannot be written: {}", words.output, strerror(errno)));
  };
  if (fd < 0) return unwritten();
  trace::FileWriter file(fd, words.output);
  auto progress = progress_of("merging");
  Result<trace::Merged> merged =
      trace::merge_traces(words.traces, {words.together, progress}, &file);
  if (progress) progress(1);
  Result<void> closed = file.close();
  if (merged && !closed) merged = std::unexpected(closed.error());
  if (!merged)
    return complain(merged.error().usage ? kUsage : kUnreadable, merged.error().sentence);
  if (!partial.keep()) return unwritten();
  if (!merged->incomplete_because.empty())
    complain(kOk, fmt::format("the merged trace is not complete: {}", merged->incomplete_because));

  output::FileSink sink(fileno(stdout), "stdout");
  if (words.json) {
    output::JsonWriter json(&sink);
    json.begin_object();
    json.member("file", words.output);
    json.member("runs", merged->runs);
    json.member("images", merged->images);
    json.member("events", merged->events);
    json.member("complete", merged->incomplete_because.empty());
    json.end();
  } else {
    sink.write(fmt::format("{} holds {}: {}, {}.\n", output::printable(words.output),
                           analyze::count_text(merged->runs, "recording", "recordings"),
                           analyze::count_text(merged->images, "process image", "process images"),
                           analyze::count_text(merged->events, "event", "events")));
  }
  if (Result<void> done = sink.finish(); !done) return complain(kUnreadable, done.error().sentence);
  return kOk;
}

}  // namespace

int main_merge(const Words& words) {
  std::signal(SIGPIPE, SIG_IGN);  // A closed pipe is told by write(), with a sentence.
  MergeWords options;
  CLI::App app(
      "Makes one trace of several: every process of each, so that what is counted adds up "
      "exactly.\n"
      "The recordings follow each other in time, and the peak is the highest of theirs.",
      "malloscope merge");
  app.add_option("traces", options.traces, "The recordings")->required()->type_name("TRACE...");
  app.add_option("-o,--output", options.output, "Trace to write")->required()->type_name("FILE");
  app.add_flag("-f,--force", options.force,
               "Replace the trace if it exists; nothing that is no trace");
  app.add_flag("--together", options.together,
               "All begin at the same moment: what they hold at a time adds up, as does the peak");
  add_json(app, &options.json, "What was merged, as one JSON object");
  if (auto code = parse(app, words,
                        "malloscope merge run1.mscope run2.mscope -o all.mscope\n"
                        "  malloscope merge worker.*.mscope --together -o service.mscope"))
    return *code;
  return merge(options);
}

}  // namespace malloscope::cli
