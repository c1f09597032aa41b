// SPDX-License-Identifier: Apache-2.0
// The columns that a timeline and a part of it have.

#pragma once

#include <vector>

#include "analyze/index_curves.h"
#include "serve/columns.h"

namespace malloscope::serve {

inline void add_slices(const std::vector<analyze::WholeSlice>& slices, bool has_frees,
                       Columns* columns) {
  auto add = [&](const char* name, uint64_t analyze::WholeSlice::* amount) {
    std::vector<double> values;
    for (const analyze::WholeSlice& slice : slices)
      values.push_back(static_cast<double>(slice.*amount));
    columns->add(name, values);
  };
  add("live", &analyze::WholeSlice::live_bytes);
  add("live_max", &analyze::WholeSlice::live_max);
  add("blocks", &analyze::WholeSlice::live_blocks);
  add("running_blocks", &analyze::WholeSlice::running_blocks);
  add("allocations", &analyze::WholeSlice::allocations);
  add("allocated", &analyze::WholeSlice::allocated_bytes);
  if (has_frees) add("frees", &analyze::WholeSlice::frees);
}

}  // namespace malloscope::serve
