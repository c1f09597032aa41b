// SPDX-License-Identifier: Apache-2.0
// Keys are promises: they may be added but never renamed, and a change of meaning
// raises kJsonSchema. `info` is a superset of `report`.

#include "output/json.h"

#include <algorithm>
#include <set>

#include "analyze/cpu_samples.h"
#include "analyze/cpu_summary.h"
#include "analyze/phase_spans.h"
#include "output/json_writer.h"
#include "output/losses.h"
#include "trace/event_stream.h"

namespace malloscope::output {
namespace {

using Layout = JsonWriter::Layout;

void write_optional_text(JsonWriter* json, std::string_view name, const std::string& text) {
  json->key(name);
  text.empty() ? json->null() : json->value(text);
}

void write_optional_time(JsonWriter* json, std::string_view name, const trace::Tables& tables,
                         std::optional<uint64_t> tick) {
  json->key(name);
  tick ? json->value(tables.time_ns(*tick)) : json->null();
}

void write_trace(JsonWriter* json, const analyze::Reading& reading) {
  const trace::Tables& tables = reading.tables();
  json->key("trace").begin_object();
  json->member("file", reading.path());
  json->member("complete", tables.complete);
  write_optional_text(json, "incomplete_because", tables.incomplete_because);
  json->member("bytes", tables.file_bytes);
  json->member("format_version", tables.header.version);
  json->member("recorder_version", tables.header.recorder_version);
  json->member("started_unix_ns", tables.header.start_unix_ns);
  json->member("duration_ns", tables.time_ns(reading.end_tick()));
  json->end();
}

std::string_view origin_name(trace::Origin origin) {
  switch (origin) {
    case trace::Origin::kLaunched:
      return "launched";
    case trace::Origin::kForked:
      return "forked";
    case trace::Origin::kExeced:
      return "execed";
    case trace::Origin::kPreloaded:
      return "preloaded";
  }
  return "unknown";
}

void write_exit(JsonWriter* json, const trace::Image& image) {
  json->key("exit");
  if (!image.exit || (!image.exit->code && !image.exit->signal)) return json->null();
  json->begin_object(Layout::kLine);
  if (image.exit->code)
    json->member("code", *image.exit->code);
  else
    json->member("signal", *image.exit->signal);
  json->end();
}

void write_threads(JsonWriter* json, const trace::Tables& tables, const trace::Image& image) {
  json->key("threads").begin_array();
  for (const trace::Thread& thread : image.threads) {
    json->begin_object(Layout::kLine);
    json->member("thread", raw(thread.id));
    json->member("tid", thread.tid);
    write_optional_text(json, "name", thread.name);
    json->member("start_ns", tables.time_ns(thread.start_tick));
    json->end();
  }
  json->end();
}

void write_modules(JsonWriter* json, const trace::Image& image) {
  json->key("modules").begin_array();
  for (const trace::Module& module : image.modules) {
    if (analyze::is_ours(module.path)) continue;
    json->begin_object(Layout::kLine);
    json->member("path", module.path);
    write_optional_text(json, "build_id", module.build_id);
    json->member("start", module.start);
    json->member("end", module.end);
    json->member("bias", module.bias);
    json->member("generation", module.generation);
    json->end();
  }
  json->end();
}

void write_totals_members(JsonWriter* json, const trace::Tables& tables,
                          const analyze::Totals& totals, analyze::Peak peak) {
  json->member("allocations", totals.allocations);
  json->member("reallocations", totals.reallocations);
  json->member("frees", totals.frees);
  json->member("inherited_frees", totals.inherited_frees);
  json->member("allocated_bytes", totals.allocated_bytes);
  json->member("freed_bytes", totals.freed_bytes);
  json->member("live_bytes", totals.live_bytes);
  json->member("live_blocks", totals.live_blocks);
  json->member("peak_bytes", peak.bytes);
  json->member("peak_time_ns", tables.time_ns(peak.tick));
  json->member("temporary", totals.temporary);
  json->member("failed", totals.failed);
  json->member("unmatched_frees", totals.unmatched_frees);
  json->member("order_violations", totals.order_violations);
}

void write_processes(JsonWriter* json, const analyze::Reading& reading, bool in_full) {
  const trace::Tables& tables = reading.tables();
  json->key("processes").begin_array();
  for (const trace::Image* image : reading.selected()) {
    json->begin_object();
    json->member("image", raw(image->id));
    json->member("pid", image->pid);
    json->key("parent");
    image->parent_pid ? json->value(image->parent_pid) : json->null();
    json->key("parent_image");
    raw(image->parent) ? json->value(raw(image->parent)) : json->null();
    json->member("origin", origin_name(image->origin));
    json->member("executable", image->executable);
    json->key("command").begin_array(Layout::kLine);
    for (const std::string& word : image->command) json->value(word);
    json->end();
    json->member("start_ns", tables.time_ns(image->start_tick));
    write_optional_time(json, "end_ns", tables, image->end_tick);
    json->member("ended_by_exec", image->ended_by_exec);
    write_exit(json, *image);
    json->key("totals").begin_object(Layout::kLine);
    write_totals_members(json, tables, reading.accounts().totals(image->id),
                         reading.accounts().peak(image->id));
    json->end();
    json->key("rss").begin_object(Layout::kLine);
    json->member("peak_bytes", image->peak_rss_bytes);
    json->member("recorder_bytes", image->recorder_rss_bytes);
    json->end();
    json->member("lost", image->lost);
    json->member("not_followed", image->not_followed);
    if (in_full) {
      write_threads(json, tables, *image);
      write_modules(json, *image);
    }
    json->end();
  }
  json->end();
}

void write_mappings_members(JsonWriter* json, const analyze::Mappings& mappings) {
  json->member("calls", mappings.calls);
  json->member("failed", mappings.failed);
  json->member("mapped_bytes", mappings.mapped_bytes);
  json->member("unmapped_bytes", mappings.unmapped_bytes);
}

void write_totals(JsonWriter* json, const analyze::Reading& reading) {
  const analyze::Totals totals = reading.accounts().totals();
  json->key("totals").begin_object();
  write_totals_members(json, reading.tables(), totals, reading.accounts().peak());
  json->end();

  json->key("calls").begin_object();
  for (size_t op = 0; op < wire::kOps; ++op)
    if (wire::kOpNames[op][0]) json->member(wire::kOpNames[op], totals.calls[op]);
  json->end();

  json->key("mappings").begin_object();
  write_mappings_members(json, totals.mappings);
  json->key("inside_allocator").begin_object(Layout::kLine);
  write_mappings_members(json, totals.allocator_mappings);
  json->end();
  json->end();
}

void write_rss(JsonWriter* json, const analyze::Reading& reading) {
  // Processes share pages, so their sizes cannot be added: the largest one's.
  uint64_t peak = 0, recorder = 0;
  for (const trace::Image* image : reading.selected())
    if (image->peak_rss_bytes >= peak)
      peak = image->peak_rss_bytes, recorder = image->recorder_rss_bytes;
  json->key("rss").begin_object();
  json->member("peak_bytes", peak);
  json->member("recorder_bytes", recorder);
  json->end();
}

void write_cpu(JsonWriter* json, const analyze::Reading& reading) {
  if (!analyze::has_cpu(reading.tables())) return;
  analyze::CpuSum sum = analyze::cpu_sum(reading);
  json->key("cpu").begin_object();
  json->member("cpu_ns", sum.nanoseconds);
  json->member("samples", sum.samples);
  json->member("recorder_ns", sum.recorder_nanoseconds);
  json->end();
}

void write_recorder(JsonWriter* json, const trace::Tables& tables) {
  uint64_t lost = 0, truncated = 0, failures = 0, threads = 0, stacks = 0, not_followed = 0;
  std::set<std::pair<std::string_view, std::string_view>> modules;
  for (const trace::Image& image : tables.images) {
    lost += image.lost;
    truncated += image.truncated_stacks;
    failures += image.unwind_failures;
    // What threads did after their end is kept under a tid of 0.
    threads += static_cast<uint64_t>(std::ranges::count_if(
        image.threads, [](const trace::Thread& thread) { return thread.tid != 0; }));
    stacks += image.stacks.count();
    not_followed += image.not_followed;
    for (const trace::Module& module : image.modules)
      if (!analyze::is_ours(module.path)) modules.emplace(module.path, module.build_id);
  }
  json->key("recorder").begin_object();
  json->member("events", tables.events);
  json->member("lost", lost);
  json->member("truncated_stacks", truncated);
  json->member("unwind_failures", failures);
  json->member("threads", threads);
  json->member("stacks", stacks);
  json->member("modules", modules.size());
  json->member("not_followed", not_followed);
  json->member("trace_bytes", tables.file_bytes);
  json->member("bytes_per_event", tables.events ? static_cast<double>(tables.file_bytes) /
                                                      static_cast<double>(tables.events)
                                                : 0.0);
  json->end();
}

// What the page says below its figures, and which names are missing.
void write_notes(JsonWriter* json, analyze::Reading* reading) {
  std::vector<std::string> notes;
  auto add = [&](const std::string& note) {
    if (!note.empty() && std::ranges::find(notes, note) == notes.end()) notes.push_back(note);
  };
  for (const trace::Note& note : reading->tables().notes) add(note.text);
  for (const Loss& loss : losses(*reading)) add(loss.sentence + ".");
  add(reading->past_end());
  std::vector<std::string> remarks = remarks_on_names(reading);
  for (const std::string& sentence : reading->missing_names()) add(sentence);
  for (const std::string& sentence : remarks) add(sentence);
  json->key("notes").begin_array();
  for (const std::string& note : notes) json->value(note);
  json->end();
}

// Of a merged trace: which recording each image comes from.
void write_runs(JsonWriter* json, const trace::Tables& tables) {
  json->key("runs").begin_array();
  for (const trace::Run& run : tables.runs) {
    json->begin_object(Layout::kLine);
    json->member("file", run.file);
    json->member("first_image", raw(run.first_image));
    json->member("images", run.images);
    json->member("started_unix_ns", run.start_unix_ns);
    json->member("start_ns", tables.time_ns(run.start_tick));
    json->member("end_ns", tables.time_ns(run.end_tick));
    write_optional_text(json, "incomplete_because", run.incomplete_because);
    json->end();
  }
  json->end();
}

// What the program said of itself by malloscope.h.
void write_phases(JsonWriter* json, const analyze::Reading& reading) {
  const trace::Tables& tables = reading.tables();
  auto whose = [&](ImageId id, ThreadId thread) {
    const trace::Image& image = tables.image(id);
    json->member("pid", image.pid);
    json->member("image", raw(id));
    json->key("thread");
    thread == ThreadId::kNone ? json->null() : json->value(raw(thread));
  };
  json->key("phases").begin_array();
  for (const analyze::PhaseSpan& span : analyze::phase_spans(tables, reading.end_tick())) {
    json->begin_object(Layout::kLine);
    json->member("name", tables.mark_names[span.name]);
    whose(span.image, span.thread);
    json->member("from_ns", tables.time_ns(span.from_tick));
    json->member("to_ns", tables.time_ns(span.to_tick));
    json->member("ended", span.ended);
    json->end();
  }
  json->end();
  json->key("marks").begin_array();
  for (const trace::Image& image : tables.images)
    for (const trace::Mark& mark : image.marks) {
      if (mark.kind != wire::MarkKind::kMark) continue;
      json->begin_object(Layout::kLine);
      json->member("name", tables.mark_names[mark.name]);
      whose(image.id, mark.thread);
      json->member("time_ns", tables.time_ns(mark.tick));
      json->end();
    }
  json->end();
}

void write_frame_members(JsonWriter* json, const analyze::Frame& frame) {
  json->member("function", frame.function);
  write_optional_text(json, "file", frame.file);
  json->key("line");
  frame.line > 0 ? json->value(frame.line) : json->null();
  json->key("column");
  frame.column > 0 ? json->value(frame.column) : json->null();
  write_optional_text(json, "module", frame.module);
}

void write_sites(JsonWriter* json, analyze::Reading* reading, size_t most) {
  const std::vector<analyze::Site>& sites = reading->sites();
  size_t count = most ? std::min(most, sites.size()) : sites.size();
  std::vector<analyze::FrameId> stack;
  json->key("sites").begin_array();
  for (size_t i = 0; i < count; ++i) {
    const analyze::Site& site = sites[i];
    json->begin_object();
    write_frame_members(json, reading->frames().frame(site.frame));
    json->member("allocations", site.amounts.allocations);
    json->member("reallocations", site.amounts.reallocations);
    json->member("allocated_bytes", site.amounts.allocated_bytes);
    json->member("peak_bytes", site.amounts.peak_bytes);
    json->member("live_bytes", site.amounts.live_bytes);
    json->member("live_blocks", site.amounts.live_blocks);
    json->member("temporary", site.amounts.temporary);
    json->member("stacks", site.stacks);
    reading->frames().stack(site.image, site.stack, &stack);
    json->key("stack").begin_array();
    for (analyze::FrameId id : stack) {
      json->begin_object(Layout::kLine);
      write_frame_members(json, reading->frames().frame(id));
      json->end();
    }
    json->end();
    // Whether the outer end of that stack is missing.
    json->member("stack_complete", reading->frames().root(site.image, site.stack) ==
                                       analyze::FrameTable::Root::kReached);
    json->end();
  }
  json->end();
}

void write_common(JsonWriter* json, analyze::Reading* reading, bool in_full) {
  write_json_preamble(*reading, json);
  write_processes(json, *reading, in_full);
  write_totals(json, *reading);
  write_rss(json, *reading);
  write_cpu(json, *reading);
  write_recorder(json, reading->tables());
  write_notes(json, reading);
}

}  // namespace

void write_json_preamble(const analyze::Reading& reading, JsonWriter* json) {
  json->member("malloscope", kJsonSchema);
  write_trace(json, reading);
  json->key("range").begin_object(Layout::kLine);
  json->member("from_ns", reading.range().from_ns);
  json->member("to_ns", reading.range().to_ns);
  json->end();
}

void write_report_json(analyze::Reading* reading, size_t most_sites, Sink* sink) {
  JsonWriter json(sink);
  json.begin_object();
  write_common(&json, reading, false);
  write_sites(&json, reading, most_sites);
  json.end();
}

void write_info_json(analyze::Reading* reading, Sink* sink) {
  const trace::Header& header = reading->tables().header;
  JsonWriter json(sink);
  json.begin_object();
  write_common(&json, reading, true);
  json.key("settings").begin_array();
  for (const std::string& setting : header.settings) json.value(setting);
  json.end();
  write_runs(&json, reading->tables());
  write_phases(&json, *reading);
  json.key("clock").begin_object();
  json.member("ns_per_tick", header.ns_per_tick);
  json.end();
  write_sites(&json, reading, 0);
  json.end();
}

}  // namespace malloscope::output
