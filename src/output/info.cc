// SPDX-License-Identifier: Apache-2.0
// Everything a trace says about itself. Long lists are cut: the JSON has them whole.

#include "output/info.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <map>

#include "analyze/cpu_samples.h"
#include "analyze/cpu_summary.h"
#include "analyze/phase_spans.h"
#include "output/losses.h"
#include "output/style.h"
#include "output/words.h"
#include "symbols/elf_file.h"

namespace malloscope::output {
namespace {

constexpr size_t kMostLines = 40;
// Of a build-id: where there is room, and where its beginning must do.
constexpr size_t kBuildIdWidth = 40, kShortBuildIdWidth = 16;
constexpr size_t kRoomy = 100;

class Info {
 public:
  Info(const analyze::Reading& reading, const InfoTextOptions& options, Sink* sink)
      : reading_(reading),
        tables_(reading.tables()),
        width_(std::max<size_t>(options.width, 80)),
        style_{options.color},
        sink_(*sink) {}

  void write() {
    trace();
    runs();
    settings();
    processes();
    threads();
    phases();
    modules();
    notes();
  }

 private:
  void heading(std::string_view text) { sink_.write("\n" + style_.bold(text) + "\n"); }

  void fact(std::string_view name, const std::string& value) {
    sink_.write(fmt::format("  {:<12} {}\n", name, value));
  }

  void more(size_t all, std::string_view what) {
    if (all > kMostLines)
      sink_.write(fmt::format("  and {} more {}: malloscope info --json\n",
                              grouped(all - kMostLines), what));
  }

  void trace() {
    const trace::Header& header = tables_.header;
    sink_.write(style_.bold(printable(reading_.path())) + "\n");
    fact("state", tables_.complete ? "complete" : style_.warning("not complete"));
    fact("recorded",
         moment(header.start_unix_ns) + ", " + duration_text(tables_.time_ns(reading_.end_tick())));
    fact("format", fmt::format("version {}, by malloscope {}", header.version,
                               printable(header.recorder_version)));
    double per_event = tables_.events ? static_cast<double>(tables_.file_bytes) /
                                            static_cast<double>(tables_.events)
                                      : 0;
    fact("events", fmt::format("{} in {} ({:.2f} bytes each)", grouped(tables_.events),
                               bytes_text(tables_.file_bytes), per_event));
    uint64_t stacks = 0;
    for (const trace::Image& image : tables_.images) stacks += image.stacks.count();
    fact("stacks", grouped(stacks));
    if (analyze::has_cpu(tables_)) {
      analyze::CpuSum sum = analyze::cpu_sum(reading_);
      fact("CPU time", fmt::format("{} in {}", duration_text(sum.nanoseconds),
                                   analyze::count_text(sum.samples, "sample", "samples")));
    }
    std::vector<Loss> missing = losses(reading_);
    bool whole = std::none_of(missing.begin(), missing.end(), [](auto& l) { return l.figures(); });
    if (whole) fact("lost", "nothing");
    for (const Loss& loss : missing) {
      std::string sentence = printable(loss.sentence);
      const char* what = loss.kind == Loss::Kind::kSampled ? "sample"
                         : loss.figures()                  ? "lost"
                                                           : "remark";
      fact(what, loss.figures() ? style_.warning(sentence) : sentence);
    }
  }

