// SPDX-License-Identifier: Apache-2.0
// Which sizes are asked for: exactly, by powers of two, and over time. A realloc counts
// with what it added, for the size that it made; so every column adds up. An index tells the same.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analyze/cell_rows.h"
#include "analyze/numbers.h"
#include "analyze/profile_views.h"
#include "analyze/view.h"
#include "base/attributes.h"

namespace malloscope::analyze {
namespace {

using Kind = Column::Kind;

struct Slice {
  uint64_t allocations = 0;
  uint64_t reallocations = 0;
  uint64_t allocated_bytes = 0;
  uint64_t largest = 0;
  int64_t live_change = 0;
};
constexpr size_t kSlices = 10;
using Slices = std::array<Slice, kSlices>;

// Parts of a window's time, about equally long and at most kSlices: they begin and end where an
// index cuts the time.
class CutSlices {
 public:
  CutSlices() = default;
  CutSlices(const Window& window, const IndexTimes& times) {
    const auto& cuts = times.cuts;
    begins_ = {std::max(window.from_tick, cuts.front())};
    uint64_t to = std::max(std::min(window.to_tick, cuts.back()), begins_[0] + 1);
    auto first = std::ranges::upper_bound(cuts, begins_[0]) - cuts.begin() - 1;
    auto last = std::ranges::lower_bound(cuts, to) - cuts.begin();
    auto count = std::clamp<ptrdiff_t>(last - first, 1, kSlices);
    for (ptrdiff_t i = 1; i < count; ++i)
      begins_.push_back(cuts[static_cast<size_t>(first + (last - first) * i / count)]);
    begins_.push_back(to);
  }
  size_t count() const { return begins_.size() - 1; }
  size_t of(uint64_t tick) const {
    size_t slice = 0;
    for (size_t i = 1; i < count(); ++i) slice += tick >= begins_[i];
    return slice;
  }
  uint64_t begin(size_t slice) const { return begins_[slice]; }  // begin(count()): the end.

 private:
  std::vector<uint64_t> begins_;
};

// All that the answer is made of.
struct Sizes {
  std::map<uint64_t, Amounts> exact;
  std::array<Amounts, 65> classes = {};
  Amounts total;
  Slices over_time = {};

  void add(uint64_t size, const Amounts& amounts) {
    exact[size] += amounts;
    classes[size_class(size)] += amounts;
    total += amounts;
  }
};

// What is added up for every size; most blocks are small.
class NumbersBySize {
 public:
  using Numbers = IndexSums::Numbers;
  MSCOPE_FAST Numbers& at(uint64_t size) {
    return size < small_.size() ? small_[size] : large_[size];
  }
  template <typename Visit>
  void for_each(Visit&& visit) const {
    for (uint64_t size = 0; size < small_.size(); ++size) visit(size, small_[size]);
    for (const auto& [size, numbers] : large_) visit(size, numbers);
  }

 private:
  std::vector<Numbers> small_ = std::vector<Numbers>(4096);
  std::unordered_map<uint64_t, Numbers> large_;
};

class SizesView : public View, public HeapObserver {
 public:
  explicit SizesView(const Query& query)
      : by_stack_(!query.frames.empty() || query.tells_strands()),
        rows_(query.tells_strands()),
        min_size_(query.tally.min_size),
        max_size_(query.tally.max_size) {}

  // Stacks matter only where some are left out; without them there are far fewer rows.
  void prepare(Query* query) override {
    query->tally.by_size = query->tally.exact_size = true;
    query->tally.by_stack = by_stack_;
  }

  void attach(Heap* heap, const trace::Overview& overview) override {
    slices_ = CutSlices(heap->window(), IndexTimes(overview.header, overview.end_tick));
    heap->add_observer(this);
  }

  void made(ImageId image, const Block& block, const wire::Event&, bool counts) override {
    if (!wants(block)) return;
    Slice& slice = slice_of(image, block, block.born_tick);
    slice.live_change += static_cast<int64_t>(block.bytes());
    if (!counts) return;
    slice.allocations += block.stands_for();
    slice.allocated_bytes += block.bytes();
    slice.largest = std::max(slice.largest, block.size);
  }
  void changed(ImageId image, const Block& before, const Block& now, const wire::Event&,
               bool counts) override {
    if (wants(before))
      slice_of(image, before, now.born_tick).live_change -= static_cast<int64_t>(before.bytes());
    if (!wants(now)) return;
    Slice& slice = slice_of(image, now, now.born_tick);
    slice.live_change += static_cast<int64_t>(now.bytes());
    if (!counts) return;
    ++slice.reallocations;
    if (now.bytes() > before.bytes()) slice.allocated_bytes += now.bytes() - before.bytes();
    slice.largest = std::max(slice.largest, now.size);
  }
  void gone(ImageId image, const Block& block, End, const wire::Event& event, bool) override {
    if (wants(block))
      slice_of(image, block, event.tick).live_change -= static_cast<int64_t>(block.bytes());
  }

