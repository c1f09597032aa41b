// SPDX-License-Identifier: Apache-2.0
// How long blocks live. Every block that was allocated in the window counts once, for the
// site that allocated it first: a realloc goes on with its life. If the trace has the stacks of
// frees, also who frees what.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <tuple>

#include "analyze/log_histogram.h"
#include "analyze/numbers.h"
#include "analyze/origins.h"
#include "analyze/small_numbers.h"
#include "analyze/view.h"

namespace malloscope::analyze {
namespace {

using Kind = Column::Kind;

// How many blocks lived so long and were so large, both by powers of two. A stack mostly has a few
// of the many cells.
class LifeBySize {
 public:
  static constexpr uint8_t kNeverFreed = 65;
  struct Cell {
    uint8_t life_width, size_width;
    uint64_t blocks, bytes;
  };
  void add(uint8_t life_width, const Block& block) {
    add({life_width, static_cast<uint8_t>(std::bit_width(uint64_t{block.size})), block.stands_for(),
         block.bytes()});
  }
  void add(const Cell& more) {
    for (Cell& cell : cells_)
      if (cell.life_width == more.life_width && cell.size_width == more.size_width) {
        cell.blocks += more.blocks;
        cell.bytes += more.bytes;
        return;
      }
    cells_.push_back(more);
  }
  LifeBySize& operator+=(const LifeBySize& other) {
    for (const Cell& cell : other.cells_) add(cell);
    return *this;
  }
  // Ordered by lifetime, then by size.
  std::vector<Cell> cells() const {
    std::vector<Cell> ordered = cells_;
    std::ranges::sort(ordered, {}, [](const Cell& c) { return c.life_width << 8 | c.size_width; });
    return ordered;
  }

 private:
  std::vector<Cell> cells_;
};

// Of the blocks of a stack, or of a site.
struct Lives {
  uint64_t blocks = 0;
  uint64_t never_freed = 0;
  LogHistogram ended_ns;
  LifeBySize by_size;

  Lives& operator+=(const Lives& other) {
    blocks += other.blocks;
    never_freed += other.never_freed;
    ended_ns += other.ended_ns;
    by_size += other.by_size;
    return *this;
  }
};

// The lives of very many blocks, as an index tells of them. Those of a site and a size class are a
// place, where every step of a histogram has its sum: what is added is added once.
class LivesByPlace {
 public:
  explicit LivesByPlace(size_t places) : places_(places) {}

  MSCOPE_FAST void add(size_t place, uint64_t ns, const IndexLife& life) {
    Place& to = places_[place];
    if (!to.steps) [[unlikely]]
      to.steps = std::make_unique<Sum[]>(LogHistogram::kSteps);
    Sum& sum = to.steps[LogHistogram::step_of(ns)];
    sum.blocks += life.blocks;
    sum.bytes += life.bytes;
    if (ns > to.longest_ns) [[unlikely]]
      to.longest_ns = ns;
  }
  void add_left(size_t place, const IndexLife& life) {
    places_[place].left.blocks += life.blocks;
    places_[place].left.bytes += life.bytes;
  }
  // To the site and to all. `shortest`: widths below it are not told apart.
  void add_to(size_t place, size_t site, unsigned size_width, uint8_t shortest,
              SiteSums<Lives>* sums) const {
    const Place& from = places_[place];
    Lives lives;
    auto add = [&](uint8_t life_width, const Sum& sum) {
      lives.blocks += sum.blocks;
      lives.by_size.add({life_width, static_cast<uint8_t>(size_width), sum.blocks, sum.bytes});
    };
    for (uint16_t step = 0; from.steps && step < LogHistogram::kSteps; ++step) {
      const Sum& sum = from.steps[step];
      if (sum.blocks == 0) continue;
      lives.ended_ns.restore(step, sum.blocks, from.longest_ns);
      auto width = static_cast<uint8_t>(std::bit_width(LogHistogram::low_of(step)));
      add(std::max(width, shortest), sum);
    }
    if (from.left.blocks > 0) add(LifeBySize::kNeverFreed, from.left);
    lives.never_freed = from.left.blocks;
    sums->sites[site] += lives;
    sums->all += lives;
  }

