// SPDX-License-Identifier: Apache-2.0
// An index: what a trace's events add up to in each of many parts of its time, so that a second
// question needs no second look at the events. It answers only what it can answer exactly as a
// look at all events would (docs/index.md); for anything else it has no answer.

#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analyze/accounts.h"
#include "analyze/index_block.h"
#include "analyze/index_lives.h"
#include "analyze/index_odd_sizes.h"
#include "analyze/index_times.h"
#include "trace/event_stream.h"

namespace malloscope::analyze {

// What is known of the trace besides what belongs to cells.
struct IndexFacts {
  static constexpr uint32_t kNever = UINT32_MAX;

  struct Step {
    uint64_t events = 0;
    bool mixed = false;  // An event of it, or of one before it, came after one of a later step.
    // The highest that all processes together had, with its tick (0: at its beginning), and what
    // they had at its end.
    uint64_t peak_bytes = 0, peak_tick = 0, end_bytes = 0;
  };
  struct Image {
    int pid = 0;
    uint32_t announced = kNever;  // The step that it was told of in.
    uint32_t ended = kNever;      // That of the last event before its end was told of.
    uint32_t gone = kNever;       // That of the end itself; kNever: it was the last that ran.
    // Whether it ended before the highest moment of that step: of all processes, of its own.
    bool before_peak = false, before_own_peak = false;
    uint64_t last_tick = 0;  // Heap::last_tick() when it ended.
    // There are events of it behind its end, or a realloc that did not end: what it had at some
    // moment is not to be told from what became of its blocks.
    bool is_odd = false;
  };
  // Of an image in a step, if anything happened in it.
  struct ImageStep {
    uint32_t step = 0;
    ImageId image = ImageId::kNone;
    Totals change;  // Modulo 2^64.
    Peak peak;      // The highest in the step, with tick 0 if it is what was there before.
  };
  // Of a process in a step, likewise; only if there are several.
  struct ProcessStep {
    uint32_t step = 0;
    int pid = 0;
    uint64_t peak_bytes = 0, peak_tick = 0, end_bytes = 0;
  };
  // A temporary block that was made in one step and freed in another: a window that begins in
  // between has not seen it made, and does not count it.
  struct Straddler {
    uint32_t cell = 0;
    uint32_t made = 0, freed = 0;
    uint32_t blocks = 1;  // What one of a sample stands for.
    uint64_t size = 0;
  };

  // Cells of another kind: what blocks of one size became, whoever allocated them.
  struct Size {
    ImageId image = ImageId::kNone;
    uint64_t size = 0;
  };

  // How many blocks of a thread another, or it itself, freed in a step.
  struct Freed {
    uint32_t step = 0;
    ImageId image = ImageId::kNone;
    ThreadId maker = ThreadId::kNone, freer = ThreadId::kNone;
    uint64_t blocks = 0, bytes = 0;
  };