  bool restore(const IndexedWindow& from) override {
    Index& index = from.index;
    const std::vector<IndexFacts::Size>& sizes = index.facts().sizes;
    if (by_stack_) return restore_part(from);
    if (sizes.empty()) return false;
    slices_ = CutSlices(from.window, index.facts().times);
    auto counts = [&](size_t i) {
      return from.images[raw(sizes[i].image) - 1] && sizes[i].size >= min_size_ &&
             sizes[i].size <= max_size_;
    };
    std::vector<IndexEntry> sums;
    if (!index.sum_sizes(from.query.selection, from.window, from.steps, &sums)) return false;
    restored_.emplace();
    for (size_t i = 0; i < sums.size(); ++i) {
      Amounts amounts;
      amounts.allocations = sums[i].allocations;
      amounts.reallocations = sums[i].reallocations;
      amounts.allocated_bytes = sums[i].allocated_bytes;
      amounts.live_bytes = static_cast<uint64_t>(sums[i].live_bytes);
      amounts.live_blocks = static_cast<uint64_t>(sums[i].live_blocks);
      amounts.peak_bytes = static_cast<uint64_t>(sums[i].peak_bytes);
      if (has_any(amounts) && counts(i)) restored_->add(sizes[i].size, amounts);
    }
    uint32_t step = 0;
    auto add = [&](uint32_t end, Slice* slice, bool in_window) {
      uint32_t first = std::exchange(step, end);
      return index.cover_sizes(first, end, [&](const IndexEntry& entry) {
        if (!counts(entry.cell)) return;
        slice->live_change += entry.live_bytes;
        if (!in_window) return;
        slice->allocations += entry.allocations;
        slice->reallocations += entry.reallocations;
        slice->allocated_bytes += entry.allocated_bytes;
        if (entry.allocations > 0 || entry.reallocations > 0)
          slice->largest = std::max(slice->largest, sizes[entry.cell].size);
      });
    };
    if (!add(from.steps.first, restored_->over_time.data(), false)) return false;
    for (size_t i = 0; i < slices_.count(); ++i) {
      uint32_t end = from.steps.last + 1;
      if (i + 1 < slices_.count()) {
        end = index.facts().times.step_of(slices_.begin(i + 1));
        if (index.facts().steps[end - 1].mixed) return false;
      }
      if (!add(end, &restored_->over_time[i], true)) return false;
    }
    return true;
  }

  Answer answer(Reading* reading, const Query& query) override {
    const Sizes sizes = restored_ ? std::move(*restored_) : sizes_of(reading, query);
    Answer answer;
    answer.headline = sentence(sizes.exact, sizes.total);
    answer.facts = {{"different_sizes", uint64_t{sizes.exact.size()}}};
    add_totals(*reading, &answer);
    answer.tables.push_back(exact_table(sizes.exact, sizes.total));
    answer.tables.push_back(class_table(sizes.classes, sizes.total));
    answer.tables.push_back(time_table(sizes.over_time, reading->tables()));
    add_filter_note(sizes.total.allocations, reading->accounts().totals().allocations, &answer);
    return answer;
  }

 private:
  bool wants(const Block& block) const {
    return block.size >= min_size_ && block.size <= max_size_;
  }

  // The same of some stacks, threads or phases.
  bool restore_part(const IndexedWindow& from) {
    const Index& index = from.index;
    slices_ = CutSlices(from.window, index.facts().times);
    for (size_t i = 1; i < slices_.count(); ++i)
      if (index.facts().steps[index.facts().times.step_of(slices_.begin(i)) - 1].mixed)
        return false;
    restored_.emplace();
    return restore_exact(from) && restore_slices(from);
  }

