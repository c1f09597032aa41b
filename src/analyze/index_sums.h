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

namespace malloscope::analyze {

class IndexSums {
 public:
  static constexpr uint32_t kNobody = UINT32_MAX;
  // The index must outlive it. `most_bytes`: for what is kept.
  IndexSums(Index* index, size_t most_bytes);

  // Cells that are put together.
  struct Rows {
    const std::vector<uint32_t>& of_cell;  // kNobody: it does not count. Those of a row are of
                                           // one image.
    size_t count;
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
  static constexpr Wanted all() { return {true, true, true, true, true, true, true}; }

  // False: a block of the index is damaged.
  bool sum(Selection selection, Window window, Index::Steps steps, const Wanted& wanted,
           const Rows& rows, Amounts* sums);

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

}  // namespace malloscope::analyze