  IndexTimes times;
  uint64_t events = 0;     // As Tables::events.
  uint64_t last_tick = 0;  // As Heap::last_tick().
  bool several_processes = false;
  std::vector<Step> steps = std::vector<Step>(IndexTimes::kSteps);
  std::vector<Image> images;               // By id - 1.
  std::vector<ImageStep> image_steps;      // By step.
  std::vector<ProcessStep> process_steps;  // By step.
  std::vector<Straddler> straddlers;       // By the step in which they were freed.
  PhasePaths phases;                       // What the cells' strands mean.
  std::vector<Size> sizes;                 // None if there are too many.
  std::vector<Freed> freed;                // By step.
  bool knows_freed = true;                 // Else there would be too many.
};

// What IndexBlockWriter::add has to know of a size.
constexpr uint32_t usual_size(uint64_t size) {
  return size <= UINT32_MAX ? static_cast<uint32_t>(size) : 0;
}

// All that is in totals, for sums and differences of everything.
using TotalsNumbers = std::array<uint64_t, sizeof(Totals) / sizeof(uint64_t)>;
inline TotalsNumbers numbers_of(const Totals& totals) {
  return std::bit_cast<TotalsNumbers>(totals);
}

struct IndexCell {
  ImageId image = ImageId::kNone;
  StackId stack = StackId::kNone;
  StrandId strand = StrandId::kNone;
  unsigned size_class = 0;
  uint32_t usual_size = 0;  // What its first block had: most have the same. 0: nobody knows.
};

// Where the blocks come from; index_file.h has the one that reads files.
class IndexBlocks {
 public:
  virtual ~IndexBlocks() = default;
  // nullptr: nothing happened, or the block is damaged, which `damaged` tells.
  virtual IndexBlockReader* step(uint32_t step) = 0;
  virtual IndexBlockReader* group(uint32_t group) = 0;
  // As step(), but the cells are IndexFacts::sizes.
  virtual IndexBlockReader* sizes(uint32_t step) = 0;
  // What of step() is of other sizes than are usual, unless it tells that itself.
  virtual OddSizesReader* odd_sizes(uint32_t step) = 0;
  // All steps together; the shares of the peak are whole, those of the whole recording.
  virtual IndexBlockReader* whole() = 0;
  // What ended in a step and reached so far, and part `part` of what never ended.
  virtual IndexLivesReader* lives(uint32_t step, uint32_t reach) = 0;
  virtual IndexLivesReader* survivors(size_t part) = 0;
  virtual size_t survivor_parts() const = 0;
  virtual bool damaged() const = 0;
  // Another one that reads the same: each is for one thread.
  virtual std::unique_ptr<IndexBlocks> another() const = 0;
};

class Index {
 public:
  // In the order in which the cells were first met.
  Index(IndexFacts facts, std::vector<IndexCell> cells, std::unique_ptr<IndexBlocks> blocks);

  const IndexFacts& facts() const { return facts_; }
  const std::vector<IndexCell>& cells() const { return cells_; }
  IndexBlockReader::UsualSizes usual_sizes() const { return usual_sizes_; }
  IndexBlocks& blocks() { return *blocks_; }
  // The same for another thread.
  std::unique_ptr<IndexBlocks> other_blocks() const { return blocks_->another(); }

  // Whether a tally of that kind can be answered at all.
  static bool suits(const TallyOptions& options);

  // The accounts as a look at all events gives them; nullptr if that cannot be had from here.
  std::unique_ptr<Accounts> answer(const trace::Tables& tables, Selection selection, Window window,
                                   TallyOptions options);

  // The same without rows.
  std::unique_ptr<Accounts> totals(const trace::Tables& tables, Selection selection, Window window,
                                   TallyOptions options) const;
  // The same, but of rows only what is left of the blocks that were made in the window, as leaks
  // ask for (ask_for_leaks): blocks, bytes, when they were made.
  std::unique_ptr<Accounts> leaks(const trace::Tables& tables, Selection selection, Window window,
                                  TallyOptions options) const;

  // The steps of a window, both with it. Nothing: it does not begin and end where steps do, or what
  // happened in it cannot be told from the rest.
  struct Steps {
    uint32_t first = 0, last = IndexTimes::kSteps - 1;
    bool are_all() const { return first == 0 && last == IndexTimes::kSteps - 1; }
  };
  std::optional<Steps> steps_of(Window window) const;
  // The same, if all that was made before the window can be told from what was made in it.
  std::optional<Steps> parting_steps_of(Window window) const;

  // Which images are selected, by id - 1; none if the index does not suit the tables.
  std::vector<bool> selected(const trace::Tables& tables, Selection selection) const;
  // Whether it suits them, as far as it can be seen without its blocks.
  bool is_of(const trace::Tables& tables) const {
    return tables.images.empty() ? facts_.images.empty() : !selected(tables, {}).empty();
  }

  // The running sum of the selected images in a window: its highest, and the step that is in.
  struct Course {
    Peak peak;
    uint32_t peak_step = IndexFacts::kNever;  // kNever: when the window began.
    bool own = false;                         // Of one process of several.
  };
  Course course(Selection selection, Window window, Steps steps) const;
  // Whether an image had ended when the running sum was highest; what it left does not count then.
  bool is_gone(ImageId image, const Course& course, Steps steps) const;

