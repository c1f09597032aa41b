// SPDX-License-Identifier: Apache-2.0
// What mmap took from the kernel and munmap has not given back, by who asked for it. The
// allocator's own calls are apart: the heap is inside of what they map.

#include <fmt/format.h>

#include <algorithm>

#include "analyze/mapped_ranges.h"
#include "analyze/numbers.h"
#include "analyze/view.h"

namespace malloscope::analyze {
namespace {

using Kind = Column::Kind;

struct Mapped {
  uint64_t calls = 0;         // Of mmap, mremap, brk and sbrk, in the window.
  uint64_t mapped_bytes = 0;  // By mmap, in the window.
  uint64_t still_bytes = 0;
  uint64_t still_ranges = 0;

  Mapped& operator+=(const Mapped& other) {
    calls += other.calls;
    mapped_bytes += other.mapped_bytes;
    still_bytes += other.still_bytes;
    still_ranges += other.still_ranges;
    return *this;
  }
};
struct Both {
  Mapped program, allocator;
};

class MappingsView : public View, public HeapObserver {
 public:
  explicit MappingsView(const Query& query) : rows_(query.tells_strands()) {}

  void attach(Heap* heap, const trace::Overview&) override { heap->add_observer(this); }

  void mapped(const wire::Event& event, StrandId strand, bool counts) override {
    if (raw(event.image) >= images_.size()) images_.resize(raw(event.image) + size_t{1});
    images_[raw(event.image)].apply(event, strand);
    if (!counts || event.op == wire::Op::kMunmap || event.flags & wire::kFailed) return;
    Both& both = rows_.at(event.image, event.stack, strand);
    Mapped& sum = event.flags & wire::kInsideAllocator ? both.allocator : both.program;
    ++sum.calls;
    if (event.op == wire::Op::kMmap) sum.mapped_bytes += event.size;
  }

  Answer answer(Reading* reading, const Query& query) override {
    for (uint32_t image = 1; image < images_.size(); ++image)
      images_[image].for_each([&](const MappedRange& range) {
        Both& both = rows_.at(ImageId{image}, range.stack, range.strand);
        Mapped& sum = range.inside_allocator ? both.allocator : both.program;
        sum.still_bytes += range.end - range.begin;
        ++sum.still_ranges;
      });
    SiteIndex sites(reading, query);
    std::vector<Both> found;
    std::vector<const StackRows<Both>::Entry*> heaviest;
    Both all;
    for (const auto& entry : rows_.entries()) {
      std::optional<size_t> site = sites.site_of(entry.image, entry.stack, entry.strand);
      if (!site) continue;
      if (*site >= found.size()) found.resize(*site + 1), heaviest.resize(*site + 1);
      found[*site].program += entry.value.program;
      found[*site].allocator += entry.value.allocator;
      all.program += entry.value.program;
      all.allocator += entry.value.allocator;
      auto weight = [](const Both& both) {
        return both.program.still_bytes + both.allocator.still_bytes;
      };
      if (!heaviest[*site] || weight(entry.value) > weight(heaviest[*site]->value))
        heaviest[*site] = &entry;
    }

    Answer answer;
    answer.headline = fmt::format(
        "{} still mapped by the program and its libraries, in {}; {} by the allocator itself",
        bytes_text(all.program.still_bytes),
        count_text(all.program.still_ranges, "range", "ranges"),
        bytes_text(all.allocator.still_bytes));
    answer.facts = {{"mapped_bytes", all.program.mapped_bytes},
                    {"still_mapped_bytes", all.program.still_bytes},
                    {"allocator_mapped_bytes", all.allocator.mapped_bytes},
                    {"allocator_still_mapped_bytes", all.allocator.still_bytes}};
    add_totals(*reading, &answer);
    answer.tables.push_back(table("sites", "", sites, found, heaviest, &Both::program, all));
    if (all.allocator.calls > 0 || all.allocator.still_ranges > 0)
      answer.tables.push_back(table("allocator_sites", "Mapped by the allocator itself", sites,
                                    found, heaviest, &Both::allocator, all));
    answer.notes.push_back(
        "What is still mapped is address space in whole pages; asked for is what mmap was called "
        "with, ever. Not all of it need be resident; what the loader "
        "and glibc's malloc map inside themselves is not seen.");
    return answer;
  }

 private:
  static Table table(std::string key, std::string title, SiteIndex& sites,
                     const std::vector<Both>& found,
                     const std::vector<const StackRows<Both>::Entry*>& heaviest,
                     Mapped Both::* part, const Both& all) {
    Table table;
    table.key = std::move(key);
    table.title = std::move(title);
    table.columns = {{"still_mapped_bytes", "still mapped", Kind::kBytes},
                     {"share", "", Kind::kShare},
                     {"ranges", "ranges", Kind::kCount},
                     {"calls", "calls", Kind::kCount},
                     {"mapped_bytes", "asked for", Kind::kBytes},
                     {"frame", "site", Kind::kFrame},
                     {"stack", "", Kind::kStack, false}};
    std::vector<size_t> order;
    for (size_t i = 0; i < found.size(); ++i)
      if ((found[i].*part).calls > 0 || (found[i].*part).still_ranges > 0) order.push_back(i);
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      const Mapped &x = found[a].*part, &y = found[b].*part;
      if (x.still_bytes != y.still_bytes) return x.still_bytes > y.still_bytes;
      if (x.mapped_bytes != y.mapped_bytes) return x.mapped_bytes > y.mapped_bytes;
      return sites.frame(a).function < sites.frame(b).function;
    });
    for (size_t i : order) {
      const Mapped& m = found[i].*part;
      TableRow row;
      row.cells = {
          m.still_bytes,
          Share{m.still_bytes, (all.*part).still_bytes},
          m.still_ranges,
          m.calls,
          m.mapped_bytes,
          sites.frame(i),
          named_stack(sites.stack(heaviest[i]->image, heaviest[i]->stack, heaviest[i]->strand))};
      table.rows.push_back(std::move(row));
    }
    return table;
  }

  StackRows<Both> rows_;
  std::vector<MappedRanges> images_;  // By id.
};

}  // namespace

std::unique_ptr<View> mappings_view(const Query& query, const ViewOptions&) {
  return std::make_unique<MappingsView>(query);
}

}  // namespace malloscope::analyze
