// SPDX-License-Identifier: Apache-2.0
#include "analyze/index_curves.h"

#include <algorithm>
#include <optional>

namespace malloscope::analyze {

uint32_t slice_of(uint32_t step) { return step < 2 ? 0 : std::min((step - 2) / 2, kSlices - 1); }

std::pair<uint32_t, uint32_t> steps_of_slices(uint32_t first, uint32_t end) {
  return {first == 0 ? 0 : 2 * first + 2, end >= kSlices ? IndexTimes::kSteps : 2 * end + 2};
}

namespace {

// Adds the changes in the slices of steps from `first` to before `end`. count(slice, entry) does it
// for an entry.
template <typename Count>
bool add_changes(const Index& index, IndexBlocks* blocks, uint32_t first, uint32_t end,
                 Count&& count) {
  for (uint32_t step = first; step < end; ++step) {
    auto in_slice = [&, slice = slice_of(step)](const IndexEntry& entry) { count(slice, entry); };
    if (!index.cover(blocks, step, step + 1, in_slice)) return false;
  }
  return true;
}

// With one group, it is only whether a cell counts.
bool add_one_group(const Index& index, const std::vector<uint32_t>& group_of_cell,
                   IndexCurves* curves) {
  IndexBlockReader::Counting counting(index.usual_sizes(), group_of_cell);
  bool good = index.in_two({}, [&](size_t, IndexBlocks* blocks, uint32_t first, uint32_t end) {
    for (uint32_t step = first; step < end; ++step) {
      const IndexBlockReader* block = blocks->step(step);
      IndexBlockReader::Sum sum;
      if (block ? !block->sum(counting, &sum) : blocks->damaged()) return false;
      SliceFlow& slice = curves->all[slice_of(step)];
      slice.allocations += sum.allocations;
      slice.allocated_bytes += sum.allocated_bytes;
      slice.live_bytes += sum.live_bytes;
      slice.live_blocks += sum.live_blocks;
    }
    return true;
  });
  for (uint32_t slice = 0; slice < kSlices; ++slice)
    curves->live_bytes[slice] = curves->all[slice].live_bytes;
  return good;
}

bool add_groups(const Index& index, const std::vector<uint32_t>& group_of_cell,
                IndexCurves* curves) {
  return index.in_two({}, [&](size_t, IndexBlocks* blocks, uint32_t first, uint32_t end) {
    return add_changes(index, blocks, first, end, [&](uint32_t slice, const IndexEntry& entry) {
      uint32_t group = group_of_cell[entry.cell];
      if (group == UINT32_MAX) return;
      curves->live_bytes[group * kSlices + slice] += static_cast<uint64_t>(entry.live_bytes);
      SliceFlow& sum = curves->all[slice];
      sum.allocations += entry.allocations;
      sum.allocated_bytes += entry.allocated_bytes;
      sum.live_bytes += static_cast<uint64_t>(entry.live_bytes);
      sum.live_blocks += static_cast<uint64_t>(entry.live_blocks);
    });
  });
}

// What of cut size classes is to be added or taken away.
bool cut_sizes(const Index& index, const IndexSums::Rows& groups, IndexCurves* curves) {
  return index.in_two({}, [&](size_t, IndexBlocks* blocks, uint32_t first, uint32_t end) {
    for (uint32_t step = first; step < end; ++step) {
      uint32_t slice = slice_of(step);
      if (!index.cover_odd(blocks, step, step + 1, [&](const OddEntry& entry) {
            auto [group, sign] = groups.share(entry.cell, entry.size);
            if (sign == 0) return;
            auto factor = static_cast<uint64_t>(sign);
            curves->live_bytes[group * kSlices + slice] +=
                factor * static_cast<uint64_t>(entry.live_bytes);
            SliceFlow& sum = curves->all[slice];
            sum.allocations += factor * entry.allocations;
            sum.allocated_bytes += factor * entry.allocated_bytes;
            sum.live_bytes += factor * static_cast<uint64_t>(entry.live_bytes);
            sum.live_blocks += factor * static_cast<uint64_t>(entry.live_blocks);
          }))
        return false;
    }
    return true;
  });
}

// What was made and is not there any more was freed; but where realloc moves blocks from one group
// to another, only the lives of all blocks tell.
bool count_frees(const Index& index, const IndexSums::Rows& groups, IndexCurves* curves) {
  auto has_moved = [](const IndexFacts::ImageStep& here) { return here.change.reallocations > 0; };
  if (std::ranges::none_of(index.facts().image_steps, has_moved)) {
    for (SliceFlow& slice : curves->all) slice.frees = slice.allocations - slice.live_blocks;
    return true;
  }
  bool knows[2] = {true, true};
  bool good = index.in_two({}, [&](size_t half, IndexBlocks* blocks, uint32_t first, uint32_t end) {
    for (uint32_t step = first; step < end; ++step) {
      SliceFlow& slice = curves->all[slice_of(step)];
      if (!index.for_each_ended(blocks, 0, step, step + 1, [&](const IndexLife& life) {
            if (!(life.roles & IndexLife::kFreed)) return;
            if (life.is_varied && groups.cut &&
                groups.cut->row_of_cell[life.cell] != IndexSums::kNobody)
              knows[half] = false;
            if (groups.row_of(life.cell, life.size()) != IndexSums::kNobody)
              slice.frees += life.blocks;
          }))
        return false;
    }
    return true;
  });
  curves->has_frees = knows[0] && knows[1];
  return good;
}

}  // namespace

bool find_curves(const Index& index, const IndexSums::Rows& groups, IndexCurves* curves) {
  curves->groups = groups.count;
  curves->live_bytes.assign(groups.count * kSlices, 0);
  curves->all.assign(kSlices, {});
  if (groups.count == 1 ? !add_one_group(index, groups.of_cell, curves)
                        : !add_groups(index, groups.of_cell, curves))
    return false;
  if (groups.cut && !cut_sizes(index, groups, curves)) return false;
  for (size_t i = 0; i < curves->live_bytes.size(); ++i)  // From changes to what is there.
    if (i % kSlices != 0) curves->live_bytes[i] += curves->live_bytes[i - 1];
  if (!count_frees(index, groups, curves)) return false;
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
  for (WholeSlice& slice : slices) slice.running_blocks = slice.live_blocks;
  for (uint32_t step = 0; step < IndexTimes::kSteps; ++step) {
    uint64_t& most = slices[slice_of(step)].live_max;
    most = std::max(most, facts.steps[step].peak_bytes);
  }
  // The steps tell of processes until their ends are told of. Where nothing happens before the end
  // itself, that is before it: what the process has left is there until then.
  std::vector<uint64_t> left(facts.images.size()), left_blocks(facts.images.size());
  for (const IndexFacts::ImageStep& here : facts.image_steps) {
    left[raw(here.image) - 1] += here.change.live_bytes;
    left_blocks[raw(here.image) - 1] += here.change.live_blocks;
  }
  std::vector<uint64_t> through(kSlices), at_end(kSlices);  // More than the steps tell.
  const std::vector<uint32_t> ends = ends_of_images(index);
  for (size_t i = 0; i < ends.size(); ++i) {
    for (uint32_t slice = ends[i]; slice < kSlices; ++slice)
      slices[slice].running_blocks -= left_blocks[i];
    if (facts.images[i].ended == IndexFacts::kNever) continue;
    uint32_t told = slice_of(facts.images[i].ended);
    for (uint32_t slice = told; slice < ends[i]; ++slice) {
      at_end[slice] += left[i];
      if (slice > told) through[slice] += left[i];
    }
  }
  uint64_t before = 0;
  for (uint32_t i = 0; i < kSlices; ++i) {
    uint64_t end = facts.steps[steps_of_slices(0, i + 1).second - 1].end_bytes + at_end[i];
    slices[i].live_max = std::max({slices[i].live_max + through[i], before, end});
    before = end;
  }
  return slices;
}

std::vector<uint32_t> ends_of_images(const Index& index) {
  std::vector<uint32_t> slices;
  for (const IndexFacts::Image& image : index.facts().images)
    slices.push_back(image.gone == IndexFacts::kNever ? kSlices : slice_of(image.gone));
  return slices;
}

}  // namespace malloscope::analyze
