// SPDX-License-Identifier: Apache-2.0
// Of api/trace: the phases and marks that the program named, as a timeline draws them. Of very
// many, those of one name that are nearer to each other than can be seen are one, which says how
// many it stands for; of very many names the longest are there, and how many are not.

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "analyze/phase_spans.h"
#include "analyze/view.h"
#include "serve/answers.h"

namespace malloscope::serve {
namespace {

using analyze::PhaseSpan;
using Layout = output::JsonWriter::Layout;

constexpr size_t kManyDrawn = 2'000;  // As they are; and so many places there are for more.
constexpr size_t kMostDrawn = 10'000;
constexpr size_t kMostNames = 1'000;

struct Drawn {
  PhaseSpan span;  // Of a mark, both its ends are the same.
  uint64_t times = 1;
};

std::vector<Drawn> drawn(const std::vector<PhaseSpan>& spans, uint64_t ticks) {
  std::vector<Drawn> result;
  bool all = spans.size() <= kManyDrawn;
  std::map<std::pair<ImageId, uint32_t>, size_t> latest;  // By image and name.
  for (const PhaseSpan& span : spans) {
    auto [place, fresh] = latest.try_emplace({span.image, span.name}, result.size());
    if (!fresh && !all &&
        span.from_tick <= result[place->second].span.to_tick + ticks / kManyDrawn) {
      Drawn& before = result[place->second];
      before.span.to_tick = std::max(before.span.to_tick, span.to_tick);
      if (before.span.thread != span.thread) before.span.thread = ThreadId::kNone;
      ++before.times;
      continue;
    }
    place->second = result.size();
    result.push_back({span});
  }
  return result;
}

// How many had to go.
size_t keep_longest(std::vector<Drawn>* drawn) {
  if (drawn->size() <= kMostDrawn) return 0;
  size_t left_out = drawn->size() - kMostDrawn;
  auto ticks = [](const Drawn& phase) { return phase.span.to_tick - phase.span.from_tick; };
  std::ranges::stable_sort(*drawn, std::greater(), ticks);
  drawn->resize(kMostDrawn);
  std::ranges::stable_sort(*drawn, {}, [](const Drawn& phase) { return phase.span.from_tick; });
  return left_out;
}

std::vector<PhaseSpan> marks_of(const trace::Tables& tables) {
  std::vector<PhaseSpan> marks;
  for (const trace::Image& image : tables.images)
    for (const trace::Mark& mark : image.marks)
      if (mark.kind == wire::MarkKind::kMark)
        marks.push_back({mark.name, image.id, ThreadId::kNone, mark.tick, mark.tick});
  std::ranges::stable_sort(marks, {}, &PhaseSpan::from_tick);
  return marks;
}

}  // namespace

void write_phase_members(const analyze::Reading& reading, output::JsonWriter* json) {
  const trace::Tables& tables = reading.tables();
  uint64_t ticks = reading.end_tick() - tables.header.start_tick;
  std::vector<PhaseSpan> phases = analyze::phase_spans(tables, reading.end_tick());
  std::vector<Drawn> shown = drawn(phases, ticks);
  json->member("phases_left_out", keep_longest(&shown));
  json->key("phases").begin_array();
  for (const Drawn& phase : shown) {
    const trace::Image& image = tables.image(phase.span.image);
    json->begin_object(Layout::kLine);
    json->member("name", tables.mark_names[phase.span.name]);
    json->member("pid", image.pid);
    if (phase.span.thread != ThreadId::kNone)
      json->member("thread", analyze::thread_name(image, phase.span.thread));
    json->member("from_ns", tables.time_ns(phase.span.from_tick));
    json->member("to_ns", tables.time_ns(phase.span.to_tick));
    json->member("times", phase.times);
    json->end();
  }
  json->end();
  json->key("phase_names").begin_array(Layout::kLine);
  std::set<uint32_t> named;
  for (const PhaseSpan& phase : phases)
    if (named.size() < kMostNames && named.insert(phase.name).second)
      json->value(tables.mark_names[phase.name]);
  json->end();
  shown = drawn(marks_of(tables), ticks);
  json->member("marks_left_out", keep_longest(&shown));
  json->key("marks").begin_array();
  for (const Drawn& mark : shown) {
    json->begin_object(Layout::kLine);
    json->member("name", tables.mark_names[mark.span.name]);
    json->member("pid", tables.image(mark.span.image).pid);
    json->member("time_ns", tables.time_ns(mark.span.from_tick));
    json->member("times", mark.times);
    json->end();
  }
  json->end();
}

}  // namespace malloscope::serve
