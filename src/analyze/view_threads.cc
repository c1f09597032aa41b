// SPDX-License-Identifier: Apache-2.0
// Who allocates and who frees. A block belongs to the thread that allocated it, or that
// reallocated it last; what another thread frees has crossed over, which allocators pay for.

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analyze/numbers.h"
#include "analyze/site_groups.h"
#include "analyze/small_numbers.h"
#include "analyze/view.h"

namespace malloscope::analyze {
namespace {

using Kind = Column::Kind;

class ThreadsView : public View, public HeapObserver {
 public:
  explicit ThreadsView(const Query& query)
      : by_stack_(!query.frames.empty() || query.tells_strands()),
        min_size_(query.tally.min_size),
        max_size_(query.tally.max_size) {}

  void prepare(Query* query) override { query->tally.by_thread = true; }
  void attach(Heap* heap, const trace::Overview&) override { heap->add_observer(this); }

  void gone(ImageId image, const Block& block, End how, const wire::Event& event,
            bool counts) override {
    if (!counts || how == End::kLost || block.size < min_size_ || block.size > max_size_) return;
    if (raw(image) >= freed_.size()) freed_.resize(raw(image) + size_t{1});
    Freed& freed =
        freed_[raw(image)].at(by_stack_ ? block.stack : StackId::kNone, block.strand, event.thread);
    freed.blocks += block.stands_for();
    freed.bytes += block.bytes();
  }

  bool restore(const IndexedWindow& from) override {
    cell_sites_ = from.cell_sites();
    SiteGroups of(from.index, *cell_sites_, from.query.tally);
    IndexSums::Wanted wanted = IndexSums::all();
    wanted[IndexSums::kTemporary] = wanted[IndexSums::kPeakBytes] = false;
    if (!of.sum(from, wanted)) return false;
    auto maker = [&](size_t number) -> const SiteGroups::Strand& { return of.strands[number]; };
    for (const SiteGroups::Group& group : of.groups)
      add_line(maker(group.strand).image, thread_of(maker(group.strand).strand), group.site,
               {group.amounts});

    freed_.resize(from.images.size() + 1);
    auto add = [&](const SiteGroups::Strand& by, ThreadId freer, const Freed& freed) {
      if (freed.blocks > 0) freed_[raw(by.image)].at(StackId::kNone, by.strand, freer) += freed;
    };
    bool some = std::exchange(by_stack_, false);  // All that is there counts.
    const IndexFacts& facts = from.index.facts();
    if (!some && min_size_ == 0 && max_size_ == UINT64_MAX && facts.knows_freed) {
      for (const IndexFacts::Freed& here : facts.freed)
        if (here.step >= from.steps.first && here.step <= from.steps.last &&
            from.images[raw(here.image) - 1])
          add({here.image, plain_strand(here.maker)}, here.freer, {here.blocks, here.bytes});
      return true;
    }
    // By maker, and by whom else. Not in a cache line with what the other half adds to.
    struct alignas(64) Own : Freed {};
    struct alignas(64) Half {
      std::vector<Own> own;
      std::map<std::pair<size_t, ThreadId>, Freed> others;
    };
    Half halves[2];
    for (Half& half : halves) half.own.resize(of.strands.size());
    std::vector<uint32_t> maker_of = std::move(of.group_of_cell);
    for (uint32_t& group : maker_of)
      if (group != SiteGroups::kNobody) group = of.groups[group].strand;
    IndexedWindow::Sizes sizes[2] = {IndexedWindow::Sizes(from), IndexedWindow::Sizes(from)};
    bool good = with_small_numbers(maker_of, of.strands.size(), [&]<typename N>(const N& small) {
      return from.index.for_each_ended_in_two(from.steps, [&](size_t half, const IndexLife& life) {
        size_t by = small[life.cell];
        if (by == N::kNobody || !(life.roles & IndexLife::kFreed) || !sizes[half].has(life)) return;
        Freed& freed = life.by_maker ? halves[half].own[by] : halves[half].others[{by, life.freer}];
        freed += {life.blocks, life.bytes};
      });
    });
    for (const Half& half : halves) {
      for (size_t i = 0; i < of.strands.size(); ++i)
        add(maker(i), thread_of(maker(i).strand), half.own[i]);
      for (const auto& [key, freed] : half.others) add(maker(key.first), key.second, freed);
    }
    return good && sizes[0].knows() && sizes[1].knows();
  }

