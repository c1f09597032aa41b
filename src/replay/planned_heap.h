// SPDX-License-Identifier: Apache-2.0
// The blocks that live at some moment of a trace, as the planner has to know them.

#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/address_table.h"
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
// which they were made. (What comes too early is put right in untangle.h.)
class PlannedBlocks {
 public:
  // Whether there was none at that address.
  bool put(const PlannedBlock& block);
  // The oldest at that address.
  std::optional<PlannedBlock> take(uint64_t address);
  const PlannedBlock* find(uint64_t address) const { return newest_.find(address); }
  template <typename Visit>
  void for_each(Visit&& visit) const {
    newest_.for_each(visit);
    for (const auto& [address, blocks] : older_)
      for (const PlannedBlock& block : blocks) visit(block);
  }
  void clear() {
    newest_.clear();
    older_.clear();
  }

 private:
  AddressTable<PlannedBlock> newest_;
  std::unordered_map<uint64_t, std::deque<PlannedBlock>> older_;
};

// A process of which only what is live counts: before the part that is replayed, or one from which
// that process was forked.
class WatchedHeap {
 public:
  // False, and nothing has happened, if it is of a block that is not there; unless it is to be done
  // `anyway`.
  bool watch(const wire::Event& event, bool anyway = false);
  // As a forked child has it at first.
  void inherit(const WatchedHeap& parent);
  bool is_live(uint64_t address) const { return blocks_.find(address) != nullptr; }
  // All of them, in the order in which they were made.
  std::vector<PlannedBlock> by_birth() const;

 private:
  void put(uint64_t address, uint64_t size, OpKind kind, uint8_t alignment);

  PlannedBlocks blocks_;
  uint64_t births_ = 0;
  std::unordered_map<uint32_t, std::vector<PlannedBlock>> reallocating_;  // By thread.
};

}  // namespace malloscope::replay
