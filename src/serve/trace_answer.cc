// SPDX-License-Identifier: Apache-2.0
// api/trace: what the page begins with. The first thing that a reader sees is the answer in words,
// each line with the view that proves it.

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "analyze/cpu_samples.h"
#include "analyze/cpu_summary.h"
#include "analyze/numbers.h"
#include "analyze/view.h"
#include "output/losses.h"
#include "output/words.h"
#include "serve/answers.h"
#include "serve/names.h"
#include "symbols/readable_name.h"

namespace malloscope::serve {
namespace {

using analyze::bytes_text;
using analyze::count_text;
using analyze::duration_text;
using analyze::Explorer;
using analyze::Metric;
using analyze::percent_text;
using Layout = output::JsonWriter::Layout;

// A sentence and what to set of the page's state to see why.
struct Line {
  std::string text;
  std::vector<std::pair<std::string, std::string>> to;
};

class Overview {
 public:
  explicit Overview(Explorer* explorer)
      : explorer_(*explorer),
        reading_(explorer->reading()),
        tables_(reading_.tables()),
        totals_(reading_.accounts().totals()),
        peak_(reading_.accounts().peak()) {}

  std::vector<Line> lines() {
    if (totals_.allocations > 0) blocks();
    if (analyze::has_cpu(tables_)) cpu();
    return std::move(lines_);
  }

 private:
  void blocks() {
    std::string lasted = duration_text(tables_.time_ns(reading_.end_tick()));
    say(fmt::format("The heap was highest, {}, {} after the recording began (of {}).",
                    bytes_text(peak_.bytes), duration_text(tables_.time_ns(peak_.tick)), lasted),
        {{"view", "peak"}, {"metric", "peak"}});
    heaviest(Metric::kPeak, peak_.bytes, "of the peak");
    std::string calls = count_text(totals_.allocations, "allocation", "allocations");
    if (totals_.reallocations > 0)
      calls += " and " + count_text(totals_.reallocations, "reallocation", "reallocations");
    say(fmt::format("{} were allocated in all, by {}.", bytes_text(totals_.allocated_bytes), calls),
        {{"view", "flame"}, {"metric", "allocated"}});
    heaviest(Metric::kAllocated, totals_.allocated_bytes, "of all bytes allocated");
    if (totals_.live_blocks == 0)
      say("Every block was freed.", {{"view", "leaks"}});
    else
      say(fmt::format("{} in {} were still live at the {}.", bytes_text(totals_.live_bytes),
                      count_text(totals_.live_blocks, "block", "blocks"),
                      tables_.images.size() > 1 ? "ends of their processes" : "end"),
          {{"view", "sites"}, {"metric", "live"}});
    phases();
    if (totals_.temporary > totals_.allocations / 20)
      say(fmt::format("{} of the allocations were temporary: freed before their thread's next one.",
                      percent_text(totals_.temporary, totals_.allocations)),
          {{"view", "sites"}, {"metric", "temporary"}});
    auto largest = std::ranges::max_element(tables_.images, {}, &trace::Image::peak_rss_bytes);
    if (largest != tables_.images.end() && largest->peak_rss_bytes > 0)
      say(fmt::format("{} were resident at most{}{}.", bytes_text(largest->peak_rss_bytes),
                      tables_.images.size() > 1 ? " in one process" : "",
                      largest->recorder_rss_bytes > 0  // Not known of a trace that was cut.
                          ? fmt::format(", of which up to {} were the recorder's own",
                                        bytes_text(largest->recorder_rss_bytes))
                          : ""),
          {{"view", "timeline"}});
    if (totals_.mappings.mapped_bytes > 0)
      say(fmt::format("{} were mapped by all of the program's own mmap calls together, {} unmapped "
                      "again; that is not part of the heap figures.",
                      bytes_text(totals_.mappings.mapped_bytes),
                      bytes_text(totals_.mappings.unmapped_bytes)),
          {{"view", "more"}, {"answer", "mappings"}});
  }