 private:
  struct Sum {
    uint64_t blocks = 0, bytes = 0;
  };
  // Not in a cache line with what another thread adds to.
  struct alignas(64) Place {
    std::unique_ptr<Sum[]> steps;
    uint64_t longest_ns = 0;
    Sum left;
  };

  std::vector<Place> places_;
};

class LifetimesView : public View, public HeapObserver {
 public:
  explicit LifetimesView(const Query& query)
      : rows_(query.tells_strands()),
        min_size_(query.tally.min_size),
        max_size_(query.tally.max_size) {}

  void attach(Heap* heap, const trace::Overview& overview) override {
    from_tick_ = heap->window().from_tick;
    ns_per_tick_ = overview.header.ns_per_tick;
    has_free_stacks_ = overview.header.has_free_stacks();
    heap->add_observer(this);
  }

  void found(ImageId image, const BlockTable& live) override {
    origins_.found(image, live, from_tick_);
  }
  void made(ImageId image, const Block& block, const wire::Event&, bool counts) override {
    if (counts && wants(block))
      rows_.at(image, block.stack, block.strand).blocks += block.stands_for();
  }
  void changed(ImageId image, const Block& before, const Block& now, const wire::Event&,
               bool) override {
    origins_.changed(image, before, now);
  }
  void gone(ImageId image, const Block& block, End, const wire::Event& event, bool) override {
    Block origin = origins_.take(image, block);
    if (origin.born_tick < from_tick_ || !wants(origin)) return;
    Lives& lives = rows_.at(image, origin.stack, origin.strand);
    uint64_t ticks = event.tick > origin.born_tick ? event.tick - origin.born_tick : 0;
    auto ns = static_cast<uint64_t>(static_cast<double>(ticks) * ns_per_tick_);
    lives.ended_ns.add(ns, origin.stands_for());
    lives.by_size.add(std::max(static_cast<uint8_t>(std::bit_width(ns)), first_width()), origin);
    if (!has_free_stacks_) return;
    Ended& ended = ended_[{image, origin.stack, origin.strand, event.stack, event.thread}];
    ended.blocks += block.stands_for();
    ended.bytes += block.bytes();
    ended.ns.add(ns, block.stands_for());
  }
  void left(ImageId image, const BlockTable& live) override {
    live.for_each([&](const Block& block) {
      Block origin = origins_.take(image, block);
      if (origin.born_tick < from_tick_ || !wants(origin)) return;
      Lives& lives = rows_.at(image, origin.stack, origin.strand);
      lives.never_freed += origin.stands_for();
      lives.by_size.add(LifeBySize::kNeverFreed, origin);
    });
  }

  bool restore(const IndexedWindow& from) override {
    const trace::Header& header = from.reading.tables().header;
    if (header.has_free_stacks()) return false;  // Who frees what, only events tell.
    ns_per_tick_ = header.ns_per_tick;
    cell_sites_ = from.cell_sites();
    const SiteIndex& sites = cell_sites_->sites();
    const std::vector<IndexCell>& cells = from.index.cells();
    std::vector<uint32_t> place_of(cells.size(), kNobody);
    std::vector<std::pair<size_t, unsigned>> places;  // Site and size class.
    std::vector<uint32_t> known(sites.size() * kClasses, kNobody);
    for (size_t i = 0; i < cells.size(); ++i) {
      uint32_t site = cell_sites_->of(i);
      if (site == CellSites::kNobody) continue;
      uint32_t& place = known[site * kClasses + cells[i].size_class];
      if (place == kNobody) {
        place = static_cast<uint32_t>(places.size());
        places.emplace_back(site, cells[i].size_class);
      }
      place_of[i] = place;
    }
    LivesByPlace halves[2] = {LivesByPlace(places.size()), LivesByPlace(places.size())};
    bool good = with_small_numbers(
        place_of, places.size(), [&](const auto& small) { return add_lives(from, small, halves); });
    restored_.emplace(sites.size());
    for (const LivesByPlace& half : halves)
      for (size_t i = 0; i < places.size(); ++i)
        half.add_to(i, places[i].first, places[i].second, first_width(), &*restored_);
    return good;
  }

