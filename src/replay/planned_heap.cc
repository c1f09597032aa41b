// SPDX-License-Identifier: Apache-2.0
#include "replay/planned_heap.h"

#include <algorithm>

namespace malloscope::replay {

using wire::Event;
using wire::Kind;

OpKind kind_of(wire::Op op) {
  switch (op) {
    case wire::Op::kCalloc:
      return OpKind::kCalloc;
    case wire::Op::kMemalign:
    case wire::Op::kValloc:
    case wire::Op::kPvalloc:
      return OpKind::kMemalign;
    case wire::Op::kAlignedAlloc:
      return OpKind::kAlignedAlloc;
    case wire::Op::kPosixMemalign:
    case wire::Op::kNewAligned:
    case wire::Op::kNewArrayAligned:
      return OpKind::kPosixMemalign;
    case wire::Op::kRealloc:  // Of no block: the recorder tells it as an allocation.
    case wire::Op::kReallocarray:
      return OpKind::kRealloc;
    default:
      return OpKind::kMalloc;
  }
}

uint8_t alignment_log2(const Event& event) {
  if (!is_aligned(kind_of(event.op))) return 0;
  if (event.op == wire::Op::kValloc || event.op == wire::Op::kPvalloc) return 12;
  if (event.other != 0)
    return static_cast<uint8_t>(std::min<uint64_t>(event.other, kMaxAlignmentLog2));
  // Recorded before alignments were: what the address allows, up to a page.
  return static_cast<uint8_t>(
      std::clamp(event.address ? __builtin_ctzll(event.address) : 4, 4, 12));
}

bool PlannedBlocks::put(const PlannedBlock& block, uint64_t tick) {
  PlannedBlock* earlier = newest_.insert(block);
  if (!earlier) [[likely]]
    return true;
  older_[block.address].push_back({*earlier, tick});
  overdue_.push_back({block.address, tick});
  *earlier = block;
  return false;
}

std::optional<PlannedBlock> PlannedBlocks::take(uint64_t address) {
  if (!older_.empty()) [[unlikely]] {
    if (auto found = older_.find(address); found != older_.end()) {
      PlannedBlock block = found->second.front().block;
      found->second.pop_front();
      if (found->second.empty()) older_.erase(found);
      return block;
    }
  }
  PlannedBlock* found = newest_.find(address);
  if (!found) return std::nullopt;
  PlannedBlock block = *found;
  newest_.erase(found);
  return block;
}

bool WatchedHeap::watch(const Event& event, bool anyway) {
  end_overdue(event.tick);
  switch (event.kind) {
    case Kind::kAlloc:
      if (event.address)
        put({.address = event.address,
             .size = event.size,
             .kind = kind_of(event.op),
             .alignment_log2 = alignment_log2(event)},
            event.tick);
      return true;
    case Kind::kFree:
      return blocks_.take(event.address) || event.address == 0 || anyway;
    case Kind::kReallocBegin: {
      std::optional<PlannedBlock> block = blocks_.take(event.address);
      if (!block && event.address != 0 && !anyway) return false;
      reallocating_[raw(event.thread)].push_back(block.value_or(PlannedBlock()));
      return true;
    }
    case Kind::kReallocEnd: {
      auto& open = reallocating_[raw(event.thread)];
      PlannedBlock old;
      if (!open.empty()) {
        old = open.back();
        open.pop_back();
      }
      if (event.address)
        put({.address = event.address, .size = event.size}, event.tick);
      else if (event.size != 0 && old.address != 0)  // It failed.
        put(old, event.tick);
      return true;
    }
    default:
      return true;
  }
}

void WatchedHeap::put(const PlannedBlock& block, uint64_t tick) {
  PlannedBlock born = block;
  born.done = births_++;
  blocks_.put(born, tick);
  end_overdue(tick);
}

void WatchedHeap::inherit(const WatchedHeap& parent) {
  for (const PlannedBlock& block : parent.by_birth()) blocks_.put(block, 0);
  // Its ticks begin later than the parent's, so these were born first.
  births_ = parent.births_;
}

std::vector<PlannedBlock> WatchedHeap::by_birth() const {
  std::vector<PlannedBlock> blocks;
  blocks_.for_each([&](const PlannedBlock& block) { blocks.push_back(block); });
  std::ranges::sort(blocks, {}, &PlannedBlock::done);
  return blocks;
}

}  // namespace malloscope::replay
