// SPDX-License-Identifier: Apache-2.0
#include "analyze/index_curves.h"

#include <algorithm>
#include <future>
#include <memory>

namespace malloscope::analyze {

uint32_t slice_of(uint32_t step) { return step < 2 ? 0 : std::min((step - 2) / 2, kSlices - 1); }

std::pair<uint32_t, uint32_t> steps_of_slices(uint32_t first, uint32_t end) {
  return {first == 0 ? 0 : 2 * first + 2, end >= kSlices ? IndexTimes::kSteps : 2 * end + 2};
}

// Adds the changes in the slices of these steps.
static bool add_changes(const Index& index, IndexBlocks* blocks, uint32_t first, uint32_t end,
                        const std::vector<uint32_t>& group_of_cell, IndexCurves* curves) {
  for (uint32_t step = first; step < end; ++step) {
    uint32_t slice = slice_of(step);
    SliceFlow all;
    bool good = index.cover(blocks, step, step + 1, [&](const IndexEntry& entry) {
      uint32_t group = group_of_cell[entry.cell];
      if (group == UINT32_MAX) return;
      curves->live_bytes[group * kSlices + slice] += static_cast<uint64_t>(entry.live_bytes);
      all.allocations += entry.allocations;
      all.allocated_bytes += entry.allocated_bytes;
      all.frees += entry.allocations - static_cast<uint64_t>(entry.live_blocks);
      all.live_bytes += static_cast<uint64_t>(entry.live_bytes);
      all.live_blocks += static_cast<uint64_t>(entry.live_blocks);
    });
    if (!good) return false;
    SliceFlow& sum = curves->all[slice];
    sum.allocations += all.allocations;
    sum.allocated_bytes += all.allocated_bytes;
    sum.frees += all.frees;
    sum.live_bytes += all.live_bytes;
    sum.live_blocks += all.live_blocks;
  }
  return true;
}

bool find_curves(Index* index, const std::vector<uint32_t>& group_of_cell, size_t groups,
                 IndexCurves* curves) {
  curves->groups = groups;
  curves->live_bytes.assign(groups * kSlices, 0);
  curves->all.assign(kSlices, {});
  // No slice is in both halves, so two threads do not meet.
  constexpr uint32_t kHalf = IndexTimes::kSteps / 2 & ~1u;
  static_assert(kHalf % 2 == 0);
  std::unique_ptr<IndexBlocks> beside = index->blocks().another();
  auto first_half = std::async(std::launch::async, [&] {
    return add_changes(*index, beside.get(), 0, kHalf, group_of_cell, curves);
  });
  bool good =
      add_changes(*index, &index->blocks(), kHalf, IndexTimes::kSteps, group_of_cell, curves);
  if (!first_half.get() || !good) return false;
  for (size_t i = 0; i < curves->live_bytes.size(); ++i)  // From changes to what is there.
    if (i % kSlices != 0) curves->live_bytes[i] += curves->live_bytes[i - 1];
  // A block that realloc has moved here was not made here, nor has one fewer been freed for that.
  for (SliceFlow& slice : curves->all)
    if (static_cast<int64_t>(slice.frees) < 0) slice.frees = 0;
  for (uint32_t i = 1; i < kSlices; ++i) {
    curves->all[i].live_bytes += curves->all[i - 1].live_bytes;
    curves->all[i].live_blocks += curves->all[i - 1].live_blocks;
  }
  return true;
}

std::vector<WholeSlice> whole_curve(const Index& index) {
  std::vector<WholeSlice> slices(kSlices);
  const IndexFacts& facts = index.facts();
  for (const IndexFacts::ImageStep& here : facts.image_steps) {
    WholeSlice& slice = slices[slice_of(here.step)];
    slice.allocations += here.change.allocations;
    slice.allocated_bytes += here.change.allocated_bytes;
    slice.frees += here.change.frees;
    slice.live_blocks += here.change.live_blocks;
    slice.live_bytes += here.change.live_bytes;
  }
  for (uint32_t i = 1; i < kSlices; ++i) {
    slices[i].live_blocks += slices[i - 1].live_blocks;
    slices[i].live_bytes += slices[i - 1].live_bytes;
  }
  for (uint32_t step = 0; step < IndexTimes::kSteps; ++step) {
    uint64_t& most = slices[slice_of(step)].live_max;
    most = std::max(most, facts.steps[step].peak_bytes);
  }
  // What a process leaves is gone with it, as long as others run. What the last one leaves stays:
  // it is what somebody looks for at the end of the curve.
  uint32_t last_end = 0;
  for (const IndexFacts::Image& image : facts.images)
    if (image.announced != IndexFacts::kNever) last_end = std::max(last_end, image.ended);
  if (last_end == IndexFacts::kNever) return slices;
  uint64_t left = 0;
  for (const IndexFacts::ImageStep& here : facts.image_steps)
    if (facts.images[raw(here.image) - 1].ended == last_end) left += here.change.live_bytes;
  for (uint32_t i = slice_of(last_end); i < kSlices; ++i)
    slices[i].live_max = std::max(slices[i].live_max, left);
  return slices;
}

}  // namespace malloscope::analyze