  // Each cell as if all its blocks had the usual size; then what has another is moved there.
  bool restore_exact(const IndexedWindow& from) {
    const std::vector<bool>& counts = from.asked_cells;
    const std::vector<IndexCell>& cells = from.index.cells();
    std::map<std::pair<ImageId, uint64_t>, uint32_t> known;
    std::vector<uint64_t> size_of_row;
    std::vector<uint32_t> row_of_cell(cells.size(), IndexSums::kNobody);
    for (size_t i = 0; i < cells.size(); ++i) {
      if (!counts[i]) continue;
      auto [place, fresh] = known.try_emplace({cells[i].image, cells[i].usual_size},
                                              static_cast<uint32_t>(size_of_row.size()));
      if (fresh) size_of_row.push_back(cells[i].usual_size);
      row_of_cell[i] = place->second;
    }
    IndexSums::Wanted wanted = IndexSums::all();
    wanted[IndexSums::kTemporary] = false;
    IndexSums::Amounts sums;
    if (!from.sums.sum(from.query.selection, from.window, from.steps, wanted,
                       {row_of_cell, size_of_row.size()}, &sums))
      return false;
    using Numbers = IndexSums::Numbers;
    NumbersBySize halves[2];
    auto add = [](const Numbers& numbers, uint64_t sign, Numbers* to) {
      for (size_t i = 0; i < to->size(); ++i) (*to)[i] += sign * numbers[i];
    };
    for (size_t row = 0; row < size_of_row.size(); ++row) {
      Numbers numbers = {};
      for (size_t i = 0; i < numbers.size(); ++i)
        if (wanted[i]) numbers[i] = sums[i][row];
      add(numbers, 1, &halves[0].at(size_of_row[row]));
    }
    Index::Course course = from.index.course(from.query.selection, from.window, from.steps);
    bool good = from.sums.for_each_odd(
        course, from.steps, wanted,
        [&](size_t half, const OddEntry& entry, const Numbers& numbers) {
          if (!counts[entry.cell]) return;
          add(numbers, 1, &halves[half].at(entry.size));
          add(numbers, ~uint64_t{0}, &halves[half].at(from.index.usual_sizes()[entry.cell]));
        });
    halves[1].for_each(
        [&](uint64_t size, const Numbers& numbers) { add(numbers, 1, &halves[0].at(size)); });
    halves[0].for_each([&](uint64_t size, const Numbers& numbers) {
      Amounts amounts;
      amounts.allocations = numbers[IndexSums::kAllocations];
      amounts.reallocations = numbers[IndexSums::kReallocations];
      amounts.allocated_bytes = numbers[IndexSums::kAllocatedBytes];
      amounts.live_bytes = numbers[IndexSums::kLiveBytes];
      amounts.live_blocks = numbers[IndexSums::kLiveBlocks];
      amounts.peak_bytes = numbers[IndexSums::kPeakBytes];
      if (has_any(amounts) && size >= min_size_ && size <= max_size_) restored_->add(size, amounts);
    });
    return good;
  }

  // What happened to cells in a step, and what of it is of which size, both added up.
  bool restore_slices(const IndexedWindow& from) {
    std::vector<uint32_t> one_row;
    for (bool cell : from.asked_cells) one_row.push_back(cell ? 0 : IndexSums::kNobody);
    std::optional<IndexSums::CutSizes> cut =
        cut_classes(from.index, min_size_, max_size_, &one_row);
    const IndexSums::Rows rows = {one_row, 1, cut ? &*cut : nullptr};
    const IndexBlockReader::Counting counting(from.index.usual_sizes(), one_row);
    uint64_t largest_usual = 0;
    for (size_t i = 0; i < one_row.size(); ++i)
      if (one_row[i] != IndexSums::kNobody)
        largest_usual = std::max<uint64_t>(largest_usual, from.index.usual_sizes()[i]);
    Slices halves[2] = {};
    bool good = from.index.in_two(
        from.steps, [&](size_t half, IndexBlocks* blocks, uint32_t first, uint32_t end) {
          for (uint32_t step = first; step < end; ++step) {
            size_t slice = slices_.of(from.index.facts().times.begin_of(step));
            if (!add_step(from.index, blocks, step, rows, counting, largest_usual,
                          &halves[half][slice]))
              return false;
          }
          return true;
        });
    int64_t change = 0;
    for (size_t i = 0; i < kSlices; ++i) {
      Slice& slice = restored_->over_time[i];
      for (const Slices& half : halves) {
        slice.allocations += half[i].allocations;
        slice.reallocations += half[i].reallocations;
        slice.allocated_bytes += half[i].allocated_bytes;
        slice.live_change += half[i].live_change;
        slice.largest = std::max(slice.largest, half[i].largest);
      }
      change += slice.live_change;
    }
    // What was there before the window.
    restored_->over_time[0].live_change +=
        static_cast<int64_t>(restored_->total.live_bytes) - change;
    return good;
  }

