// SPDX-License-Identifier: Apache-2.0
// An index's cells put together to the rows that a tally would have: one for each stack, or for
// each stack with a thread, phases or a size class; and in the tally's order.

#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analyze/index.h"
#include "analyze/index_sums.h"
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
  std::optional<IndexSums::CutSizes> cut;

  IndexSums::Rows together() const { return {of_cell, rows.size(), cut ? &*cut : nullptr}; }

  CellRows(const Index& index, const trace::Tables& tables, Selection selection,
           const TallyOptions& options);
};

// Has the sizes cut classes where `least` and `most` do: in `of_cell`, which has the rows of all
// cells whose class has any of them, those stay that have them as their usual size.
std::optional<IndexSums::CutSizes> cut_classes(const Index& index, uint64_t least, uint64_t most,
                                               std::vector<uint32_t>* of_cell);

}  // namespace malloscope::analyze
