// SPDX-License-Identifier: Apache-2.0
// What an index's cells add up to in any range of its steps, again and again, for whoever asks many
// questions: what the cells had come to at some moments is kept, so that a question costs the
// steps from the nearest of these moments, not from the beginning. Which cells count, and which of
// them belong together, each question says anew. Each kind of amount lies by itself, since most
// questions are about one.

#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "analyze/index.h"
#include "analyze/tally.h"

namespace malloscope::analyze {

class IndexSums {
 public:
  static constexpr uint32_t kNobody = UINT32_MAX;
  // The index must outlive it. `most_bytes`: for what is kept.
  IndexSums(Index* index, size_t most_bytes);

  // Sizes that are asked for, where they do not begin and end with size classes.
  struct CutSizes {
    uint64_t least = 0, most = UINT64_MAX;
    std::vector<uint32_t> row_of_cell;  // Of cells whose class is cut; of others kNobody.

    bool has(uint64_t size) const { return size >= least && size <= most; }
  };

  // Cells that are put together.
  struct Rows {
    const std::vector<uint32_t>& of_cell;  // kNobody: it does not count. Those of a row are of
                                           // one image.
    size_t count;
    // Null: no class is cut. Else a cell of such a class has its row above if its usual size is
    // asked for, and what is of other sizes is added or taken away.
    const CutSizes* cut = nullptr;

    // Of the part of a cell that an entry is about, the row, and whether it is to be added, 1, or
    // taken away, -1. 0: neither.
    struct Share {
      uint32_t row;
      int64_t sign;
    };
    Share share(uint32_t cell, uint64_t size) const {
      uint32_t row = cut->row_of_cell[cell];
      if (row == kNobody) return {row, 0};
      return {row, int64_t{cut->has(size)} - int64_t{of_cell[cell] != kNobody}};
    }
    // The row of blocks of a cell that have that size.
    uint32_t row_of(uint32_t cell, uint64_t size) const {
      uint32_t of_cut = cut ? cut->row_of_cell[cell] : kNobody;
      if (of_cut == kNobody) return of_cell[cell];
      return cut->has(size) ? of_cut : kNobody;
    }
  };

  enum Amount : uint8_t {
    kAllocations,
    kReallocations,
    kTemporary,
    kAllocatedBytes,
    kLiveBytes,  // At the end of the range.
    kLiveBlocks,
    kPeakBytes,  // The shares of its highest moment.
  };
  static constexpr size_t kAmounts = 7;
  using Amounts = std::array<std::vector<uint64_t>, kAmounts>;  // By row; empty if not asked for.
  using Wanted = std::array<bool, kAmounts>;
  static uint64_t Counts::* part_of(size_t amount);
  static constexpr Wanted all() { return {true, true, true, true, true, true, true}; }

  // False: a block of the index is damaged.
  bool sum(Selection selection, Window window, Index::Steps steps, const Wanted& wanted,
           const Rows& rows, Amounts* sums);

  // Calls visit(half, const OddEntry&, const Numbers&) for all that is of other sizes than are
  // usual for its cell, with what of it counts in the range, in two threads: `half` is 0 or 1.
  using Numbers = std::array<uint64_t, kAmounts>;
  template <typename Visit>
  bool for_each_odd(const Index::Course& course, Index::Steps steps, const Wanted& wanted,
                    Visit&& visit) const;

  // Goes on keeping moments; false when there is no more to do. A step takes some ten milliseconds.
  bool prepare();

 private:
  // All but the peak, from the beginning of the recording on; changes of what is live.
  static constexpr size_t kFlows = kPeakBytes;
  using Flows = std::array<std::vector<uint64_t>, kFlows>;
  // Numbers of cells, in 32 bits unless one is larger.
  struct Kept {
    std::vector<uint32_t> narrow;
    std::vector<uint64_t> wide;

