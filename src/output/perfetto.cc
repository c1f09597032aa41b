// SPDX-License-Identifier: Apache-2.0
// Counters over time as a Chrome JSON trace, which ui.perfetto.dev and chrome://tracing open: of
// each process its live bytes and blocks and its resident bytes, and, where there are several, the
// sum of what is live, which has the peak.

#include <fmt/format.h>

#include <map>

#include "output/exports.h"
#include "output/json_writer.h"
#include "output/words.h"

namespace malloscope::output {
namespace {

using Layout = JsonWriter::Layout;

class Events {
 public:
  Events(const trace::Tables& tables, JsonWriter* json) : tables_(tables), json_(*json) {}

  void name_process(int pid, const std::string& name) {
    begin("process_name", "M", pid);
    json_.key("args").begin_object();
    json_.member("name", name);
    json_.end();
    json_.end();
  }

  void counter(int pid, const char* name, uint64_t tick, uint64_t value) {
    begin(name, "C", pid);
    json_.member("ts", tables_.time_ns(tick) / 1000);
    json_.key("args").begin_object();
    json_.member("value", value);
    json_.end();
    json_.end();
  }

  void live(int pid, const std::vector<analyze::Curve::Point>& points) {
    for (const analyze::Curve::Point& point : points)
      counter(pid, "live bytes", point.tick, point.bytes);
    for (const analyze::Curve::Point& point : points)
      counter(pid, "live blocks", point.tick, point.blocks);
  }

  void instant(int pid, const std::string& name, uint64_t tick) {
    begin(name, "i", pid);
    json_.member("ts", tables_.time_ns(tick) / 1000);
    json_.member("s", "p");
    json_.end();
  }

 private:
  void begin(const std::string& name, const char* phase, int pid) {
    json_.begin_object(Layout::kLine);
    json_.member("name", name);
    json_.member("ph", phase);
    json_.member("pid", pid);
    json_.member("tid", pid);
  }

  const trace::Tables& tables_;
  JsonWriter& json_;
};

}  // namespace

Result<void> write_perfetto(const Export& what, Sink* sink) {
  const analyze::Reading& reading = *what.reading;
  const trace::Tables& tables = reading.tables();
  const analyze::Window& window = reading.accounts().window();
  auto inside = [&](uint64_t tick) { return tick >= window.from_tick && tick <= window.to_tick; };
  std::vector<const trace::Image*> images = reading.selected();
  // Images of one process follow each other: it is called by what it became last.
  std::map<int, std::string> processes;
  for (const trace::Image* image : images)
    processes[image->pid] =
        image->command.empty() ? base_name(image->executable) : command_text(image->command);

  JsonWriter json(sink);
  json.begin_object();
  json.member("displayTimeUnit", "ms");
  json.key("otherData").begin_object();
  json.member("creator", "malloscope " MSCOPE_VERSION);
  json.member("trace", reading.path());
  json.member("started_unix_ns", std::to_string(tables.header.start_unix_ns));
  json.end();
  json.key("traceEvents").begin_array();
  Events events(tables, &json);
  for (const auto& [pid, name] : processes) events.name_process(pid, name);
  for (const trace::Image* image : images) {
    if (inside(image->start_tick)) events.live(image->pid, {{image->start_tick, 0, 0}});
    events.live(image->pid, what.curve->of(image->id));
    if (image->end_tick && inside(*image->end_tick))
      events.live(image->pid, {{*image->end_tick, 0, 0}});
    for (const trace::MemorySample& sample : image->rss)
      if (inside(sample.tick))
        events.counter(image->pid, "resident bytes", sample.tick, sample.bytes);
  }
  int peak_pid = images.empty() ? 0 : images[0]->pid;
  if (processes.size() > 1) {
    peak_pid = 0;
    events.name_process(0, "all processes");
    events.live(0, what.curve->of_all());
  }
  analyze::Peak peak = reading.accounts().peak();
  if (peak.bytes > 0)
    events.instant(peak_pid, fmt::format("peak: {}", bytes_text(peak.bytes)), peak.tick);
  json.end();
  json.end();
  return {};
}

}  // namespace malloscope::output