  // `counting`: of the rows. `largest_usual`: of the usual sizes of their cells.
  static bool add_step(const Index& index, IndexBlocks* blocks, uint32_t step,
                       const IndexSums::Rows& rows, const IndexBlockReader::Counting& counting,
                       uint64_t largest_usual, Slice* slice) {
    const IndexBlockReader* block = blocks->step(step);
    if (!block) return !blocks->damaged();
    IndexBlockReader::Sum sum;
    if (!block->sum(counting, &sum)) return false;
    slice->allocations += sum.allocations;
    slice->reallocations += sum.reallocations;
    slice->allocated_bytes += sum.allocated_bytes;
    slice->live_change += static_cast<int64_t>(sum.live_bytes);
    if (!rows.cut) slice->largest = std::max(slice->largest, sum.largest);
    // Cells of which several blocks were made, maybe of the usual size. Whether one was is asked
    // only where it would be the largest.
    auto calls = [](const IndexEntry& entry) { return entry.allocations + entry.reallocations; };
    std::unordered_map<uint32_t, uint64_t> several;
    auto if_larger = [&](const IndexEntry& entry) {
      if (calls(entry) > 0 && rows.of_cell[entry.cell] != IndexSums::kNobody &&
          index.usual_sizes()[entry.cell] > slice->largest)
        several[entry.cell] = calls(entry);
    };
    bool good = slice->largest >= largest_usual ||
                (rows.cut ? block->for_each(index.usual_sizes(), if_larger)
                          : block->for_each_several(index.cells().size(), if_larger));
    uint64_t largest = 0;
    auto add_odd = [&](const OddEntry& odd) {
      bool is_asked = rows.row_of(odd.cell, odd.size) != IndexSums::kNobody;
      if (is_asked && calls(odd) > 0) largest = std::max(largest, odd.size);
      bool is_usual = odd.size == index.usual_sizes()[odd.cell];  // Though it is mapped.
      if (!several.empty() && !is_usual)
        if (auto found = several.find(odd.cell); found != several.end())
          found->second -= calls(odd);
      if (!rows.cut) return;
      int64_t sign = rows.share(odd.cell, odd.size).sign;
      auto factor = static_cast<uint64_t>(sign);
      slice->allocations += factor * odd.allocations;
      slice->reallocations += factor * odd.reallocations;
      slice->allocated_bytes += factor * odd.allocated_bytes;
      slice->live_change += sign * odd.live_bytes;
    };
    good = good && (rows.cut ? index.cover_odd(blocks, step, step + 1, add_odd)
                             : index.cover_several_odd(blocks, step, add_odd));
    slice->largest = std::max(slice->largest, largest);
    for (const auto& [cell, left] : several)
      if (left > 0) slice->largest = std::max<uint64_t>(slice->largest, index.usual_sizes()[cell]);
    return good;
  }

  static bool has_any(const Amounts& amounts) {
    return value(amounts, Metric::kCalls) > 0 || amounts.live_blocks > 0 || amounts.peak_bytes > 0;
  }

  // What was seen of the events.
  Sizes sizes_of(Reading* reading, const Query& query) const {
    Sizes sizes;
    RowSelector selector(reading, query);
    std::vector<FrameId> shown;
    reading->accounts().tally().for_each_row([&](const Row& row) {
      if (!by_stack_ || selector.select(row, &shown)) sizes.add(row.size, row.amounts);
    });
    for (const auto& entry : rows_.entries()) {
      Row row;
      row.image = entry.image, row.stack = entry.stack, row.strand = entry.strand;
      if (by_stack_ && !selector.select(row, &shown)) continue;
      for (size_t i = 0; i < kSlices; ++i) {
        Slice& slice = sizes.over_time[i];
        slice.allocations += entry.value[i].allocations;
        slice.reallocations += entry.value[i].reallocations;
        slice.allocated_bytes += entry.value[i].allocated_bytes;
        slice.largest = std::max(slice.largest, entry.value[i].largest);
        slice.live_change += entry.value[i].live_change;
      }
    }
    return sizes;
  }

  Slice& slice_of(ImageId image, const Block& block, uint64_t tick) {
    return rows_.at(image, by_stack_ ? block.stack : StackId::kNone,
                    block.strand)[slices_.of(tick)];
  }

