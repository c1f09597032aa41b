// SPDX-License-Identifier: Apache-2.0
// How groups of an index's cells went through the recording's time, slice by slice.

#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "analyze/index.h"
#include "analyze/index_sums.h"
#include "trace/tables.h"

namespace malloscope::analyze {

// Of the time between two cuts: behind the first, up to and with the second. What is before the
// first cut of all is in the first slice, what is behind the last one in the last.
inline constexpr uint32_t kSlices = IndexTimes::kCuts - 1;

struct SliceFlow {
  uint64_t allocations = 0, allocated_bytes = 0, frees = 0;
  uint64_t live_bytes = 0, live_blocks = 0;  // At its end.
};

struct IndexCurves {
  size_t groups = 0;
  std::vector<uint64_t> live_bytes;  // At each slice's end: those of a group follow each other.
  std::vector<SliceFlow> all;        // Of all groups together.
  bool has_frees = true;             // False: of these sizes nobody knows.

  const uint64_t* of(size_t group) const { return live_bytes.data() + group * kSlices; }
};

// What a process leaves when it ends counts on. False: a block of the index is damaged.
bool find_curves(const Index& index, const IndexSums::Rows& groups, IndexCurves* curves);

// The slice that a step is in.
uint32_t slice_of(uint32_t step);
// The steps that are in slices from `first` to before `end`: from the first to before the second.
std::pair<uint32_t, uint32_t> steps_of_slices(uint32_t first, uint32_t end);

// Of all cells and processes, which takes no look at the blocks.
struct WholeSlice : SliceFlow {
  // Of the processes that run: the highest moment in it, and the blocks at its end.
  uint64_t live_max = 0, running_blocks = 0;
};
std::vector<WholeSlice> whole_curve(const Index& index);

// By image id - 1, the slice in which it ended: what it left is gone with it. kSlices: it stays to
// the end, as what the last one leaves does, since that is what somebody looks for there.
std::vector<uint32_t> ends_of_images(const Index& index);

}  // namespace malloscope::analyze
