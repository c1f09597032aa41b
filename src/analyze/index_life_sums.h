// SPDX-License-Identifier: Apache-2.0
// What the lives of an index's blocks add up to, row by row, as a tally of all events has it: how
// long they lived in a window, and what is left of those that were made in it.

#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analyze/index.h"
#include "analyze/index_sums.h"
#include "trace/tables.h"

namespace malloscope::analyze {

// `steps`: see Index::parting_steps_of. False: the index does not tell, or is damaged.

// In ticks (Details::lifetime_ticks).
bool sum_lifetimes(const Index& index, const trace::Tables& tables, Window window,
                   Index::Steps steps, const IndexSums::Rows& rows, std::vector<uint64_t>* ticks);

// The same again and again, for whoever asks many questions: how long the blocks of each cell had
// lived at some moments is kept, so that a question costs the lives from the nearest of these
// moments, not all of the window's. Two windows that meet add up.
class LifetimeSums {
 public:
  // The index and the tables must outlive it. `most_bytes`: for what is kept.
  LifetimeSums(const Index& index, const trace::Tables& tables, size_t most_bytes);

  // As sum_lifetimes().
  bool sum(Window window, Index::Steps steps, const IndexSums::Rows& rows,
           std::vector<uint64_t>* ticks) const;

  // Goes on keeping moments; false when there is no more to do. A step takes some ten milliseconds.
  bool prepare();

 private:
  struct Moment {
    uint32_t cut = 0;             // All up to it is in; IndexTimes::kCuts: to the end.
    std::vector<uint64_t> ticks;  // By cell.
  };
  // From behind a cut up to and with another, or, with kCuts, to the end. `from`: nothing: from the
  // beginning.
  Window window(std::optional<uint32_t> from, uint32_t to) const;
  bool sum_between(std::optional<uint32_t> from, uint32_t to, const IndexSums::Rows& rows,
                   std::vector<uint64_t>* ticks) const;
  // Adds what was lived up to a cut, or takes it away.
  bool add_up_to(uint32_t cut, uint64_t sign, const IndexSums::Rows& rows,
                 std::vector<uint64_t>* ticks) const;

  const Index& index_;
  const trace::Tables& tables_;
  uint32_t moment_cuts_;  // From one to the next.
  std::vector<Moment> moments_;
  uint32_t next_ = 0;             // The cut that prepare() goes on behind ...
  std::vector<uint64_t> so_far_;  // ... with what was lived up to there ...
  std::vector<uint32_t> itself_;  // ... with a row for each cell.
};

// At the window's end.
struct LeftBlocks {
  std::vector<uint64_t> bytes, blocks;  // By row.
};
bool sum_left(const Index& index, Index::Steps steps, const IndexSums::Rows& rows,
              LeftBlocks* left);

}  // namespace malloscope::analyze
