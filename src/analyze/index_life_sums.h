// SPDX-License-Identifier: Apache-2.0
// What the lives of an index's blocks add up to, row by row, as a tally of all events has it: how
// long they lived in a window, and what is left of those that were made in it.

#pragma once

#include <cstdint>
#include <vector>

#include "analyze/index.h"
#include "analyze/index_sums.h"
#include "trace/tables.h"

namespace malloscope::analyze {

// `steps`: see Index::parting_steps_of. False: the index does not tell, or is damaged.

// In ticks (Details::lifetime_ticks).
bool sum_lifetimes(const Index& index, const trace::Tables& tables, Window window,
                   Index::Steps steps, const IndexSums::Rows& rows, std::vector<uint64_t>* ticks);

// At the window's end.
struct LeftBlocks {
  std::vector<uint64_t> bytes, blocks;  // By row.
};
bool sum_left(const Index& index, Index::Steps steps, const IndexSums::Rows& rows,
              LeftBlocks* left);

}  // namespace malloscope::analyze