  Answer answer(Reading* reading, const Query& query) override {
    std::optional<SiteIndex> own_sites;
    if (!restored_) {
      own_sites.emplace(reading, query);
      restored_.emplace(rows_, &*own_sites);
    }
    const SiteIndex& sites = own_sites ? *own_sites : cell_sites_->sites();
    const SiteSums<Lives>& lives = *restored_;
    const Lives& all = lives.all;

    if (reading->accounts().window().to_tick < reading->end_tick())
      not_freed_ = fmt::format("not freed by {}", duration_text(reading->range().to_ns));
    Answer answer;
    if (all.blocks == 0)
      answer.headline = "No block was allocated";
    else if (all.never_freed == all.blocks)
      answer.headline =
          fmt::format("None of {} was freed", count_text(all.blocks, "block", "blocks"));
    else
      answer.headline = fmt::format(
          "Half of the blocks {}live no longer than {}, nine in ten {}; {} of {} are {}",
          all.never_freed > 0 ? "that are freed " : "", at_least_a_tick(all.ended_ns.quantile(0.5)),
          at_least_a_tick(all.ended_ns.quantile(0.9)), percent_text(all.never_freed, all.blocks),
          grouped(all.blocks), not_freed_);
    answer.facts = {{"blocks", all.blocks},
                    {"never_freed", all.never_freed},
                    {"median_ns", all.ended_ns.quantile(0.5)},
                    {"p90_ns", all.ended_ns.quantile(0.9)},
                    {"longest_ns", all.ended_ns.highest()}};
    add_totals(*reading, &answer);
    answer.tables.push_back(by_site(sites, lives.sites, all));
    if (has_free_stacks_) answer.tables.push_back(by_freeing_site(reading, query, &*own_sites));
    answer.tables.push_back(histogram(all));
    answer.tables.push_back(map(all));
    answer.notes.push_back(
        "median, p90 and longest are of blocks that were freed; the first two to within 6 %, or a "
        "tick of the clock, 100 ns. A realloc goes on with a block's life.");
    add_clock_note(*reading, &answer);
    add_filter_note(all.blocks, reading->accounts().totals().allocations, &answer);
    return answer;
  }

 private:
  static constexpr uint32_t kNobody = UINT32_MAX, kClasses = 65;

  template <unsigned kBits>
  bool add_lives(const IndexedWindow& from, const SmallNumbers<kBits>& place_of,
                 LivesByPlace (&halves)[2]) const {
    constexpr uint32_t kNoPlace = SmallNumbers<kBits>::kNobody;
    IndexedWindow::Sizes sizes[2] = {IndexedWindow::Sizes(from), IndexedWindow::Sizes(from)};
    auto place_if_counts = [&](size_t half, const IndexLife& life) {
      bool counts = (life.roles & IndexLife::kLived) && life.born >= from.steps.first;
      return counts && sizes[half].has(life) ? place_of[life.cell] : kNoPlace;
    };
    bool good = from.index.for_each_ended_in_two(
        from.steps, [&](size_t half, const IndexLife& life) __attribute__((always_inline)) {
          uint32_t place = place_if_counts(half, life);
          if (place == kNoPlace) return;
          auto ticks = static_cast<double>(static_cast<int64_t>(life.longest_ticks));
          halves[half].add(place, static_cast<uint64_t>(static_cast<int64_t>(ticks * ns_per_tick_)),
                           life);
        });
    good = good && from.index.for_each_live(from.steps.last, [&](const IndexLife& life) {
      if (uint32_t place = place_if_counts(0, life); place != kNoPlace)
        halves[0].add_left(place, life);
    });
    return good && sizes[0].knows() && sizes[1].knows();
  }

  // What is shorter than a tick of the clock was measured as nothing.
  std::string at_least_a_tick(uint64_t ns) const {
    return duration_text(std::max(ns, static_cast<uint64_t>(std::ceil(ns_per_tick_))));
  }
  bool wants(const Block& block) const {
    return block.size >= min_size_ && block.size <= max_size_;
  }

