// SPDX-License-Identifier: Apache-2.0
// What every stack allocated, still holds and held at the peak. Where it is asked
// for, apart for each thread, phase and size class, and with times and lifetimes.

#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <unordered_set>
#include <utility>
#include <vector>

#include "analyze/heap.h"
#include "analyze/origins.h"
#include "analyze/usable_size.h"
#include "base/pieces.h"

namespace malloscope::analyze {

// What is counted for every stack: with a word beside it, a cache line.
struct Counts {
  uint64_t allocations = 0;
  uint64_t reallocations = 0;
  uint64_t allocated_bytes = 0;
  uint64_t live_bytes = 0;
  uint64_t live_blocks = 0;
  uint64_t temporary = 0;
  uint64_t peak_bytes = 0;  // The share of the peak.
};

// Of a stack, or of all stacks of a site.
struct Amounts : Counts {
  // Filled in by Reading::for_each_row, if the tally was asked for them.
  uint64_t lifetime_ns = 0;     // Lived by all blocks together; stays at its end, 584 years.
  uint64_t allocator_ns = 0;    // Spent in the allocator, by calls for its blocks.
  uint64_t overhead_bytes = 0;  // Set aside beyond what was asked for, by all calls together.
  // Of rows that Tally::add_cpu gave.
  uint64_t cpu_ns = 0;
  uint64_t cpu_samples = 0;

  Amounts& operator+=(const Amounts& other);
};

inline constexpr unsigned kPeriods = 10;

// What is kept only where TallyOptions asks for it.
struct Details {
  uint64_t first_tick = UINT64_MAX;  // Of the blocks made in the window.
  uint64_t last_tick = 0;
  uint64_t lifetime_ticks = 0;  // Of all blocks, the live ones up to the end of their image.
  uint64_t freed_blocks = 0;    // In the window.
  uint64_t freed_bytes = 0;
  uint64_t largest_block = 0;
  uint64_t live_first_tick = UINT64_MAX;  // Of the blocks that are left.
  uint64_t live_last_tick = 0;
  uint64_t most_bytes = 0;   // The highest that its own live bytes were, in the window ...
  uint64_t most_blocks = 0;  // ... and its blocks then. Of several rows the sum, an upper bound.
  uint64_t peak_blocks = 0;  // Its blocks at the peak of all.
  // Bit k: one of them was born in the k-th of kPeriods equal parts of its image's time in the
  // window. What leaks again and again has many, what was made once at the start has one.
  uint32_t live_periods = 0;
  // Beyond what was asked for, if the allocator were the one or the other; see TallyOptions.
  UsableBytes overhead_bytes = {};
  uint64_t call_cycles = 0;  // Of all calls that made, changed or freed them.

  Details& operator+=(const Details& other);
};

struct TallyOptions {
  bool by_thread = false;
  bool by_phase = false;    // By all phases that were open; see phases.h.
  bool by_size = false;     // By power of two.
  bool exact_size = false;  // With by_size: by the size itself.
  bool by_stack = true;     // False: all stacks in one row; no stack can be asked for then.
  bool details = false;
  bool overhead = false;    // With details: Details::overhead_bytes too.
  bool call_times = false;  // With details: Details::call_cycles too.
  bool cpu = false;         // CPU time and nothing of blocks: see Reading::open.
  // Blocks outside are not looked at. A realloc may bring a block in or take it out.
  uint64_t min_size = 0;
  uint64_t max_size = UINT64_MAX;
  // Few stacks have anything: a place for each of the others would be most of the work.
  bool sparse = false;
  // Only blocks that were made in the window, not those that it found: what leaks ask for.
  bool only_made_in_window = false;

  bool operator==(const TallyOptions&) const = default;

  // As much of a strand as rows are kept apart by.
  StrandId told_apart(StrandId strand) const {
    if (by_phase) return by_thread ? strand : without_thread(strand);
    return by_thread ? plain_strand(thread_of(strand)) : StrandId::kNone;
  }
};

// 0 for 0, else 1 + the logarithm: class k holds sizes from 2^(k-1) to 2^k - 1.
constexpr unsigned size_class(uint64_t size) {
  return size == 0 ? 0 : 64 - static_cast<unsigned>(__builtin_clzll(size));
}

struct SizeBounds {
  uint64_t least, most;
};
constexpr SizeBounds sizes_of_class(unsigned size_class) {
  if (size_class == 0) return {0, 0};
  uint64_t least = uint64_t{1} << (size_class - 1);
  return {least, 2 * (least - 1) + 1};
}
// Whether only some of its sizes are from `least` to `most`.
constexpr bool cuts_class(uint64_t least, uint64_t most, unsigned size_class) {
  SizeBounds of = sizes_of_class(size_class);
  return (of.least < least && least <= of.most) || (of.least <= most && most < of.most);
}

struct Row {
  ImageId image = ImageId::kNone;
  StackId stack = StackId::kNone;
  StrandId strand = StrandId::kNone;  // With the thread if by_thread, with the phases if by_phase.
  unsigned size_class = 0;            // 0 unless by_size.
  uint64_t size = 0;                  // 0 unless exact_size.
  Amounts amounts;
  Details details;  // Empty unless asked for.
};

class Tally : public HeapObserver {
 public:
  // The heap that it observes must outlive it.
  explicit Tally(Heap* heap, TallyOptions options = {});