    explicit Kept(const std::vector<uint64_t>& numbers);
    void add_to(const Rows& rows, std::vector<uint64_t>* sums) const;
  };
  struct Moment {
    uint32_t step = 0;  // All before it are in.
    std::vector<Kept> flows;
  };

  // From the beginning up to `step`, of the amounts that are wanted.
  // `idle`: null, or others that another thread can read.
  bool flows_before(uint32_t step, const Wanted& wanted, const Rows& rows, IndexBlocks* blocks,
                    IndexBlocks* idle, Flows* flows) const;
  // Adds what happened in the steps from `first` to before `end`, or, with `sign` -1, takes it
  // away.
  bool add(uint32_t first, uint32_t end, uint64_t sign, const Wanted& wanted, const Rows& rows,
           IndexBlocks* blocks, Flows* flows) const;
  bool whole(const Wanted& wanted, const Rows& rows, Amounts* sums);
  bool sum_cells(const Index::Course& course, Index::Steps steps, const Wanted& wanted,
                 const Rows& rows, Amounts* sums);
  // Adds and takes away what Rows::cut says.
  bool cut_sizes(const Index::Course& course, Index::Steps steps, const Wanted& wanted,
                 const Rows& rows, Amounts* sums) const;
  bool peak(const Index::Course& course, Index::Steps steps, const Rows& rows, IndexBlocks* blocks,
            IndexBlocks* idle, std::vector<uint64_t>* shares) const;

  Index& index_;
  uint32_t moment_steps_;        // From one moment to the next.
  std::vector<Moment> moments_;  // By step.
  struct {
    uint32_t step = 0;
    Flows flows;                                         // By cell.
  } next_;                                               // Where prepare() is ...
  std::vector<uint32_t> itself_;                         // ... with a row for each cell.
  std::array<std::unique_ptr<IndexBlocks>, 2> besides_;  // For threads besides the caller's.
};

template <typename Visit>
bool IndexSums::for_each_odd(const Index::Course& course, Index::Steps steps, const Wanted& wanted,
                             Visit&& visit) const {
  std::vector<bool> gone;  // By image: it has no share of the peak.
  for (uint32_t image = 1; image <= index_.facts().images.size(); ++image)
    gone.push_back(index_.is_gone(ImageId{image}, course, steps));
  bool begins_with_peak = course.peak_step == IndexFacts::kNever;
  uint32_t peak_step = begins_with_peak ? steps.first : course.peak_step;
  auto show = [&](size_t half, uint32_t step, const OddEntry& entry) {
    Numbers numbers = {};
    if (step >= steps.first) {
      numbers[kAllocations] = entry.allocations;
      numbers[kReallocations] = entry.reallocations;
      numbers[kTemporary] = entry.temporary;
      numbers[kAllocatedBytes] = entry.allocated_bytes;
    }
    numbers[kLiveBytes] = static_cast<uint64_t>(entry.live_bytes);
    numbers[kLiveBlocks] = static_cast<uint64_t>(entry.live_blocks);
    if (step < peak_step)
      numbers[kPeakBytes] = static_cast<uint64_t>(entry.live_bytes);
    else if (step == peak_step && !begins_with_peak)
      numbers[kPeakBytes] =
          static_cast<uint64_t>(course.own ? entry.own_peak_bytes : entry.peak_bytes);
    if (gone[raw(index_.cells()[entry.cell].image) - 1]) numbers[kPeakBytes] = 0;
    visit(half, entry, static_cast<const Numbers&>(numbers));
  };
  bool from_start = wanted[kLiveBytes] || wanted[kLiveBlocks] || wanted[kPeakBytes];
  return index_.in_two(
      {from_start ? 0 : steps.first, steps.last},
      [&](size_t half, IndexBlocks* blocks, uint32_t first, uint32_t end) {
        for (uint32_t step = first; step < end; ++step)
          if (!index_.cover_odd(blocks, step, step + 1,
                                [&](const OddEntry& entry) { show(half, step, entry); }))
            return false;
        return true;
      });
}

}  // namespace malloscope::analyze