  void cpu() {
    analyze::CpuSum sum = analyze::cpu_sum(reading_);
    analyze::CpuFunction most = analyze::heaviest_function(&reading_);
    std::string share = analyze::recorders_share(sum);
    say(fmt::format("{} of CPU time were used{}{}.", duration_text(sum.nanoseconds),
                    most.name.empty()
                        ? ""
                        : fmt::format(", most in {} ({})", symbols::short_name(most.name),
                                      percent_text(most.nanoseconds, sum.nanoseconds)),
                    share.empty() ? "" : "; " + share),
        {{"view", "flame"}, {"metric", "cpu"}});
  }

  void say(std::string text, std::vector<std::pair<std::string, std::string>> to) {
    lines_.push_back({std::move(text), std::move(to)});
  }

  // What the view of them says, if the program names any.
  void phases() {
    if (tables_.mark_names.empty()) return;
    analyze::Query query;
    std::unique_ptr<analyze::View> view = analyze::find_view("phases")->make(query, {});
    view->prepare(&query);
    explorer_.with_view(view.get(), {}, query, [&](analyze::Reading* reading) {
      say(view->answer(reading, query).headline + ".", {{"view", "phases"}});
    });
  }

  // Who has most of it, if anybody stands out.
  void heaviest(Metric metric, uint64_t whole, std::string_view of_what) {
    auto sites = analyze::heaviest(reading_.sites(), reading_.frames(), metric, 1);
    if (sites.empty() || whole == 0) return;
    uint64_t amount = value(sites[0]->amounts, metric);
    if (amount < whole / 10) return;
    const analyze::Frame& frame = reading_.frames().frame(sites[0]->frame);
    std::string place;
    if (!frame.file.empty())
      place = fmt::format(" ({}:{})", std::filesystem::path(frame.file).filename().string(),
                          frame.line);
    say(fmt::format("{} {} come from {}{}.", percent_text(amount, whole), of_what,
                    symbols::short_name(frame.function), place),
        {{"view", "sites"}, {"metric", std::string(analyze::metric_name(metric))}});
  }