  Answer answer(Reading* reading, const Query& query) override {
    RowSelector selector(reading, query);
    std::optional<SiteIndex> own_sites;
    if (!cell_sites_) {
      own_sites.emplace(reading, query);
      reading->accounts().tally().for_each_row([&](const Row& row) {
        if (std::optional<size_t> site = own_sites->site_of(row.image, row.stack, row.strand))
          add_line(row.image, thread_of(row.strand), *site, row.amounts);
      });
    }
    const SiteIndex& sites = own_sites ? *own_sites : cell_sites_->sites();
    std::vector<FrameId> shown;
    std::map<std::pair<ImageId, ThreadId>, Line> lines = std::move(lines_);
    std::map<std::tuple<ImageId, ThreadId, ThreadId>, Freed> matrix;
    Line all;
    for (const auto& [key, line] : lines) all.amounts += line.amounts;
    for (uint32_t image = 1; image < freed_.size(); ++image)
      for (const auto& [key, freed] : freed_[image].all) {
        Row row;
        row.image = ImageId{image}, row.stack = key.stack, row.strand = key.maker;
        if (by_stack_ && !selector.select(row, &shown)) continue;
        ThreadId maker = thread_of(key.maker);
        matrix[{row.image, maker, key.freer}] += freed;
        bool own = maker == key.freer;
        (own ? lines[{row.image, key.freer}].own : lines[{row.image, key.freer}].others) += freed;
        if (!own) lines[{row.image, maker}].by_others += freed;
        (own ? all.own : all.others) += freed;
      }

    Answer answer;
    uint64_t frees = all.own.blocks + all.others.blocks;
    answer.headline =
        fmt::format("{} of {} are of another thread's blocks ({}); {}",
                    percent_text(all.others.blocks, frees), count_text(frees, "free", "frees"),
                    bytes_text(all.others.bytes), count_text(lines.size(), "thread", "threads"));
    answer.facts = {{"frees", frees},
                    {"frees_of_others", all.others.blocks},
                    {"freed_of_others_bytes", all.others.bytes}};
    add_totals(*reading, &answer);

    Table table;
    table.key = "threads";
    // Who frees whose blocks is what the view is about; the rest stays as there is room.
    table.columns = {{"allocations", "allocations", Kind::kCount},
                     {"share", "", Kind::kShare, true, true},
                     {"allocated_bytes", "allocated", Kind::kBytes, true, true},
                     {"reallocations", "reallocs", Kind::kCount, false},
                     {"live_bytes", "live", Kind::kBytes, false},
                     {"own_frees", "frees own", Kind::kCount},
                     {"frees_of_others", "of others", Kind::kCount},
                     {"freed_by_others", "by others", Kind::kCount},
                     {"pid", "", Kind::kCount, false},
                     {"thread", "thread", Kind::kText},
                     {"frame", "most calls in", Kind::kFrame, true, true}};
    for (const auto& [key, line] : lines) {
      const trace::Image& image = reading->tables().image(key.first);
      TableRow row;
      row.cells = {line.amounts.allocations,
                   Share{line.amounts.allocations, all.amounts.allocations},
                   line.amounts.allocated_bytes,
                   line.amounts.reallocations,
                   line.amounts.live_bytes,
                   line.own.blocks,
                   line.others.blocks,
                   line.by_others.blocks,
                   static_cast<uint64_t>(image.pid),
                   thread_name(image, key.second),
                   value(line.amounts, Metric::kCalls) > 0
                       ? sites.frame(heaviest_site(line.sites, sites))
                       : NamedFrame{"(allocates nothing)", "", 0, ""}};
      table.rows.push_back(std::move(row));
    }
    heaviest_rows_first(&table, 0);
    answer.tables.push_back(std::move(table));

    Table pairs;
    pairs.key = "matrix";
    pairs.title = "Who frees whose blocks";
    pairs.columns = {{"frees", "frees", Kind::kCount},
                     {"share", "", Kind::kShare},
                     {"freed_bytes", "bytes", Kind::kBytes},
                     {"pid", "", Kind::kCount, false},
                     {"allocated_by", "allocated by", Kind::kText},
                     {"freed_by", "freed by", Kind::kText}};
    for (const auto& [key, freed] : matrix) {
      const auto& [image_id, maker, freer] = key;
      const trace::Image& image = reading->tables().image(image_id);
      TableRow row;
      row.cells = {freed.blocks,
                   Share{freed.blocks, frees},
                   freed.bytes,
                   static_cast<uint64_t>(image.pid),
                   thread_name(image, maker),
                   maker == freer ? std::string("itself") : thread_name(image, freer)};
      pairs.rows.push_back(std::move(row));
    }
    heaviest_rows_first(&pairs, 0);
    // Those that stay in one thread are told above.
    std::ranges::stable_partition(pairs.rows, [](const TableRow& row) {
      return std::get<std::string>(row.cells[5]) != "itself";
    });
    answer.tables.push_back(std::move(pairs));
    if (all.others.blocks > 0)
      answer.notes.push_back(fmt::format(
          "Which code frees what another allocated, {}",
          reading->tables().header.has_free_stacks()
              ? "--view lifetimes tells."
              : "--view lifetimes tells of a program recorded with malloscope run --free-stacks."));
    add_filter_note(all.amounts.allocations, reading->accounts().totals().allocations, &answer);
    return answer;
  }

