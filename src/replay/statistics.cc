// SPDX-License-Identifier: Apache-2.0
#include "replay/statistics.h"

#include <algorithm>

namespace malloscope::replay {

void Requests::add(uint64_t size) {
  ++count;
  bytes += size;
  smallest = std::min(smallest, size);
  largest = std::max(largest, size);
}

Result<Statistics> statistics(const WorkloadReader& workload, size_t slices) {
  Statistics result;
  result.slices.resize(std::max<size_t>(1, slices));
  // The last tick is in the last slice.
  uint64_t ticks = workload.tail().ticks + 1;
  bool measured = workload.tail().setup_calls == 0;
  Result<void> read = workload.read([&](uint32_t track, const Op& op) {
    if (op.kind == OpKind::kBegin) measured = true;
    if (!measured && track == 0) return;
    if (!makes_block(op.kind) && op.kind != OpKind::kRealloc) return;
    result.all.add(op.size);
    ++result.sizes[op.size];
    ++result.powers[op.size == 0 ? 0 : 64 - static_cast<unsigned>(__builtin_clzll(op.size))];
    auto slice = static_cast<size_t>(static_cast<double>(op.tick) / static_cast<double>(ticks) *
                                     static_cast<double>(result.slices.size()));
    result.slices[std::min(slice, result.slices.size() - 1)].add(op.size);
  });
  if (!read) return std::unexpected(read.error());
  return result;
}

}  // namespace malloscope::replay