  Table by_site(const SiteIndex& sites, const std::vector<Lives>& lives, const Lives& all) const {
    Table table;
    table.key = "sites";
    table.columns = {{"blocks", "blocks", Kind::kCount},
                     {"share", "", Kind::kShare},
                     {"median_ns", "median", Kind::kDuration},
                     {"p90_ns", "p90", Kind::kDuration},
                     {"longest_ns", "longest", Kind::kDuration},
                     {"never_freed", not_freed_, Kind::kCount},
                     {"frame", "site", Kind::kFrame}};
    std::vector<size_t> order(lives.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      if (lives[a].blocks != lives[b].blocks) return lives[a].blocks > lives[b].blocks;
      const NamedFrame &f = sites.frame(a), &g = sites.frame(b);
      return std::tie(f.function, f.file, f.line, f.module, f.full, f.column) <
             std::tie(g.function, g.file, g.line, g.module, g.full, g.column);
    });
    for (size_t i : order) {
      const Lives& l = lives[i];
      if (l.blocks == 0) continue;  // Nothing of it was allocated in the window.
      TableRow row;
      row.cells = {l.blocks, Share{l.blocks, all.blocks}};
      if (l.never_freed == l.blocks)  // There is no lifetime to tell.
        row.cells.resize(5);
      else
        for (uint64_t ns :
             {l.ended_ns.quantile(0.5), l.ended_ns.quantile(0.9), l.ended_ns.highest()})
          row.cells.emplace_back(ns);
      row.cells.emplace_back(l.never_freed);
      row.cells.emplace_back(sites.frame(i));
      table.rows.push_back(std::move(row));
    }
    return table;
  }

  // Allocating site x freeing site. The filters are about the stack that allocated.
  Table by_freeing_site(Reading* reading, const Query& query, SiteIndex* sites) const {
    Query unfiltered = query;
    unfiltered.frames = {};
    unfiltered.threads.clear();
    unfiltered.phases.clear();
    SiteIndex freeing(reading, unfiltered);
    std::map<std::pair<size_t, size_t>, Ended> pairs;
    uint64_t all = 0;
    for (const auto& [key, ended] : ended_) {
      std::optional<size_t> made = sites->site_of(key.image, key.made, key.made_by);
      if (!made) continue;
      pairs[{*made, *freeing.site_of(key.image, key.freed, plain_strand(key.freed_by))}] += ended;
      all += ended.blocks;
    }
    Table table;
    table.key = "freed_by";
    table.title = "Who frees what";
    table.columns = {{"blocks", "freed", Kind::kCount},
                     {"share", "", Kind::kShare},
                     {"bytes", "bytes", Kind::kBytes},
                     {"median_ns", "median", Kind::kDuration},
                     {"allocated_by", "allocated by", Kind::kText},
                     {"frame", "freed by", Kind::kFrame}};
    for (const auto& [pair, ended] : pairs) {
      const NamedFrame& made = sites->frame(pair.first);
      TableRow row;
      row.cells = {ended.blocks,
                   Share{ended.blocks, all},
                   ended.bytes,
                   ended.ns.quantile(0.5),
                   made.file.empty()
                       ? made.function
                       : fmt::format("{} {}:{}", made.function,
                                     made.file.substr(made.file.rfind('/') + 1), made.line),
                   freeing.frame(pair.second)};
      table.rows.push_back(std::move(row));
    }
    std::stable_sort(table.rows.begin(), table.rows.end(), [](const auto& a, const auto& b) {
      return std::get<uint64_t>(a.cells[0]) > std::get<uint64_t>(b.cells[0]);
    });
    return table;
  }