 private:
  struct Freed {
    uint64_t blocks = 0;
    uint64_t bytes = 0;
    Freed& operator+=(const Freed& other) {
      blocks += other.blocks;
      bytes += other.bytes;
      return *this;
    }
  };
  struct Line {
    Amounts amounts;
    std::map<size_t, uint64_t> sites;  // Calls, by the site's number.
    Freed own, others, by_others;
  };
  // What only had a share of the peak is none of this view's.
  void add_line(ImageId image, ThreadId thread, size_t site, const Amounts& amounts) {
    uint64_t calls = value(amounts, Metric::kCalls);
    if (calls == 0 && amounts.live_blocks == 0) return;
    Line& line = lines_[{image, thread}];
    line.amounts += amounts;
    line.sites[site] += calls;
  }
  // Of one image.
  struct FreedTable {
    struct Key {
      StackId stack;  // kNone unless stacks are asked for.
      StrandId maker;
      ThreadId freer;
      bool operator==(const Key&) const = default;
    };
    struct Hash {
      size_t operator()(const Key& key) const {
        uint64_t h = (uint64_t{raw(key.stack)} << 32 | raw(key.maker)) * 0x9e3779b97f4a7c15;
        h = (h ^ raw(key.freer)) * 0xd6e8feb86659fd93;
        return h ^ h >> 32;
      }
    };
    std::unordered_map<Key, Freed, Hash> all;
    // Most frees are like the one before.
    Key last_key = {};
    Freed* last = nullptr;

    Freed& at(StackId stack, StrandId maker, ThreadId freer) {
      Key key = {stack, maker, freer};
      if (!last || !(key == last_key)) last = &all[key], last_key = key;
      return *last;
    }
  };

  static void heaviest_rows_first(Table* table, size_t column) {
    std::ranges::stable_sort(table->rows, [column](const TableRow& a, const TableRow& b) {
      return std::get<uint64_t>(a.cells[column]) > std::get<uint64_t>(b.cells[column]);
    });
  }

  bool by_stack_;
  uint64_t min_size_, max_size_;
  std::shared_ptr<const CellSites> cell_sites_;  // If it was restored.
  std::map<std::pair<ImageId, ThreadId>, Line> lines_;
  std::deque<FreedTable> freed_;  // By image; stay where they are.
};

}  // namespace

std::unique_ptr<View> threads_view(const Query& query, const ViewOptions&) {
  return std::make_unique<ThreadsView>(query);
}

}  // namespace malloscope::analyze