  static std::string moment(int64_t unix_ns) {
    std::time_t seconds = static_cast<std::time_t>(unix_ns / 1'000'000'000);
    std::tm local = {};
    if (!localtime_r(&seconds, &local)) return "at an impossible time";
    return fmt::format("{:%Y-%m-%d %H:%M:%S %z}", local);
  }

  // What a merged trace was made of.
  void runs() {
    if (tables_.runs.empty()) return;
    heading(fmt::format("Recordings merged ({})", grouped(tables_.runs.size())));
    sink_.write(style_.dim("         images      start       end  recorded, file\n"));
    size_t lines = 0;
    for (const trace::Run& run : tables_.runs) {
      if (lines++ == kMostLines) break;
      std::string images = run.images == 0   ? "none"
                           : run.images == 1 ? fmt::format("{}", raw(run.first_image))
                                             : fmt::format("{} to {}", raw(run.first_image),
                                                           raw(run.first_image) + run.images - 1);
      sink_.write(fmt::format(
          "  {:>13} {:>10} {:>9}  {}, {}{}\n", images,
          duration_text(tables_.time_ns(run.start_tick)),
          duration_text(tables_.time_ns(run.end_tick)), moment(run.start_unix_ns),
          printable(run.file),
          run.incomplete_because.empty()
              ? ""
              : style_.warning("; not complete: " + printable(run.incomplete_because))));
    }
    more(tables_.runs.size(), "recordings");
  }

  void settings() {
    if (tables_.header.settings.empty()) return;
    heading("Settings");
    for (const std::string& setting : tables_.header.settings)
      sink_.write("  " + printable(setting) + "\n");
  }

  // The images as a tree: a child under its parent.
  void processes() {
    heading(fmt::format("Process images ({})", grouped(tables_.images.size())));
    sink_.write(style_.dim("  image     pid      start       end   peak heap  command, end\n"));
    std::multimap<uint32_t, const trace::Image*> children;
    for (const trace::Image& image : tables_.images)
      children.emplace(raw(image.parent) < raw(image.id) ? raw(image.parent) : 0, &image);
    size_t lines = 0;
    // Not by recursion: a file may claim a chain of any depth.
    std::vector<std::pair<const trace::Image*, size_t>> open;
    auto push_children = [&](uint32_t parent, size_t depth) {
      auto [first, last] = children.equal_range(parent);
      while (last != first) open.emplace_back((--last)->second, depth);
    };
    push_children(0, 0);
    while (!open.empty() && lines++ < kMostLines) {
      auto [image, depth] = open.back();
      open.pop_back();
      push_children(raw(image->id), depth + 1);
      process(*image, std::min<size_t>(depth, width_ < kRoomy ? 3 : 10));
    }
    more(tables_.images.size(), "images");
  }

  void process(const trace::Image& image, size_t depth) {
    std::string command =
        image.command.empty() ? printable(image.executable) : command_text(image.command);
    std::string end = exit_text(image);
    std::string front = fmt::format(
        "  {:>5} {:>7} {:>10} {:>9}  {:>10}  {}", raw(image.id), image.pid,
        duration_text(tables_.time_ns(image.start_tick)),
        image.end_tick ? duration_text(tables_.time_ns(*image.end_tick)) : "-",
        bytes_text(reading_.accounts().peak(image.id).bytes), std::string(depth * 2, ' '));
    constexpr size_t kLeastCommand = 10;
    size_t room = width_ - std::min(width_, front.size());
    end = cut_end(", " + end, room - std::min(room, kLeastCommand));
    command = cut_end(command, std::max(kLeastCommand, room - std::min(room, columns(end))));
    sink_.write(front + command + style_.dim(end) + "\n");
  }

  void threads() {
    size_t all = 0, real = 0, lines = 0;
    for (const trace::Image& image : tables_.images)
      for (const trace::Thread& thread : image.threads) ++all, real += thread.tid != 0;
    heading(fmt::format("Threads ({}{})", grouped(real),
                        all > real ? ", and what they did after their end" : ""));
    for (const trace::Image& image : tables_.images)
      for (const trace::Thread& thread : image.threads)
        if (lines++ < kMostLines)
          sink_.write(thread.tid == 0
                          ? fmt::format("  image {:<5} {:<12} what threads did after their end\n",
                                        raw(image.id), "no thread")
                          : fmt::format("  image {:<5} tid {:<8} {}\n", raw(image.id), thread.tid,
                                        thread.name.empty() ? "-" : printable(thread.name)));
    more(all, "threads");
  }

  void phases() {
    if (tables_.mark_names.empty()) return;
    struct Named {
      uint32_t name = 0;
      uint64_t times = 0, first_tick = 0, ns = 0;
    };
    std::vector<Named> phases;  // As they came.
    std::map<uint32_t, size_t> places;
    uint64_t marks = 0;
    for (const analyze::PhaseSpan& span : analyze::phase_spans(tables_, reading_.end_tick())) {
      auto [place, fresh] = places.try_emplace(span.name, phases.size());
      if (fresh) phases.push_back({span.name, 0, span.from_tick, 0});
      ++phases[place->second].times;
      phases[place->second].ns += tables_.time_ns(span.to_tick) - tables_.time_ns(span.from_tick);
    }
    for (const trace::Image& image : tables_.images)
      for (const trace::Mark& mark : image.marks) marks += mark.kind == wire::MarkKind::kMark;
    heading(fmt::format("Phases ({}{})", grouped(phases.size()),
                        marks > 0 ? "; " + analyze::count_text(marks, "mark", "marks") : ""));
    size_t lines = 0;
    for (const Named& named : phases)
      if (lines++ < kMostLines)
        sink_.write(fmt::format(
            "  from {:>8}  took {:>8}  {}{}\n",
            analyze::duration_text(tables_.time_ns(named.first_tick)),
            analyze::duration_text(named.ns),
            cut_end(printable(tables_.mark_names[named.name]), width_ / 2),
            style_.dim(named.times > 1 ? fmt::format("  {} times", grouped(named.times)) : "")));
    more(phases.size(), "phases");
  }

  void modules() {
    std::map<std::pair<std::string, std::string>, uint64_t> files;  // To the number of images.
    for (const trace::Image& image : tables_.images)
      for (const trace::Module& module : image.modules)
        if (!analyze::is_ours(module.path)) ++files[{module.path, module.build_id}];
    heading(fmt::format("Modules ({})", grouped(files.size())));
    size_t lines = 0, id_width = width_ < kRoomy ? kShortBuildIdWidth : kBuildIdWidth;
    for (const auto& [file, images] : files)
      if (lines++ < kMostLines) {
        std::string state = fate(file.first, file.second);
        std::string id = cut_end(file.second.empty() ? "no build-id" : file.second, id_width);
        size_t used = 2 + id_width + 2 + state.size();
        sink_.write(
            fmt::format("  {:<{}}  {}{}\n", id, id_width,
                        cut_middle(printable(file.first), std::max<size_t>(width_ - used, 20)),
                        style_.dim(state)));
      }
    more(files.size(), "modules");
  }

  // Whether its names can still be looked up there.
  static std::string fate(const std::string& path, const std::string& build_id) {
    if (!path.starts_with('/') || build_id.empty()) return "";
    Result<symbols::ElfFile> file = symbols::ElfFile::open(path);
    if (!file) return "  (gone since)";
    return file->build_id() == build_id ? "" : "  (rebuilt since)";
  }

  void notes() {
    heading("Notes");
    if (tables_.notes.empty()) sink_.write("  None: every process that was to be recorded was.\n");
    for (const trace::Note& note : tables_.notes) sink_.write("  " + printable(note.text) + "\n");
  }

  const analyze::Reading& reading_;
  const trace::Tables& tables_;
  const size_t width_;
  const Style style_;
  Sink& sink_;
};

}  // namespace

void write_info(const analyze::Reading& reading, const InfoTextOptions& options, Sink* sink) {
  Info(reading, options, sink).write();
}

}  // namespace malloscope::output