  Table histogram(const Lives& all) const {
    Table table;
    table.key = "histogram";
    table.title = "All blocks, by how long they lived";
    table.list = false;
    table.columns = {{"from_ns", "from", Kind::kDuration, false},
                     {"below_ns", "to below", Kind::kDuration, false},
                     {"blocks", "blocks", Kind::kCount},
                     {"share", "", Kind::kShare},
                     {"lived", "lived", Kind::kText}};
    auto add = [&](Cell from, Cell below, uint64_t blocks, std::string lived) {
      table.rows.push_back({{std::move(from), std::move(below), blocks, Share{blocks, all.blocks},
                             std::move(lived)}});
    };
    unsigned first = first_width() + 1u, highest = 0;
    for (unsigned k = first; k < 64; ++k)
      if (all.ended_ns.of_width(k) > 0) highest = k;
    uint64_t shorter = 0, bound = uint64_t{1} << (first - 1);
    for (unsigned k = 0; k < first; ++k) shorter += all.ended_ns.of_width(k);
    if (shorter > 0)
      add(uint64_t{0}, bound, shorter, fmt::format("less than {}", duration_text(bound)));
    for (unsigned k = first; k <= highest; ++k) {
      uint64_t low = uint64_t{1} << (k - 1), blocks = all.ended_ns.of_width(k);
      if (table.rows.empty() && blocks == 0) continue;
      add(low, low * 2, blocks,
          fmt::format("{} to below {}", duration_text(low), duration_text(low * 2)));
    }
    if (all.never_freed > 0) add({}, {}, all.never_freed, not_freed_);
    return table;
  }

  // How long against how large.
  Table map(const Lives& all) const {
    Table table;
    table.key = "map";
    table.title = "Lifetime by size";
    table.list = table.in_text = false;
    table.columns = {
        {"from_ns", "lived from", Kind::kDuration}, {"below_ns", "to below", Kind::kDuration},
        {"from_size", "size from", Kind::kBytes},   {"below_size", "to below", Kind::kBytes},
        {"blocks", "blocks", Kind::kCount},         {"bytes", "bytes", Kind::kBytes}};
    auto low = [](unsigned width) { return width == 0 ? 0 : uint64_t{1} << (width - 1); };
    for (const LifeBySize::Cell& cell : all.by_size.cells()) {
      bool freed = cell.life_width != LifeBySize::kNeverFreed;
      bool shortest = cell.life_width == first_width();
      TableRow row;
      row.cells = {freed ? Cell(shortest ? 0 : low(cell.life_width)) : Cell(),
                   freed ? Cell(low(cell.life_width + 1u)) : Cell(),
                   low(cell.size_width),
                   low(cell.size_width + 1u),
                   cell.blocks,
                   cell.bytes};
      table.rows.push_back(std::move(row));
    }
    return table;
  }

  // Lifetimes of so many bits and fewer are not told apart: what is shorter than a tick of the
  // clock was measured as nothing.
  uint8_t first_width() const {
    auto tick = static_cast<uint8_t>(std::bit_width(static_cast<uint64_t>(ns_per_tick_)));
    return tick == 0 ? 0 : tick - 1;
  }

  // Blocks that were allocated by the one stack and freed by the other.
  struct Pair {
    ImageId image;
    StackId made;
    StrandId made_by;
    StackId freed;
    ThreadId freed_by;
    auto operator<=>(const Pair&) const = default;
  };
  struct Ended {
    uint64_t blocks = 0;
    uint64_t bytes = 0;
    LogHistogram ns;

    Ended& operator+=(const Ended& other) {
      blocks += other.blocks;
      bytes += other.bytes;
      ns += other.ns;
      return *this;
    }
  };

  StackRows<Lives> rows_;
  std::shared_ptr<const CellSites> cell_sites_;
  std::optional<SiteSums<Lives>> restored_;  // By site.
  std::map<Pair, Ended> ended_;
  bool has_free_stacks_ = false;
  Origins origins_;
  uint64_t min_size_, max_size_;
  uint64_t from_tick_ = 0;
  double ns_per_tick_ = 1;
  std::string not_freed_ = "never freed";  // Or not by the end of the range.
};

}  // namespace

std::unique_ptr<View> lifetimes_view(const Query& query, const ViewOptions&) {
  return std::make_unique<LifetimesView>(query);
}

}  // namespace malloscope::analyze