  // Calls visit(const IndexEntry&) for all changes in steps from `first` to before `end`, in any
  // parts. False: a block is damaged.
  template <typename Visit>
  bool cover(uint32_t first, uint32_t end, Visit&& visit) {
    return cover(blocks_.get(), first, end, visit);
  }
  // The same from `blocks`, which may be read in another thread.
  template <typename Visit>
  bool cover(IndexBlocks* blocks, uint32_t first, uint32_t end, Visit&& visit) const {
    constexpr uint32_t kGroup = IndexTimes::kGroupSteps;
    auto show = [&](IndexBlockReader* block) {
      return block ? block->for_each(usual_sizes_, visit) : !blocks->damaged();
    };
    for (uint32_t step = first; step < end;) {
      if (step % kGroup == 0 && step + kGroup <= end) {
        if (!show(blocks->group(step / kGroup))) return false;
        step += kGroup;
      } else {
        if (!show(blocks->step(step))) return false;
        ++step;
      }
    }
    return true;
  }
  // Calls visit(const OddEntry&) for what happened in these steps to blocks of other sizes than are
  // usual for their cells. `blocks`: see cover().
  template <typename Visit>
  bool cover_odd(IndexBlocks* blocks, uint32_t first, uint32_t end, Visit&& visit) const {
    auto show_single = [&](const IndexEntry& entry, uint64_t size) {
      if (size >= kMayBeMapped) return;  // It is told with the others.
      OddEntry odd;
      static_cast<IndexEntry&>(odd) = entry;
      odd.size = size;
      visit(static_cast<const OddEntry&>(odd));
    };
    for (uint32_t step = first; step < end; ++step) {
      const IndexBlockReader* block = blocks->step(step);
      if (block ? !block->for_each_unusual_single(cells_.size(), show_single) : blocks->damaged())
        return false;
      if (!cover_several_odd(blocks, step, visit)) return false;
    }
    return true;
  }
  // The same of a step, but for what IndexBlockReader::for_each_unusual_single() tells.
  template <typename Visit>
  bool cover_several_odd(IndexBlocks* blocks, uint32_t step, Visit&& visit) const {
    OddSizesReader* odd = blocks->odd_sizes(step);
    return odd ? odd->for_each(cells_.size(), visit) : !blocks->damaged();
  }
  // The same of sizes.
  template <typename Visit>
  bool cover_sizes(uint32_t first, uint32_t end, Visit&& visit) {
    for (uint32_t step = first; step < end; ++step) {
      IndexBlockReader* block = blocks_->sizes(step);
      if (block ? !block->for_each(sizes_themselves_, visit) : blocks_->damaged()) return false;
    }
    return true;
  }
  // The amounts of all sizes in a window, but for temporary blocks. False: a block is damaged.
  bool sum_sizes(Selection selection, Window window, Steps steps, std::vector<IndexEntry>* sizes);

  // Calls visit(const IndexLife&) for all blocks that were live at the end of step `last`: those
  // that ended later, or never.
  template <typename Visit>
  bool for_each_live(uint32_t last, Visit&& visit) const {
    std::unique_ptr<IndexBlocks> blocks = blocks_->another();
    auto if_born = [&](const IndexLife& life) {
      if (life.born <= last) visit(life);
    };
    auto show = [&](const IndexLivesReader* lives) {
      return lives ? lives->for_each_straddler(cells_.size(), if_born) : !blocks->damaged();
    };
    for (uint32_t reach = 1; reach < kReaches; ++reach) {
      uint32_t end = std::min(last + (1u << 2 * reach), IndexTimes::kSteps);
      for (uint32_t step = last + 1; step < end; ++step)
        if (!show(blocks->lives(step, reach))) return false;
    }
    for (size_t part = 0; part < blocks->survivor_parts(); ++part)
      if (!show(blocks->survivors(part))) return false;
    return true;
  }
  // For all that ended in steps from `first` to before `end`. Their births are told if they may be
  // before step `since`; else they are IndexLife::kUntold. `blocks`: see cover().
  template <typename Visit>
  bool for_each_ended(IndexBlocks* blocks, uint32_t since, uint32_t first, uint32_t end,
                      Visit&& visit) const {
    auto show = [&](const IndexLivesReader& lives, bool told) {
      if (!told) return lives.for_each(cells_.size(), visit);
      return lives.for_each_inner(cells_.size(), visit) &&
             lives.for_each_straddler(cells_.size(), visit);
    };
    for (uint32_t step = first; step < end; ++step)
      for (uint32_t reach = 0; reach < kReaches; ++reach) {
        const IndexLivesReader* lives = blocks->lives(step, reach);
        bool told = step + 1 < since + (1u << 2 * reach);
        if (lives ? !show(*lives, told) : blocks->damaged()) return false;
      }
    return true;
  }
  // Calls half(i, blocks, first, end) for the two halves of the steps, each in a thread. What is
  // between two cuts, with the second of them, is in one half (slice_of in index_curves.h).
  template <typename Half>
  bool in_two(Steps steps, Half&& half) const {
    uint32_t end = steps.last + 1;
    uint32_t middle = std::max(steps.first, (steps.first + (end - steps.first) / 2) & ~1u);
    std::unique_ptr<IndexBlocks> blocks[2] = {blocks_->another(), blocks_->another()};
    auto second = std::async(std::launch::async | std::launch::deferred,
                             [&] { return half(1, blocks[1].get(), middle, end); });
    bool good = half(0, blocks[0].get(), steps.first, middle);
    return second.get() && good;
  }

