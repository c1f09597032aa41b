// SPDX-License-Identifier: Apache-2.0
// api/timeline: how much was live, allocated and resident over time.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string_view>

#include "analyze/index_curves.h"
#include "analyze/numbers.h"
#include "analyze/view.h"
#include "serve/answers.h"
#include "serve/columns.h"
#include "serve/names.h"
#include "serve/slice_columns.h"

namespace malloscope::serve {
namespace {

using analyze::By;
using analyze::Explorer;
using analyze::IndexCurves;
using analyze::kSlices;

constexpr size_t kMostGroups = 12;

// Groups of cells, each with a name and a curve.
struct Layers {
  std::vector<std::string> names;
  std::vector<std::vector<double>> live;
  std::vector<size_t> images;  // By layer, places in the tables; empty: a layer is of several.
};

double highest(const std::vector<double>& curve) {
  return *std::max_element(curve.begin(), curve.end());
}

// The heaviest at their own highest, and the rest as one.
void keep_heaviest(Layers* layers) {
  std::vector<size_t> order(layers->names.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, [&](size_t a, size_t b) {
    return highest(layers->live[a]) > highest(layers->live[b]);
  });
  while (!order.empty() && highest(layers->live[order.back()]) == 0) order.pop_back();
  Layers kept;
  std::vector<double> others(kSlices);
  for (size_t i = 0; i < order.size(); ++i) {
    const std::vector<double>& live = layers->live[order[i]];
    if (i < kMostGroups || order.size() == kMostGroups + 1) {
      kept.names.push_back(layers->names[order[i]]);
      kept.live.push_back(live);
    } else {
      for (size_t k = 0; k < kSlices; ++k) others[k] += live[k];
    }
  }
  if (order.size() > kMostGroups + 1) {
    kept.names.push_back(fmt::format("{} others", analyze::grouped(order.size() - kMostGroups)));
    kept.live.push_back(std::move(others));
  }
  *layers = std::move(kept);
}

// By what rows or cells belong to: the curves to ask for, and the layers' names.
Explorer::CurvesQuestion layers_of(const Context& context, const Explorer::Question& question,
                                   const std::string& by, Layers* layers) {
  Explorer& explorer = context.explorer;
  const trace::Tables& tables = explorer.reading().tables();
  if (by == "site") {
    Explorer::Grouping groups = explorer.groups(question, By::kSite);
    std::map<std::string, size_t> times;
    for (const auto& group : groups->groups) ++times[group.site.function];
    for (const auto& group : groups->groups) {
      const analyze::NamedFrame& site = group.site;
      std::string file = site.file.substr(site.file.rfind('/') + 1);
      layers->names.push_back(times[site.function] > 1 && site.line > 0
                                  ? fmt::format("{} {}:{}", site.function, file, site.line)
                                  : site.function);
    }
    return explorer.ask_curves(question, by, groups->groups.size(),
                               [&](size_t row) { return groups->group_of_row[row]; });
  }
  if (by == "process") {
    for (const trace::Image& image : tables.images) {
      layers->images.push_back(layers->names.size());
      layers->names.push_back(fmt::format("{} ({})", image.program(), image.pid));
    }
    return explorer.ask_curves(question, by, tables.images.size(),
                               [&](size_t row) { return raw(explorer.rows()[row].image) - 1; });
  }
  if (by == "thread") {
    std::vector<std::vector<uint32_t>> number;  // Of each image's threads.
    for (const trace::Image& image : tables.images) {
      std::vector<uint32_t>& numbers = number.emplace_back();
      for (uint32_t i = 0; i <= image.threads.size(); ++i) {
        numbers.push_back(static_cast<uint32_t>(layers->names.size()));
        layers->names.push_back(analyze::thread_name(image, ThreadId{i}));
        layers->images.push_back(number.size() - 1);
      }
    }
    auto group = [&](const analyze::IndexCell& cell) {
      const std::vector<uint32_t>& numbers = number[raw(cell.image) - 1];
      uint32_t thread = raw(thread_of(cell.strand));
      return thread < numbers.size() ? numbers[thread] : numbers[0];
    };
    return explorer.ask_curves_of_cells(question, by, layers->names.size(), group);
  }
  if (by == "phase") {
    // Those that lie inside each other would be shown twice: a block is of the innermost.
    const analyze::PhasePaths& phases = explorer.index()->facts().phases;
    std::map<uint32_t, uint32_t> groups;  // By the number of the name: of those that are any's.
    layers->names.emplace_back(analyze::kNoPhase);
    for (const analyze::PhasePath& path : phases.paths) {
      if (path.empty() || path.back() >= tables.mark_names.size()) continue;
      auto next = static_cast<uint32_t>(layers->names.size());
      if (groups.try_emplace(path.back(), next).second)
        layers->names.push_back(tables.mark_names[path.back()]);
    }
    auto group = [&](const analyze::IndexCell& cell) {
      std::optional<uint32_t> phase = innermost_phase(phases, cell.strand);
      auto found = phase ? groups.find(*phase) : groups.end();
      return found == groups.end() ? 0 : found->second;
    };
    return explorer.ask_curves_of_cells(question, by, layers->names.size(), group);
  }
  return explorer.ask_curve(question);
}

void add_curves(const Explorer& explorer, const IndexCurves& curves, Layers* layers) {
  for (size_t i = 0; i < layers->names.size(); ++i)
    layers->live.emplace_back(curves.of(i), curves.of(i) + kSlices);
  // What a process has left is gone with it.
  const std::vector<uint32_t> ends = analyze::ends_of_images(*explorer.index());
  for (size_t i = 0; i < layers->images.size(); ++i)
    std::fill(layers->live[i].begin() + ends[layers->images[i]], layers->live[i].end(), 0);
  keep_heaviest(layers);
}

// What all selected processes had together, whenever one of them was looked at.
void together(const trace::Tables& tables, const analyze::Selection& selection,
              std::vector<trace::MemorySample> trace::Image::* what, std::vector<double>* times,
              std::vector<double>* bytes) {
  struct Sample {
    uint64_t tick;
    size_t image;
    uint64_t bytes;
  };
  std::vector<Sample> samples;
  for (size_t i = 0; i < tables.images.size(); ++i) {
    if (!selection.contains(tables.images[i])) continue;
    for (const trace::MemorySample& sample : tables.images[i].*what)
      samples.push_back({sample.tick, i, sample.bytes});
    if (tables.images[i].end_tick && !(tables.images[i].*what).empty())
      samples.push_back({*tables.images[i].end_tick, i, 0});
  }
  std::ranges::stable_sort(samples, {}, &Sample::tick);
  std::vector<uint64_t> now(tables.images.size());
  uint64_t sum = 0;
  for (const Sample& sample : samples) {
    sum += sample.bytes - now[sample.image];
    now[sample.image] = sample.bytes;
    times->push_back(static_cast<double>(tables.time_ns(sample.tick)));
    bytes->push_back(static_cast<double>(sum));
  }
}

}  // namespace

Result<std::string> timeline_answer(const Context& context, const Parameters& parameters) {
  Result<Explorer::Question> question = question_of(parameters, context.names);
  if (!question) return std::unexpected(question.error());
  std::string by = word(parameters, "by", "none");
  static const std::set<std::string> kBy = {"none", "process", "thread", "phase", "site"};
  if (!kBy.contains(by)) return fail_usage("by= is none of none, process, thread, phase, site");
  Explorer& explorer = context.explorer;
  if (!explorer.index())
    return fail(
        "this trace has no index, so there is no curve of it; malloscope report --view rss");
  Jobs::Running job(&context.jobs, "drawing the timeline", context.asked);

  const trace::Tables& tables = explorer.reading().tables();
  bool all = Explorer::is_about_all(*question);
  std::vector<double> cpu;  // Not of blocks of some size or type, which have none.
  if (suits(analyze::Metric::kCpu, By::kSite, question->query))
    cpu = explorer.cpu_course(*question, 1, [](size_t) { return 0; });
  std::shared_ptr<const IndexCurves> curves;
  Layers layers;
  if (!all || by != "none") {
    Explorer::CurvesQuestion asked = layers_of(context, *question, by, &layers);
    context.let_others();
    curves = explorer.curves(asked);
    if (!curves) return fail(kDamagedIndex);
    add_curves(explorer, *curves, &layers);
  }
  std::vector<analyze::WholeSlice> slices;
  if (all) {
    slices = analyze::whole_curve(*explorer.index());
  } else {
    uint64_t before = 0;  // Of a part, only what was there at the ends of slices is known.
    for (const analyze::SliceFlow& slice : curves->all) {
      slices.push_back({slice, std::max(before, slice.live_bytes), slice.live_blocks});
      before = slice.live_bytes;
    }
  }
  std::vector<double> time, rss_time, rss, vm_time, vm;
  for (uint64_t cut : explorer.index()->facts().times.cuts)
    time.push_back(static_cast<double>(tables.time_ns(cut)));
  const analyze::Selection& selection = question->query.selection;
  together(tables, selection, &trace::Image::rss, &rss_time, &rss);
  together(tables, selection, &trace::Image::vm, &vm_time, &vm);
  Columns columns;
  columns.add("time", time);
  add_slices(slices, all || curves->has_frees, &columns);
  columns.add("rss_time", rss_time);
  columns.add("rss", rss);
  columns.add("vm_time", vm_time);
  columns.add("vm_size", vm);
  if (!cpu.empty()) columns.add("cpu", cpu);
  if (by != "none") {
    std::vector<double> group_live;
    for (const std::vector<double>& layer : layers.live)
      group_live.insert(group_live.end(), layer.begin(), layer.end());
    columns.add("group_live", group_live);
  }
  return columns.finish([&](output::JsonWriter* json) {
    json->member("slices", kSlices);
    json->member("by", by);
    json->member("exact_max", all);
    json->key("groups").begin_array();
    for (const std::string& name : layers.names) {
      json->begin_object();
      json->member("name", name);
      json->end();
    }
    json->end();
  });
}

}  // namespace malloscope::serve
