// SPDX-License-Identifier: Apache-2.0
// Blocks that are thrown away as soon as they were made. Each is a call to the allocator
// and back for nothing that a variable on the stack, or a buffer kept, would not do.
//
// "In one call" is what we would like to know and cannot without the stacks of frees: that
// a block was freed before the function that asked for it returned. It is taken to be so if
// the thread that allocated it frees it, before its next allocation or within 10 us.

#include <fmt/format.h>

#include <algorithm>

#include "analyze/numbers.h"
#include "analyze/origins.h"
#include "analyze/view.h"

namespace malloscope::analyze {
namespace {

using Kind = Column::Kind;
constexpr uint64_t kShortNs = 1'000'000;
constexpr uint64_t kOneCallNs = 10'000;

struct Churn {
  uint64_t allocations = 0;
  uint64_t temporary = 0;
  uint64_t one_call = 0;
  uint64_t short_lived = 0;
  uint64_t short_bytes = 0;
  uint64_t short_ticks = 0;  // Lived by these, together.

  Churn& operator+=(const Churn& other) {
    allocations += other.allocations;
    temporary += other.temporary;
    one_call += other.one_call;
    short_lived += other.short_lived;
    short_bytes += other.short_bytes;
    short_ticks += other.short_ticks;
    return *this;
  }
};

class ChurnView : public View, public HeapObserver {
 public:
  explicit ChurnView(const Query& query)
      : rows_(query.tells_strands()),
        min_size_(query.tally.min_size),
        max_size_(query.tally.max_size) {}

  void attach(Heap* heap, const trace::Overview& overview) override {
    from_tick_ = heap->window().from_tick;
    double ns_per_tick = overview.header.ns_per_tick;
    short_ticks_ = static_cast<uint64_t>(static_cast<double>(kShortNs) / ns_per_tick);
    one_call_ticks_ = static_cast<uint64_t>(static_cast<double>(kOneCallNs) / ns_per_tick);
    time_ = TimeSlices(heap->window(), overview, 1);
    heap->add_observer(this);
  }

  void found(ImageId image, const BlockTable& live) override {
    origins_.found(image, live, from_tick_);
  }
  void made(ImageId image, const Block& block, const wire::Event&, bool counts) override {
    if (counts && wants(block))
      rows_.at(image, block.stack, block.strand).allocations += block.stands_for();
  }
  void changed(ImageId image, const Block& before, const Block& now, const wire::Event&,
               bool) override {
    origins_.changed(image, before, now);
  }
  void gone(ImageId image, const Block& block, End how, const wire::Event& event,
            bool counts) override {
    Block origin = origins_.take(image, block);
    if (!counts || how == End::kLost || !wants(origin)) return;
    uint64_t ticks = event.tick > origin.born_tick ? event.tick - origin.born_tick : 0;
    bool temporary = how == End::kTemporary;
    bool brief = ticks <= short_ticks_ && origin.born_tick >= from_tick_;
    if (!temporary && !brief) return;
    Churn& churn = rows_.at(image, origin.stack, origin.strand);
    if (temporary) churn.temporary += origin.stands_for();
    if (temporary || (event.thread == thread_of(origin.strand) && ticks <= one_call_ticks_))
      churn.one_call += origin.stands_for();
    if (!brief) return;
    churn.short_lived += origin.stands_for();
    churn.short_bytes += origin.bytes();
    churn.short_ticks += ticks << origin.weight_log2;
  }

  Answer answer(Reading* reading, const Query& query) override {
    SiteIndex sites(reading, query);
    SiteSums<Churn> found(rows_, &sites);
    const Churn& all = found.all;
    double ns_per_tick = reading->tables().header.ns_per_tick;
    double seconds = std::max(static_cast<double>(time_.ticks()) * ns_per_tick / 1e9, 1e-9);
    auto per_second = [&](uint64_t n) {
      return static_cast<uint64_t>(static_cast<double>(n) / seconds);
    };

    Answer answer;
    answer.headline =
        all.allocations == 0
            ? "No block was allocated"
            : fmt::format(
                  "{} of {} live less than 1 ms: {} a second; {} are freed before the "
                  "thread's next allocation",
                  percent_text(all.short_lived, all.allocations),
                  count_text(all.allocations, "block", "blocks"),
                  grouped(per_second(all.short_lived)),
                  percent_text(all.temporary, all.allocations));
    answer.facts = {{"allocations", all.allocations},
                    {"temporary", all.temporary},
                    {"one_call", all.one_call},
                    {"short_lived", all.short_lived},
                    {"short_lived_bytes", all.short_bytes},
                    {"seconds", seconds}};
    add_totals(*reading, &answer);
    Table table;
    table.key = "sites";
    table.columns = {{"short_lived", "short-lived", Kind::kCount},
                     {"share", "", Kind::kShare},
                     {"short_lived_per_second", "a second", Kind::kCount},
                     {"short_lived_bytes", "bytes", Kind::kBytes, false},
                     {"average_ns", "live for", Kind::kDuration},
                     {"temporary", "temporary", Kind::kCount},
                     {"one_call", "in one call", Kind::kCount},
                     {"allocations", "of all", Kind::kCount, false},
                     {"frame", "site", Kind::kFrame}};
    auto heavier = [](const Churn& a, const Churn& b) {
      return std::pair(a.short_lived, a.allocations) > std::pair(b.short_lived, b.allocations);
    };
    for (size_t i : found.order(sites, heavier)) {
      const Churn& c = found.sites[i];
      TableRow row;
      row.cells = {
          c.short_lived,
          Share{c.short_lived, all.short_lived},
          per_second(c.short_lived),
          c.short_bytes,
          c.short_lived == 0
              ? Cell{}
              : Cell{static_cast<uint64_t>(static_cast<double>(c.short_ticks) * ns_per_tick /
                                           static_cast<double>(c.short_lived))},
          c.temporary,
          c.one_call,
          c.allocations,
          sites.frame(i)};
      table.rows.push_back(std::move(row));
    }
    answer.tables.push_back(std::move(table));
    answer.notes.push_back(
        "Short-lived: freed within 1 ms. In one call is an estimate: freed by the thread that "
        "allocated it, before its next allocation or within 10 us.");
    add_clock_note(*reading, &answer);
    add_filter_note(all.allocations, reading->accounts().totals().allocations, &answer);
    return answer;
  }

 private:
  bool wants(const Block& block) const {
    return block.size >= min_size_ && block.size <= max_size_;
  }

  StackRows<Churn> rows_;
  Origins origins_;
  uint64_t min_size_, max_size_;
  uint64_t from_tick_ = 0, short_ticks_ = 0, one_call_ticks_ = 0;
  TimeSlices time_;
};

}  // namespace

std::unique_ptr<View> churn_view(const Query& query, const ViewOptions&) {
  return std::make_unique<ChurnView>(query);
}

}  // namespace malloscope::analyze