  Explorer& explorer_;
  analyze::Reading& reading_;
  const trace::Tables& tables_;
  const analyze::Totals totals_;
  const analyze::Peak peak_;
  std::vector<Line> lines_;
};

void write_warning(std::string_view kind, std::string_view text, output::JsonWriter* json) {
  json->begin_object(Layout::kLine);
  json->member("kind", kind);
  json->member("text", text);
  json->end();
}

void write_warnings(analyze::Reading& reading, output::JsonWriter* json) {
  const trace::Tables& tables = reading.tables();
  json->key("warnings").begin_array();
  for (const output::Loss& loss : output::losses(reading))
    write_warning(loss.kind == output::Loss::Kind::kCut       ? "cut"
                  : loss.kind == output::Loss::Kind::kSampled ? "sampled"
                                                              : "lossy",
                  loss.sentence + ".", json);
  if (reading.accounts().totals().allocations == 0)
    write_warning(
        "empty", tables.images.empty() ? "No process was recorded." : "No allocation was recorded.",
        json);
  if (!reading.accounts().phases().complete)
    write_warning("other", fmt::format("Not all is known of phases: {}.", analyze::kPhasesNotTold),
                  json);
  // First those that most of the figures are of.
  std::vector<std::string> names = output::remarks_on_names(&reading);
  for (std::string& sentence : reading.missing_names())
    if (std::ranges::find(names, sentence) == names.end()) names.push_back(std::move(sentence));
  for (const std::string& sentence : names) write_warning("names", sentence, json);
  for (const trace::Note& note : tables.notes) write_warning("other", note.text, json);
  json->end();
}

void write_processes(analyze::Reading& reading, output::JsonWriter* json) {
  const trace::Tables& tables = reading.tables();
  json->key("processes").begin_array();
  for (const trace::Image& image : tables.images) {
    analyze::Totals totals = reading.accounts().totals(image.id);
    json->begin_object(Layout::kLine);
    json->member("pid", image.pid);
    json->member("program", image.program());
    json->member("command", output::command_text(image.command));
    json->member("start_ns", tables.time_ns(image.start_tick));
    json->key("end_ns");
    image.end_tick ? json->value(tables.time_ns(*image.end_tick)) : json->null();
    json->member("end", output::exit_text(image));
    json->member("peak_bytes", reading.accounts().peak(image.id).bytes);
    json->member("live_bytes", totals.live_bytes);
    json->member("allocated_bytes", totals.allocated_bytes);
    json->member("allocations", totals.allocations);
    json->member("threads", std::ranges::count_if(image.threads, &trace::Thread::tid));
    json->end();
  }
  json->end();
  constexpr size_t kMostThreads = 1'000;
  json->key("threads").begin_array();
  size_t listed = 0;
  for (const trace::Image& image : tables.images)
    for (const trace::Thread& thread : image.threads) {
      if (thread.tid == 0 || ++listed > kMostThreads) continue;
      json->begin_object(Layout::kLine);
      json->member("pid", image.pid);
      json->member("tid", thread.tid);
      json->member("name", thread.name);
      json->end();
    }
  json->end();
  json->member("threads_left_out", listed > kMostThreads ? listed - kMostThreads : 0);
  std::set<std::string> modules;
  for (const trace::Image& image : tables.images)
    for (const trace::Module& module : image.modules)
      if (!analyze::is_ours(module.path)) modules.insert(module.path);
  json->key("modules").begin_array();
  for (const std::string& module : modules) json->value(module);
  json->end();
}

}  // namespace

void write_trace_members(const Context& context, output::JsonWriter* json) {
  Explorer& explorer = context.explorer;
  analyze::Reading& reading = explorer.reading();
  const trace::Tables& tables = reading.tables();
  const trace::Image* first = tables.images.empty() ? nullptr : &tables.images.front();
  json->member("command", !first                   ? ""
                          : first->command.empty() ? first->executable
                                                   : output::command_text(first->command));
  json->member("started_unix_ns", tables.header.start_unix_ns);
  json->member("duration_ns", tables.time_ns(reading.end_tick()));
  json->member("complete", tables.complete);
  json->member("events", tables.events);
  json->member("trace_bytes", tables.file_bytes);
  analyze::Totals totals = reading.accounts().totals();
  analyze::Peak peak = reading.accounts().peak();
  json->key("totals").begin_object(Layout::kLine);
  json->member("allocations", totals.allocations);
  json->member("reallocations", totals.reallocations);
  json->member("frees", totals.frees);
  json->member("allocated_bytes", totals.allocated_bytes);
  json->member("freed_bytes", totals.freed_bytes);
  json->member("live_bytes", totals.live_bytes);
  json->member("live_blocks", totals.live_blocks);
  json->member("peak_bytes", peak.bytes);
  json->member("peak_time_ns", tables.time_ns(peak.tick));
  json->member("temporary", totals.temporary);
  json->end();
  uint64_t peak_rss = 0;
  for (const trace::Image& image : tables.images)
    peak_rss = std::max(peak_rss, image.peak_rss_bytes);
  json->member("peak_rss_bytes", peak_rss);
  json->key("cuts_ns").begin_array(Layout::kLine);
  if (explorer.index())
    for (uint64_t cut : explorer.index()->facts().times.cuts) json->value(tables.time_ns(cut));
  json->end();
  write_processes(reading, json);
  uint64_t stacks = 0;
  for (const trace::Image& image : tables.images) stacks += image.stacks.count();
  json->member("stacks", stacks);
  json->key("metrics").begin_array(Layout::kLine);
  for (const auto& [name, metric] : analyze::metrics())
    if (recorded(metric, reading)) json->value(name);
  json->value("leaked");
  json->end();
  json->key("metric_help").begin_object();
  for (const auto& [name, metric] : analyze::metrics())
    json->member(name, analyze::metric_help(metric));
  json->member("leaked", "bytes allocated in the range and still live at its end");
  json->end();
  json->key("overview").begin_array();
  for (const Line& line : Overview(&explorer).lines()) {
    json->begin_object(Layout::kLine);
    json->member("text", line.text);
    json->key("to").begin_object();
    for (const auto& [key, value] : line.to) json->member(key, value);
    json->end();
    json->end();
  }
  json->end();
  write_warnings(reading, json);
  write_phase_members(reading, json);
  json->key("has").begin_object(Layout::kLine);
  json->member("replay", has_replay(context.path));
  json->member("access", false);
  json->member("source", !context.source_folders.empty());
  json->member("free_stacks", tables.header.has_free_stacks());
  json->member("call_times", tables.header.has_call_times());
  json->member("cpu", analyze::has_cpu(tables));
  json->end();
}

}  // namespace malloscope::serve
