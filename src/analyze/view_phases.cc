// SPDX-License-Identifier: Apache-2.0
// What was allocated in each phase that the program named, and what is left of it. Phases may lie
// inside each other: a block is one of all that were open when it was made, so the rows do not add
// up to the whole.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>

#include "analyze/numbers.h"
#include "analyze/phase_spans.h"
#include "analyze/profile_views.h"
#include "analyze/site_groups.h"
#include "analyze/view.h"

namespace malloscope::analyze {
namespace {

using Kind = Column::Kind;

class PhasesView : public View {
 public:
  void prepare(Query* query) override { query->tally.by_phase = true; }
  bool restore(const IndexedWindow& from) override {
    cell_sites_ = from.cell_sites();
    restored_.emplace(from.index, *cell_sites_, from.query.tally);
    return restored_->sum(from, IndexSums::all());
  }

  Answer answer(Reading* reading, const Query& query) override {
    const trace::Tables& tables = reading->tables();
    const PhasePaths& phases = reading->accounts().phases();
    std::vector<Line> lines(tables.mark_names.size() + 1);  // The last: of no phase.
    Window window = reading->accounts().window();
    for (const PhaseSpan& span : phase_spans(tables, reading->end_tick())) {
      uint64_t from = std::max(span.from_tick, window.from_tick);
      uint64_t to = std::min(span.to_tick, window.to_tick);
      if (from > to || !query.selection.contains(tables.image(span.image))) continue;
      Line& line = lines[span.name];
      line.first_tick = std::min(line.first_tick, span.from_tick);
      line.ns += tables.time_ns(to) - tables.time_ns(from);
      ++line.times;
      line.open += !span.ended;
    }
    Amounts all;
    auto add_amounts = [&](StrandId strand, size_t site, const Amounts& amounts) {
      all += amounts;
      auto add = [&](Line& line) {
        line.amounts += amounts;
        if (amounts.live_bytes > 0) line.live_of_site[site] += amounts.live_bytes;
      };
      const PhasePath& path = phases.paths[raw(phases_of(strand))];
      for (uint32_t name : path) add(lines[name]);
      if (path.empty()) add(lines.back());
      (path.empty() ? lines.back() : lines[path.back()]).own_left += amounts.live_bytes;
    };
    std::optional<SiteIndex> own_sites;
    if (restored_) {
      for (const SiteGroups::Group& group : restored_->groups)
        add_amounts(restored_->strands[group.strand].strand, group.site, {group.amounts});
    } else {
      own_sites.emplace(reading, query);
      reading->for_each_row([&](const Row& row) {
        if (std::optional<size_t> site = own_sites->site_of(row.image, row.stack, row.strand))
          add_amounts(row.strand, *site, row.amounts);
      });
    }
    const SiteIndex& sites = own_sites ? *own_sites : cell_sites_->sites();

    std::vector<size_t> order;
    bool filtered = !query.frames.empty() || query.tells_strands();
    for (size_t i = 0; i < lines.size(); ++i)
      if (lines[i].any() || (lines[i].times > 0 && !filtered)) order.push_back(i);
    // As they came; what is of none is behind them.
    std::ranges::stable_sort(order, {}, [&](size_t i) { return lines[i].first_tick; });

    Answer answer;
    answer.headline = headline(*reading, lines, order);
    answer.facts = {{"different_phases", uint64_t{order.size() - (lines.back().any() ? 1 : 0)}}};
    add_totals(*reading, &answer);
    Table table;
    table.key = "phases";
    table.columns = {{"first_ns", "first", Kind::kTime},
                     {"times", "times", Kind::kCount},
                     {"duration_ns", "took", Kind::kDuration},
                     {"allocations", "allocations", Kind::kCount, true, true},
                     {"allocated_bytes", "allocated", Kind::kBytes},
                     {"temporary", "temporary", Kind::kCount, false},
                     {"peak_bytes", "at peak", Kind::kBytes, true, true},
                     {"live_blocks", "blocks left", Kind::kCount},
                     {"live_bytes", "left", Kind::kBytes},
                     {"phase", "phase", Kind::kText},
                     {"function", "most left by", Kind::kText}};
    for (size_t i : order) {
      const Line& line = lines[i];
      bool none = i + 1 == lines.size();
      TableRow row;
      row.cells = {line.times == 0 ? Cell() : Cell(tables.time_ns(line.first_tick)),
                   line.times == 0 ? Cell() : Cell(line.times),
                   line.times == 0 ? Cell() : Cell(line.ns),
                   line.amounts.allocations,
                   line.amounts.allocated_bytes,
                   line.amounts.temporary,
                   line.amounts.peak_bytes,
                   line.amounts.live_blocks,
                   line.amounts.live_bytes,
                   none ? std::string(kNoPhase) : tables.mark_names[i],
                   line.amounts.live_bytes == 0
                       ? Cell()
                       : Cell(sites.frame(heaviest_site(line.live_of_site, sites)).function)};
      table.rows.push_back(std::move(row));
    }
    answer.tables.push_back(std::move(table));
    add_filter_note(all.allocations, reading->accounts().totals().allocations, &answer);
    if (uint64_t open = open_at_end(lines))
      answer.notes.push_back(fmt::format("{} never ended: {} until the process did.",
                                         count_text(open, "phase was", "phases were"),
                                         open == 1 ? "it lasted" : "they lasted"));
    uint64_t lost = 0;
    for (const trace::Image* image : reading->selected()) lost += image->lost;
    if (lost > 0)
      answer.notes.push_back(fmt::format(
          "{} lost; where that was the begin or end of a phase, blocks are told of the wrong one.",
          count_text(lost, "event was", "events were")));
    if (!phases.complete)
      answer.notes.push_back(fmt::format("Not all is known: {}.", kPhasesNotTold));
    return answer;
  }

