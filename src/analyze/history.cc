// SPDX-License-Identifier: Apache-2.0
#include "analyze/history.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <set>
#include <tuple>

#include "analyze/heap.h"
#include "analyze/numbers.h"
#include "trace/event_stream.h"

namespace malloscope::analyze {
namespace {

using Kind = Column::Kind;

struct Figure {
  const char* metric;  // As on the command line.
  const char* key;     // In JSON.
  const char* title;
  Kind kind;
  uint64_t Run::* member;
  bool may_go;  // Where a line has no room for all.
};
constexpr Figure kFigures[] = {
    {"duration", "duration_ns", "took", Kind::kDuration, &Run::duration_ns, true},
    {"allocations", "allocations", "allocations", Kind::kCount, &Run::allocations, false},
    {"allocated", "allocated_bytes", "allocated", Kind::kBytes, &Run::allocated_bytes, true},
    {"peak", "peak_bytes", "peak", Kind::kBytes, &Run::peak_bytes, false},
    {"live", "live_bytes", "live at end", Kind::kBytes, &Run::live_bytes, false},
    {"temporary", "temporary", "temporary", Kind::kCount, &Run::temporary, true},
    {"rss", "peak_rss_bytes", "peak RSS", Kind::kBytes, &Run::peak_rss_bytes, false},
};

const Figure& figure_of(std::string_view metric) {
  return *std::find_if(std::begin(kFigures), std::end(kFigures) - 1,
                       [&](const Figure& figure) { return metric == figure.metric; });
}

std::string date_text(int64_t unix_ns) {
  return fmt::format("{:%Y-%m-%d %H:%M}",
                     fmt::gmtime(static_cast<time_t>(unix_ns / 1'000'000'000)));
}

std::string figure_text(const Figure& figure, double number) {
  auto rounded = static_cast<uint64_t>(std::llround(number));
  return figure.kind == Kind::kBytes      ? bytes_text(rounded)
         : figure.kind == Kind::kDuration ? duration_text(rounded)
                                          : grouped(rounded);
}

}  // namespace

Result<Run> run_of(const std::string& path) {
  Heap heap;
  Result<trace::Tables> tables = trace::stream(path, &heap);
  if (!tables) return std::unexpected(tables.error());
  heap.finish();
  Run run;
  run.trace = path;
  run.start_unix_ns = tables->header.start_unix_ns;
  Totals totals = heap.totals();
  run.allocations = totals.allocations;
  run.allocated_bytes = totals.allocated_bytes;
  run.live_bytes = totals.live_bytes;
  run.temporary = totals.temporary;
  run.peak_bytes = heap.peak().bytes;
  run.complete = tables->complete;
  run.merged = tables->runs.size();
  if (tables->header.is_sampled()) run.sample_bytes = uint64_t{1} << tables->header.sample_log2();
  uint64_t end = tables->end_tick.value_or(heap.last_tick());
  for (const trace::Image& image : tables->images) {
    run.peak_rss_bytes = std::max(run.peak_rss_bytes, image.peak_rss_bytes);
    run.lost += image.lost;
    ++run.processes;
    if (!tables->end_tick) end = std::max(end, image.end_tick.value_or(0));
  }
  run.duration_ns = tables->time_ns(end);
  if (!tables->images.empty()) run.program = tables->images[0].program();
  return run;
}

Result<std::vector<std::string>> traces_at(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!fs::is_directory(path, error)) return std::vector<std::string>{path};
  std::vector<std::string> traces;
  fs::directory_iterator folder(path, error);
  for (; !error && folder != fs::directory_iterator(); folder.increment(error))
    if (folder->path().extension() == ".mscope") traces.push_back(folder->path().string());
  if (error) return fail(fmt::format("{} cannot be read: {}", path, error.message()));
  std::sort(traces.begin(), traces.end());
  return traces;
}

void sort_by_time(std::vector<Run>* runs) {
  std::sort(runs->begin(), runs->end(), [](const Run& a, const Run& b) {
    return std::tie(a.start_unix_ns, a.trace) < std::tie(b.start_unix_ns, b.trace);
  });
}

std::vector<std::string> history_metrics() {
  std::vector<std::string> names;
  for (const Figure& figure : kFigures) names.emplace_back(figure.metric);
  return names;
}

double Growth::percent() const {
  auto now = static_cast<double>(last);
  if (median == 0) return last == 0 ? 0 : std::numeric_limits<double>::infinity();
  return 100 * (now - median) / median;
}

std::vector<Growth> growth(const std::vector<Run>& runs, std::string_view metric) {
  uint64_t Run::* member = figure_of(metric).member;
  std::vector<Growth> all;
  for (const Run& run : runs) {
    if (std::any_of(all.begin(), all.end(),
                    [&](const Growth& known) { return known.program == run.program; }))
      continue;
    // What was merged holds other runs; copies, as symbolize makes them, are one run; what was
    // recorded in another way than the last one is not compared with it.
    uint64_t sample = 0;
    for (const Run& other : runs)
      if (other.program == run.program && other.merged == 0) sample = other.sample_bytes;
    std::vector<uint64_t> values;
    std::set<int64_t> starts;
    for (const Run& other : runs)
      if (other.program == run.program && other.merged == 0 && other.sample_bytes == sample &&
          starts.insert(other.start_unix_ns).second)
        values.push_back(other.*member);
    if (values.empty()) continue;
    Growth& found = all.emplace_back();
    found.program = run.program;
    found.last = values.back();
    values.pop_back();
    found.runs_before = values.size();
    if (values.empty()) continue;
    std::sort(values.begin(), values.end());
    size_t middle = values.size() / 2;
    found.median = static_cast<double>(values[middle]);
    if (values.size() % 2 == 0)
      found.median = (found.median + static_cast<double>(values[middle - 1])) / 2;
  }
  return all;
}

std::string growth_text(const Growth& growth, std::string_view metric) {
  const Figure& figure = figure_of(metric);
  double percent = growth.percent();
  std::string change = std::isinf(percent) ? "more than"
                                           : fmt::format("{:.1f} % {} than", std::abs(percent),
                                                         percent < 0 ? "less" : "more");
  return fmt::format("{}: {} is {}, {} the median of {} ({})", growth.program, metric,
                     figure_text(figure, static_cast<double>(growth.last)), change,
                     count_text(growth.runs_before, "run before", "runs before"),
                     figure_text(figure, growth.median));
}

Answer history_answer(const std::vector<Run>& runs) {
  bool any_lost =
      std::any_of(runs.begin(), runs.end(), [](const Run& run) { return run.lost > 0; });
  bool any_sampled =
      std::any_of(runs.begin(), runs.end(), [](const Run& run) { return run.sample_bytes > 0; });
  bool several_programs = std::any_of(
      runs.begin(), runs.end(), [&](const Run& run) { return run.program != runs[0].program; });
  Answer answer;
  answer.headline = runs.empty() ? "No recordings"
                                 : fmt::format("{}{}, {} to {} UTC",
                                               count_text(runs.size(), "recording", "recordings"),
                                               several_programs ? "" : " of " + runs[0].program,
                                               date_text(runs.front().start_unix_ns),
                                               date_text(runs.back().start_unix_ns));
  answer.facts = {{"totals.runs", uint64_t{runs.size()}}};
  Table table;
  table.key = "runs";
  table.columns = {{"date", "date (UTC)", Kind::kText},
                   {"started_unix_ns", "", Kind::kCount, false}};
  for (const Figure& figure : kFigures)
    table.columns.push_back({figure.key, figure.title, figure.kind, true, figure.may_go});
  table.columns.push_back({"lost", "lost", Kind::kCount, any_lost});
  table.columns.push_back({"sample_bytes", "sample", Kind::kBytes, any_sampled});
  table.columns.push_back({"processes", "processes", Kind::kCount, false});
  table.columns.push_back({"complete", "", Kind::kText, false});
  table.columns.push_back({"program", "program", Kind::kText, several_programs});
  table.columns.push_back({"file", "trace", Kind::kText});
  table.columns.push_back({"trace", "", Kind::kText, false});
  uint64_t lost = 0, cut = 0, sampled = 0;
  for (const Run& run : runs) {
    TableRow row;
    row.cells = {date_text(run.start_unix_ns),
                 static_cast<uint64_t>(std::max<int64_t>(run.start_unix_ns, 0))};
    for (const Figure& figure : kFigures) row.cells.emplace_back(run.*figure.member);
    row.cells.emplace_back(run.lost);
    row.cells.push_back(run.sample_bytes == 0 ? Cell() : Cell(run.sample_bytes));
    row.cells.emplace_back(run.processes);
    row.cells.emplace_back(std::string(run.complete ? "yes" : "no"));
    row.cells.emplace_back(run.program);
    row.cells.emplace_back(run.trace.substr(run.trace.rfind('/') + 1));
    row.cells.emplace_back(run.trace);
    table.rows.push_back(std::move(row));
    lost += run.lost > 0;
    cut += !run.complete;
    sampled += run.sample_bytes > 0;
  }
  answer.tables.push_back(std::move(table));
  if (lost > 0)
    answer.notes.push_back(fmt::format("{} lost events: the figures are too small.",
                                       count_text(lost, "recording", "recordings")));
  if (sampled > 0)
    answer.notes.push_back(
        fmt::format("{}: the figures are estimates, and a realloc adds all of its new size to "
                    "allocated.",
                    count_text(sampled, "recording is a sample", "recordings are samples")));
  if (cut > 0)
    answer.notes.push_back(fmt::format("{} not complete: the figures are of what is there.",
                                       count_text(cut, "recording is", "recordings are")));
  return answer;
}

}  // namespace malloscope::analyze
