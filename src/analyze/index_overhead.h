// SPDX-License-Identifier: Apache-2.0
// What an index's calls set aside beyond what they asked for, row by row, as a tally of all events
// has it (Details::overhead_bytes). That follows from exact sizes, and an index tells all of them:
// index_odd_sizes.h.

#pragma once

#include <cstdint>
#include <vector>

#include "analyze/index.h"
#include "analyze/index_sums.h"
#include "trace/tables.h"

namespace malloscope::analyze {

// `steps`: see Index::steps_of. False: a block of the index is damaged.
bool sum_overhead(const Index& index, IndexSums* sums, const trace::Tables& tables,
                  Selection selection, Window window, Index::Steps steps,
                  const IndexSums::Rows& rows, std::vector<uint64_t>* bytes);

}  // namespace malloscope::analyze