  static std::string sentence(const std::map<uint64_t, Amounts>& exact, const Amounts& total) {
    uint64_t before = 0, asked_for = 0;  // Bytes, without what realloc made of the blocks.
    for (const auto& [size, amounts] : exact) asked_for += size * amounts.allocations;
    for (const auto& [size, amounts] : exact) {
      before += amounts.allocations;
      if (before * 2 < total.allocations || total.allocations == 0) continue;
      std::string grown;
      if (total.allocated_bytes > asked_for)
        grown = fmt::format(" and {} by realloc", bytes_text(total.allocated_bytes - asked_for));
      return fmt::format("Half of {} ask for {} or less, {} on average; {} together{}",
                         count_text(total.allocations, "allocation", "allocations"),
                         bytes_text(size), bytes_text(asked_for / total.allocations),
                         bytes_text(asked_for), grown);
    }
    return "No block was allocated";
  }

  static std::vector<Column> columns(Column first) {
    return {std::move(first),
            {"allocations", "allocations", Kind::kCount},
            {"share", "", Kind::kShare, true, true},
            {"reallocations", "reallocs", Kind::kCount, false},
            {"allocated_bytes", "allocated", Kind::kBytes},
            {"bytes_share", "", Kind::kShare, true, true},
            {"peak_bytes", "at peak", Kind::kBytes},
            {"live_bytes", "live at end", Kind::kBytes},
            {"live_blocks", "live blocks", Kind::kCount, true, true}};
  }
  static TableRow row(Cell first, const Amounts& a, const Amounts& total) {
    TableRow row;
    row.cells = {
        std::move(first), a.allocations,     Share{a.allocations, total.allocations},
        a.reallocations,  a.allocated_bytes, Share{a.allocated_bytes, total.allocated_bytes},
        a.peak_bytes,     a.live_bytes,      a.live_blocks};
    return row;
  }

  static Table exact_table(const std::map<uint64_t, Amounts>& exact, const Amounts& total) {
    Table table;
    table.key = "sizes";
    table.title = "The sizes most asked for";
    table.columns = columns({"size", "size", Kind::kCount});
    std::vector<std::pair<uint64_t, const Amounts*>> order;
    for (const auto& [size, amounts] : exact) order.emplace_back(size, &amounts);
    std::ranges::stable_sort(order, [](const auto& a, const auto& b) {
      return value(*a.second, Metric::kCalls) > value(*b.second, Metric::kCalls);
    });
    for (const auto& [size, amounts] : order) table.rows.push_back(row(size, *amounts, total));
    return table;
  }

  static Table class_table(const std::array<Amounts, 65>& classes, const Amounts& total) {
    Table table;
    table.key = "classes";
    table.title = "By powers of two";
    table.list = false;
    table.columns = columns({"range", "size", Kind::kText});
    table.columns.push_back({"from_size", "", Kind::kCount, false});
    for (unsigned k = 0; k < classes.size(); ++k) {
      const Amounts& a = classes[k];
      if (value(a, Metric::kCalls) == 0 && a.live_blocks == 0 && a.peak_bytes == 0) continue;
      table.rows.push_back(row(size_range(k), a, total));
      table.rows.back().cells.emplace_back(k == 0 ? uint64_t{0} : uint64_t{1} << (k - 1));
    }
    return table;
  }

  Table time_table(const Slices& slices, const trace::Tables& tables) const {
    Table table;
    table.key = "slices";
    table.title = "Over time";
    table.list = false;
    table.columns = {{"from_ns", "from", Kind::kTime},
                     {"to_ns", "to", Kind::kTime},
                     {"allocations", "allocations", Kind::kCount},
                     {"reallocations", "reallocs", Kind::kCount, false},
                     {"allocated_bytes", "allocated", Kind::kBytes},
                     {"average_size", "average", Kind::kBytes},
                     {"largest_size", "largest", Kind::kBytes},
                     {"live_bytes", "live at its end", Kind::kBytes}};
    int64_t live = 0;
    for (size_t i = 0; i < slices_.count(); ++i) {
      const Slice& slice = slices[i];
      live += slice.live_change;
      uint64_t calls = slice.allocations + slice.reallocations;
      table.rows.push_back({{tables.time_ns(slices_.begin(i)), tables.time_ns(slices_.begin(i + 1)),
                             slice.allocations, slice.reallocations, slice.allocated_bytes,
                             calls == 0 ? Cell{} : Cell{slice.allocated_bytes / calls},
                             slice.largest, static_cast<uint64_t>(std::max<int64_t>(live, 0))}});
    }
    return table;
  }

  bool by_stack_;
  CutSlices slices_;
  StackRows<Slices> rows_;
  std::optional<Sizes> restored_;
  uint64_t min_size_, max_size_;
};

}  // namespace

std::unique_ptr<View> sizes_view(const Query& query, const ViewOptions&) {
  return std::make_unique<SizesView>(query);
}

}  // namespace malloscope::analyze
