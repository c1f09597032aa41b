// SPDX-License-Identifier: Apache-2.0
// The blocks that live at some moment of a trace, as the planner has to know them.

#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/address_table.h"
#include "replay/untangle.h"
#include "replay/workload.h"
#include "wire/event.h"

namespace malloscope::replay {

// Before the workload has begun it has neither slot nor track, and `done` tells the order of
// births.
struct PlannedBlock {
  uint64_t address = 0;
  uint64_t size = 0;
  uint64_t done = 0;  // Which operation of its track made it or changed it last.
  uint32_t slot = 0;
  uint16_t track = 0;
  OpKind kind = OpKind::kMalloc;
  uint8_t alignment_log2 = 0;
};

// What the player is to call for what was recorded.
OpKind kind_of(wire::Op op);
uint8_t alignment_log2(const wire::Event& event);

// By address. If a block is born where one lives, the free that belongs in between comes late: the
// recorder's clock was read out of order. Blocks at one address are then freed in the order in
// which they were made. (What comes too early is put right in untangle.h.) A free that does not
// come soon is missing from the recording, and would be taken for the next one's ever after: the
// block ends without it. Where there is only one thread, nothing is out of order.
class PlannedBlocks {
 public:
  explicit PlannedBlocks(bool one_thread = false)
      : patience_(one_thread ? 0 : Untangler::kWindow + 1) {}

  // The block at that address, if its free must be missing: it cannot come any more.
  std::optional<PlannedBlock> take_lost(uint64_t address) {
    return patience_ == 0 && find(address) ? take(address) : std::nullopt;
  }
  // Whether there was none at that address.
  bool put(const PlannedBlock& block, uint64_t tick);
  // The oldest at that address.
  std::optional<PlannedBlock> take(uint64_t address);
  // Takes away those whose free has not come by now, and shows them.
  template <typename Visit>
  void end_overdue(uint64_t tick, Visit&& visit) {
    for (; !overdue_.empty() && tick >= overdue_.front().since + patience_; overdue_.pop_front()) {
      auto found = older_.find(overdue_.front().address);
      if (found == older_.end()) continue;
      std::deque<Older>& blocks = found->second;
      for (; !blocks.empty() && tick >= blocks.front().since + patience_; blocks.pop_front())
        visit(blocks.front().block);
      if (blocks.empty()) older_.erase(found);
    }
  }
  const PlannedBlock* find(uint64_t address) const { return newest_.find(address); }
  template <typename Visit>
  void for_each(Visit&& visit) const {
    newest_.for_each(visit);
    for (const auto& [address, blocks] : older_)
      for (const Older& older : blocks) visit(older.block);
  }

 private:
  struct Older {
    PlannedBlock block;
    uint64_t since = 0;  // Another was born at its address.
  };
  struct Overdue {
    uint64_t address = 0, since = 0;
  };
  uint64_t patience_;
  AddressTable<PlannedBlock> newest_;
  std::unordered_map<uint64_t, std::deque<Older>> older_;
  std::deque<Overdue> overdue_;  // Where such are, or have been.
};

// A process of which only what is live counts: before the part that is replayed, or one from which
// that process was forked.
class WatchedHeap {
 public:
  explicit WatchedHeap(bool one_thread = false) : blocks_(one_thread) {}

  // False, and nothing has happened, if it is of a block that is not there; unless it is to be done
  // `anyway`.
  bool watch(const wire::Event& event, bool anyway = false);
  void end_overdue(uint64_t tick) {
    blocks_.end_overdue(tick, [](const PlannedBlock&) {});
  }
  // As a forked child has it at first.
  void inherit(const WatchedHeap& parent);
  bool is_live(uint64_t address) const { return blocks_.find(address) != nullptr; }
  // All of them, in the order in which they were made.
  std::vector<PlannedBlock> by_birth() const;

 private:
  void put(const PlannedBlock& block, uint64_t tick);

  PlannedBlocks blocks_;
  uint64_t births_ = 0;
  std::unordered_map<uint32_t, std::vector<PlannedBlock>> reallocating_;  // By thread.
};

}  // namespace malloscope::replay