  const TallyOptions& options() const { return options_; }

  // Calls visit(const Row&) for every row with anything in it. The shares of the peak add up to
  // heap.peak().bytes and the others to its totals, unless blocks were left out.
  template <typename Visit>
  void for_each_row(Visit&& visit) const {
    for (uint32_t image = 1; image < images_.size(); ++image)
      for (size_t i = 0; i < images_[image].cells.size(); ++i)
        if (std::optional<Row> row = row_at(ImageId{image}, i)) visit(*row);
    for (const Row& row : cpu_) visit(row);
  }

  // Rows of another kind, behind the others: of CPU time, which no block tells (cpu_samples.h).
  void add_cpu(std::vector<Row> rows) { cpu_ = std::move(rows); }

  // Instead of being told of blocks: adds what became of those of one stack, strand and size
  // class, as far as their sizes are asked for. In the order in which a look at all blocks would
  // have met them. See index.h.
  void restore(ImageId image, StackId stack, StrandId strand, unsigned size_class,
               const Counts& counts);

  // Likewise, adds blocks that are left.
  struct Left {
    uint64_t blocks = 0, bytes = 0;
    uint64_t first_tick = UINT64_MAX, last_tick = 0;
    uint32_t periods = 0;
  };
  void restore(ImageId image, StackId stack, StrandId strand, unsigned size_class,
               const Left& left);

  // The k-th of kPeriods equal parts of the time from `begin` to `end`.
  static unsigned period(uint64_t tick, uint64_t begin, uint64_t end) {
    if (tick <= begin || end <= begin) return 0;
    double share = static_cast<double>(tick - begin) / static_cast<double>(end - begin);
    return std::min(static_cast<unsigned>(share * kPeriods), kPeriods - 1);
  }

  bool has_much() const override { return plain_ && has_much_; }
  void expect(ImageId image, StackId stack) const override {
    if (raw(image) >= images_.size() || raw(stack) >= images_[raw(image)].cells.size()) return;
    __builtin_prefetch(&images_[raw(image)].cells[raw(stack)], 1);
  }
  void image_started(const trace::Image& image) override;
  void found(ImageId image, const BlockTable& live) override;
  void made(ImageId image, const Block& block, const wire::Event& event, bool counts) override;
  void changed(ImageId image, const Block& before, const Block& now, const wire::Event& event,
               bool counts) override;
  void gone(ImageId image, const Block& block, End how, const wire::Event& event,
            bool counts) override;
  void timed(ImageId image, const Block& block, uint64_t cycles, bool counts) override;
  void left(ImageId image, const BlockTable& live) override;
  void image_ended(ImageId image) override;

 private:
  // A cache line. `peak_bytes` counts only if `peak_epoch` is the last one.
  struct Cell : Counts {
    uint64_t peak_epoch = 0;
  };
  struct Key {
    StackId stack;
    StrandId strand;
    uint64_t size;  // Or its class, or 0.
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    size_t operator()(const Key& key) const {
      uint64_t h = uint64_t{raw(key.stack)} << 32 | uint64_t{raw(key.strand)} << 6;
      h = (h ^ key.size * 0xd6e8feb86659fd93) * 0x9e3779b97f4a7c15;
      return h ^ h >> 29;
    }
  };
  struct ImageCells {
    bool ended = false;
    uint64_t start_tick = 0;
    Pieces<Cell> cells;
    Pieces<Details> details;  // Beside `cells`.
    // With a row for each stack alone, a cell's place is the stack's number.
    std::vector<Key> keys;
    std::vector<uint32_t> places;  // Open addressing: a key's number, + 1.
    // Blocks not looked at although their size and birth would be right: they were there
    // before the window, or were reallocated from one that was.
    std::unordered_set<BlockKey, BlockKeyHash> strangers;
  };

  bool wants(const ImageCells& cells, const Block& block) const;
  ImageCells& cells_of(ImageId image);
  size_t place_of(ImageCells& cells, const Block& block);
  // Where what is restored belongs; nothing if it is not looked at.
  std::optional<size_t> place_to_restore(ImageCells& cells, StackId stack, StrandId strand,
                                         unsigned size_class);
  static size_t place_of(ImageCells& cells, const Key& key);
  void add_overhead(const Block& block, Details* details) const;
  // The cell, its share of the peak so far made safe from the change to come.
  Cell& touch(ImageCells& cells, size_t place);
  // Before its live bytes sink: a maximum is always there, or at the end.
  void keep_most(ImageCells& cells, size_t place, bool counts);
  std::optional<Row> row_at(ImageId image, size_t place) const;

  const Heap& heap_;
  TallyOptions options_;
  bool plain_;                      // A row for each stack alone.
  bool has_much_ = false;           // An image has more cells than fit into caches.
  std::vector<ImageCells> images_;  // By id.
  std::vector<Row> cpu_;
};

}  // namespace malloscope::analyze