  // Calls visit(half, const IndexLife&) for all that ended in these steps, in two threads: `half`
  // is 0 or 1. Births are told if they may be before the steps.
  template <typename Visit>
  bool for_each_ended_in_two(Steps steps, Visit&& visit) const {
    return in_two(steps, [&](size_t half, IndexBlocks* blocks, uint32_t from, uint32_t to) {
      return for_each_ended(blocks, steps.first, from, to,
                            [&](const IndexLife& life)
                                __attribute__((always_inline)) { visit(half, life); });
    });
  }
  // The same with all births, only of cells that wants(cell) says.
  template <typename Wants, typename Visit>
  bool for_each_born_ended_in_two(Steps steps, Wants&& wants, Visit&& visit) const {
    return in_two(steps, [&](size_t half, IndexBlocks* blocks, uint32_t from, uint32_t to) {
      return for_each_born_ended(blocks, from, to, wants,
                                 [&](const IndexLife& life) { visit(half, life); });
    });
  }
  template <typename Wants, typename Visit>
  bool for_each_born_ended(IndexBlocks* blocks, uint32_t first, uint32_t end, Wants&& wants,
                           Visit&& visit) const {
    for (uint32_t step = first; step < end; ++step)
      for (uint32_t reach = 0; reach < kReaches; ++reach) {
        const IndexLivesReader* lives = blocks->lives(step, reach);
        if (lives ? !lives->for_each_born(cells_.size(), wants, visit) : blocks->damaged())
          return false;
      }
    return true;
  }
  // Calls visit(cell, blocks) for every temporary block that was freed in these steps but made
  // before them.
  template <typename Visit>
  void for_each_straddler(Steps steps, Visit&& visit) const {
    for (const IndexFacts::Straddler& block : facts_.straddlers)
      if (straddles(block, steps)) visit(block.cell, block.blocks);
  }
  static bool straddles(const IndexFacts::Straddler& block, Steps steps) {
    return block.made < steps.first && steps.first <= block.freed && block.freed <= steps.last;
  }

  // The amounts of all cells over the whole recording, with the shares of its peak, put together
  // from the steps: what IndexBlocks::whole() is to give. Nothing: a block is damaged.
  std::optional<PackedBlock> pack_whole();

 private:
  bool sum(const Course& course, Steps steps, std::vector<IndexEntry>* cells);
  // Of cells of either kind: cover(first, end, visit) shows their changes, image_of(cell) tells
  // their image.
  template <typename Cover, typename ImageOf>
  bool sum(const Course& course, Steps steps, Cover&& cover, ImageOf&& image_of,
           std::vector<IndexEntry>* sums) const;
  void restore_images(const trace::Tables& tables, Window window, Steps steps,
                      Accounts* accounts) const;

  IndexFacts facts_;
  std::vector<IndexCell> cells_;
  std::vector<uint32_t> usual_sizes_;       // Of the cells.
  std::vector<uint32_t> sizes_themselves_;  // Of IndexFacts::sizes, as far as they are usual.
  std::unique_ptr<IndexBlocks> blocks_;
};

}  // namespace malloscope::analyze