 private:
  struct Line {
    uint64_t first_tick = UINT64_MAX;
    uint64_t times = 0, ns = 0, open = 0;
    uint64_t own_left = 0;  // Bytes of which it is the innermost phase.
    Amounts amounts;
    std::map<size_t, uint64_t> live_of_site;  // Bytes, by the site's number.

    bool any() const { return amounts.allocations > 0 || amounts.live_blocks > 0; }
  };

  static uint64_t open_at_end(const std::vector<Line>& lines) {
    uint64_t open = 0;
    for (const Line& line : lines) open += line.open;
    return open;
  }

  // Of phases inside each other the innermost is to blame.
  static std::string headline(const Reading& reading, const std::vector<Line>& lines,
                              const std::vector<size_t>& order) {
    const trace::Tables& tables = reading.tables();
    const size_t none = lines.size() - 1;
    std::optional<size_t> worst;
    uint64_t phases = 0;
    for (size_t i : order) {
      if (i == none) continue;
      ++phases;
      if (!worst || lines[i].own_left > lines[*worst].own_left) worst = i;
    }
    if (!worst)
      return tables.mark_names.empty()
                 ? "The program names no phases; docs/phases.md tells how it can"
                 : "None of the program's phases is in what was asked for";
    std::string until;
    if (reading.accounts().window().to_tick < reading.end_tick())
      until = fmt::format(" at {}", duration_text(reading.range().to_ns));
    if (lines[*worst].own_left == 0)
      return fmt::format("{}; nothing that they allocated is left{}",
                         count_text(phases, "phase", "phases"), until);
    return fmt::format("{}; \"{}\" leaves most, apart from phases inside it: {}{}",
                       count_text(phases, "phase", "phases"), tables.mark_names[*worst],
                       bytes_text(lines[*worst].own_left), until);
  }

  // If it was restored: instead of rows.
  std::shared_ptr<const CellSites> cell_sites_;
  std::optional<SiteGroups> restored_;
};

}  // namespace

std::unique_ptr<View> phases_view(const Query&, const ViewOptions&) {
  return std::make_unique<PhasesView>();
}

}  // namespace malloscope::analyze
