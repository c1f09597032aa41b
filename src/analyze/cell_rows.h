// SPDX-License-Identifier: Apache-2.0
// An index's cells put together to the rows that a tally would have: one for each stack, or for
// each stack with a thread, phases or a size class; and in the tally's order.

#pragma once

#include <cstdint>
#include <vector>

#include "analyze/index.h"
#include "analyze/tally.h"
#include "trace/tables.h"

namespace malloscope::analyze {

struct CellRows {
  static constexpr uint32_t kNobody = UINT32_MAX;
  struct Id {
    ImageId image = ImageId::kNone;
    StackId stack = StackId::kNone;
    StrandId strand = StrandId::kNone;  // As much of it as rows are kept apart by.
    unsigned size_class = 0;            // 0 unless by_size.
  };

  std::vector<Id> rows;
  std::vector<uint32_t> of_cell;  // kNobody: its process or size is not asked for.

  CellRows(const Index& index, const trace::Tables& tables, Selection selection,
           const TallyOptions& options);
};

}  // namespace malloscope::analyze
