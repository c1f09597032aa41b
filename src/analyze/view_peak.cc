// SPDX-License-Identifier: Apache-2.0
// What the heap was made of at its highest moment, or at any other: every byte of it
// belongs to one site, so the rows add up to the whole.

#include <fmt/format.h>

#include <algorithm>

#include "analyze/numbers.h"
#include "analyze/profile_views.h"
#include "analyze/view.h"

namespace malloscope::analyze {
namespace {

using Kind = Column::Kind;

class PeakView : public View {
 public:
  explicit PeakView(bool at) : at_(at) {}

  // The instant of the peak is not the end of its tick: events of the same tick may follow. So
  // "--at peak" is answered by the shares of the peak, not by what is live when its tick is over.
  void prepare(Query* query) override {
    if (!at_ || !query->to || query->to->kind != TimePoint::Kind::kPeak) return;
    at_ = false;
    query->to.reset();
  }

  Answer answer(Reading* reading, const Query& query) override {
    struct Held {
      uint64_t bytes = 0, blocks = 0, stacks = 0, heaviest = 0;
      Row row;  // The heaviest.
    };
    SiteIndex sites(reading, query);
    std::vector<Held> held;
    uint64_t sum = 0;
    reading->accounts().tally().for_each_row([&](const Row& row) {
      uint64_t bytes = at_ ? row.amounts.live_bytes : row.amounts.peak_bytes;
      if (bytes == 0 && (!at_ || row.amounts.live_blocks == 0)) return;
      std::optional<size_t> site = sites.site_of(row.image, row.stack, row.strand);
      if (!site) return;
      if (*site >= held.size()) held.resize(*site + 1);
      Held& h = held[*site];
      if (h.stacks++ == 0 || bytes > h.heaviest) h.heaviest = bytes, h.row = row;
      h.bytes += bytes;
      h.blocks += row.amounts.live_blocks;
      sum += bytes;
    });

    Answer answer;
    const trace::Tables& tables = reading->tables();
    Peak peak = reading->accounts().peak();
    uint64_t tick =
        at_ ? std::min(reading->accounts().window().to_tick, reading->end_tick()) : peak.tick;
    uint64_t whole = at_ ? reading->accounts().totals().live_bytes : peak.bytes;
    answer.headline = at_ ? fmt::format("{} live {} after the recording began, from {}",
                                        bytes_text(sum), duration_text(tables.time_ns(tick)),
                                        count_text(held.size(), "site", "sites"))
                          : fmt::format("{} at the peak, {} after the recording began, from {}",
                                        bytes_text(sum), duration_text(tables.time_ns(tick)),
                                        count_text(held.size(), "site", "sites"));
    answer.facts.emplace_back("time_ns", tables.time_ns(tick));
    answer.facts.emplace_back("bytes", sum);
    add_totals(*reading, &answer);

    Table table;
    table.key = "sites";
    table.columns = {{at_ ? "live_bytes" : "peak_bytes", at_ ? "live" : "at peak", Kind::kBytes},
                     {"share", "", Kind::kShare},
                     {"stacks", "stacks", Kind::kCount},
                     {"frame", "site", Kind::kFrame},
                     {"stack", "", Kind::kStack, false}};
    if (at_)
      table.columns.insert(table.columns.begin() + 2, {"live_blocks", "blocks", Kind::kCount});
    std::vector<size_t> order(held.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      if (held[a].bytes != held[b].bytes) return held[a].bytes > held[b].bytes;
      return sites.frame(a).function < sites.frame(b).function;
    });
    for (size_t i : order) {
      const Held& h = held[i];
      TableRow row;
      row.cells = {h.bytes, Share{h.bytes, sum}};
      if (at_) row.cells.emplace_back(h.blocks);
      row.cells.emplace_back(h.stacks);
      row.cells.emplace_back(sites.frame(i));
      row.cells.emplace_back(named_stack(sites.stack(h.row.image, h.row.stack, h.row.strand)));
      table.rows.push_back(std::move(row));
    }
    answer.tables.push_back(std::move(table));
    add_filter_note(sum, whole, &answer);
    if (at_) {
      auto ended = std::ranges::count_if(reading->selected(), [&](const trace::Image* image) {
        return image->end_tick && *image->end_tick <= tick;
      });
      if (ended > 0 && static_cast<size_t>(ended) < reading->selected().size())
        answer.notes.push_back(
            fmt::format("{} ended by then; what they never freed is counted.",
                        count_text(static_cast<uint64_t>(ended), "process had", "processes had")));
    }
    return answer;
  }

 private:
  bool at_;
};

}  // namespace

std::unique_ptr<View> peak_view(const Query&, const ViewOptions& options) {
  return std::make_unique<PeakView>(options.at);
}

}  // namespace malloscope::analyze
