// SPDX-License-Identifier: Apache-2.0
#include "cli/replay_input.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "analyze/heap.h"
#include "analyze/time_point.h"
#include "analyze/usable_size.h"
#include "base/whole_file.h"
#include "cli/arguments.h"
#include "output/words.h"

namespace malloscope::cli {
namespace {

// A file that is gone when nobody has it open; -1 and errno if that cannot be.
int nameless_file() {
  const char* folder = std::getenv("TMPDIR");
  std::string path = folder && *folder ? folder : "/tmp";
  int fd = open(path.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd >= 0) return fd;
  path += "/malloscope-workload-XXXXXX";
  fd = mkostemp(path.data(), O_CLOEXEC);
  if (fd >= 0) unlink(path.c_str());
  return fd;
}

// The peak is that of the image which is replayed.
Result<uint64_t> tick_at(const std::string& text, std::string_view option, const ReplayInput& input,
                         const trace::Tables& tables, ImageId image, uint64_t last_tick) {
  Result<analyze::TimePoint> point = analyze::TimePoint::parse(text, option);
  if (!point) return std::unexpected(point.error());
  uint64_t peak = 0;
  if (point->needs_peak()) {
    analyze::Heap heap;
    Result<trace::Tables> read =
        trace::stream(input.file, &heap, {.progress = progress_of("reading"), .stacks = false});
    if (!read) return std::unexpected(read.error());
    peak = heap.peak(image).tick;
  }
  return analyze::tick_of(*point, tables.header, tables.end_tick.value_or(last_tick), peak);
}

bool is_empty(const replay::FileTail& tail) {
  return std::ranges::all_of(tail.calls, [](uint64_t calls) { return calls == 0; });
}

// What was not taken over, and what was put right: all of it is said.
void add_notes(const replay::FileTail& tail, std::vector<std::string>* notes) {
  using output::count_text;
  auto note = [&](uint64_t count, std::string_view one, std::string_view many,
                  std::string_view what) {
    if (count > 0) notes->push_back(fmt::format("{} {}.", count_text(count, one, many), what));
  };
  note(tail.failed_calls, "call", "calls", "had failed when recorded, and are not replayed");
  note(tail.unknown_frees, "free", "frees", "of blocks from before the recording are not replayed");
  note(tail.mapping_calls, "call", "calls",
       "of mmap, munmap, mremap and brk by the program itself are no part of the heap, and are not "
       "replayed");
  note(tail.inversions, "time", "times",
       "two threads' calls were recorded in an order that cannot have been, which was put right");
  note(tail.missing_frees, "free", "frees",
       "are not in the recording: another block was given out at the address; they are replayed "
       "then");
  note(tail.lost_events, "event", "events", "were lost by the recording, so they are missing here");
}

}  // namespace

void add_replay_input(CLI::App& app, ReplayInput* input) {
  app.add_option("trace", input->file, "A trace (*.mscope), or a workload (*.mwork)")
      ->required()
      ->type_name("TRACE");
  add_process(app, &input->process)
      ->description(
          "The calls of this process; or image:N, as malloscope info numbers them\n"
          "[the image with most calls]");
  app.add_option("--from", input->from,
                 "Only what was called after: 2.5s, 40%, peak. The heap of then is built up first")
      ->type_name("TIME");
  app.add_option("--to", input->to, "Only what was called before")->type_name("TIME");
  app.add_option("--threads", input->threads, "recorded; or 1: all calls by one thread [recorded]")
      ->check(one_of({"recorded", "1"}))
      ->type_name("HOW");
}

std::optional<replay::WorkloadReader> workload_of(const ReplayInput& input,
                                                  const std::string& output, ReplaySource* source,
                                                  std::vector<std::string>* notes, int* exit_code) {
  auto give_up = [&](int code, const std::string& sentence) {
    *exit_code = complain(code, sentence);
    return std::nullopt;
  };
  if (replay::is_workload(input.file)) {
    if (!input.process.is_all() || !input.from.empty() || !input.to.empty() ||
        input.threads != "recorded" || input.anonymize || !output.empty())
      return give_up(kUsage, fmt::format("{} is a workload already: --process, --from, --to, "
                                         "--threads, --anonymize and -o need the trace",
                                         input.file));
    Result<replay::WorkloadReader> reader = replay::WorkloadReader::open(input.file);
    // Nothing in it is trusted before all of it was read.
    Result<void> read = reader ? reader->read([](uint32_t, const replay::Op&) {})
                               : Result<void>(std::unexpected(reader.error()));
    if (!read) return give_up(kUnreadable, read.error().sentence);
    if (is_empty(reader->tail())) return give_up(kUsage, input.file + " has no calls");
    add_notes(reader->tail(), notes);
    return std::move(*reader);
  }

  Result<replay::Survey> survey = replay::survey(input.file, progress_of("reading"));
  if (!survey) return give_up(survey.error().usage ? kUsage : kUnreadable, survey.error().sentence);
  const trace::Tables& tables = survey->tables;
  // Also what is missing in the end may be behind the cut.
  std::string cut =
      tables.complete ? "" : fmt::format("; it is not complete: {}", tables.incomplete_because);
  replay::PlanOptions options;
  options.image =
      survey->busiest([&](const trace::Image& image) { return input.process.contains(image); });
  if (options.image == ImageId::kNone) {
    if (!input.process.is_all())
      return give_up(kUsage, fmt::format("{} is not in {}, or it has called nothing; malloscope "
                                         "info lists the processes and their images{}",
                                         selection_text(input.process), input.file, cut));
    return give_up(kUsage,
                   fmt::format("{} has no calls that could be replayed{}", input.file, cut));
  }
  if (!tables.complete)
    complain(kOk, fmt::format("warning: {} is not complete: {}; what is there is replayed",
                              input.file, tables.incomplete_because));
  const trace::Image& image = tables.image(options.image);
  std::string process =
      fmt::format("process {} ({})", image.pid, output::printable(image.program()));
  *source = {process,
             true,
             tables.file_bytes,
             tables.events,
             tables.header.start_unix_ns,
             options.image,
             image.pid,
             std::string(analyze::allocator_name(analyze::allocator_of(image)))};
  size_t images = 0;
  for (size_t i = 1; i < survey->images.size(); ++i)
    images += survey->images[i].calls > 0 &&
              input.process.contains(tables.image(ImageId{static_cast<uint32_t>(i)}));
  // Before the work, which may take a while.
  if (images > 1)
    complain(kOk, fmt::format("of {} process images, image {}, {}, has most calls and is chosen; "
                              "--process {} chooses another",
                              images, raw(options.image), process,
                              input.process.pid ? "image:N" : "PID or image:N"));
  uint64_t last_tick = 0;
  for (const auto& thread : survey->images[raw(options.image)].threads)
    last_tick = std::max(last_tick, thread.last_tick);
  for (auto [text, option, tick] : {std::tuple(&input.from, "--from", &options.from_tick),
                                    std::tuple(&input.to, "--to", &options.to_tick)}) {
    if (text->empty()) continue;
    Result<uint64_t> found = tick_at(*text, option, input, tables, options.image, last_tick);
    if (!found) return give_up(kUsage, found.error().sentence);
    *tick = *found;
  }
  if (options.from_tick > options.to_tick)
    return give_up(kUsage, fmt::format("--from {} is after --to {}", input.from, input.to));
  // Up to a moment is with it, so from there on is without: each call is in one of the two.
  if (!input.from.empty() && options.from_tick > tables.header.start_tick) ++options.from_tick;
  options.one_thread = input.threads == "1";
  options.anonymize = input.anonymize;

  // Whole at its place, or not at all.
  std::optional<WholeFile> file;
  if (!output.empty()) file.emplace(output);
  int fd = !file ? nameless_file() : file->ok() ? fcntl(file->fd(), F_DUPFD_CLOEXEC, 0) : -1;
  std::string path = output.empty() ? "a temporary file (TMPDIR)" : output;
  if (fd < 0)
    return give_up(kUnreadable, fmt::format("{} cannot be written: {}", path, strerror(errno)));
  int again = fcntl(fd, F_DUPFD_CLOEXEC, 0);  // The planner closes its own.
  Result<replay::FileTail> planned =
      replay::plan(input.file, *survey, options, fd, path, progress_of("planning"));
  Result<replay::WorkloadReader> reader =
      planned ? replay::WorkloadReader::open(fmt::format("/proc/self/fd/{}", again))
              : std::unexpected(planned.error());
  close(again);
  if (!reader) return give_up(reader.error().usage ? kUsage : kUnreadable, reader.error().sentence);
  if (is_empty(reader->tail())) {
    if (input.from.empty() && input.to.empty())
      return give_up(kUsage, fmt::format("{} has no calls that could be replayed", input.file));
    return give_up(kUsage, fmt::format("{} called nothing that could be replayed{}{}", process,
                                       input.from.empty() ? "" : " from " + input.from + " on",
                                       input.to.empty() ? "" : " until " + input.to));
  }
  if (file && !file->finish())
    return give_up(kUnreadable, fmt::format("{} cannot be written: {}", path, strerror(errno)));
  add_notes(reader->tail(), notes);
  return std::move(*reader);
}

}  // namespace malloscope::cli
