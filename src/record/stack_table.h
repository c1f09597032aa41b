// SPDX-License-Identifier: Apache-2.0
// The stacks this image has met: path hash -> id. Shared by all its threads,
// read and extended without locks.

#pragma once

#include <atomic>
#include <cstdint>

#include "base/arena.h"
#include "base/ids.h"

namespace malloscope::record {

// Lives in zeroed memory that is wiped on fork: a forked child begins with none.
class StackTable {
 public:
  // kNone if the path is not known.
  StackId find(uint64_t hash) const {
    const Table* table = table_.load(std::memory_order_acquire);
    if (!table) [[unlikely]]
      return StackId::kNone;
    for (uint64_t i = hash;; ++i) {
      const Slot& slot = table->slots[i & table->mask];
      uint64_t there = slot.hash.load(std::memory_order_acquire);
      if (there == hash) return StackId{slot.id.load(std::memory_order_acquire)};
      if (there == 0) return StackId::kNone;
    }
  }

  // A number nobody else gets. kNone once there are 2^32 of them.
  StackId new_id() {
    uint64_t id = last_id_.fetch_add(1, std::memory_order_relaxed) + 1;
    return id > UINT32_MAX ? StackId::kNone : StackId{static_cast<uint32_t>(id)};
  }

  // Makes a stack visible to the other threads. Its definition must have been
  // committed. If it cannot be kept, or another thread was first, later captures
  // of the same path get another id, and the reader merges the two.
  void publish(uint64_t hash, StackId id, Arena* arena);

 private:
  struct Slot {
    std::atomic<uint64_t> hash;
    std::atomic<uint32_t> id;
  };
  struct Table {
    uint64_t mask;
    std::atomic<uint64_t> used;
    Slot* slots;  // mask + 1 of them, right behind.
  };
  static bool insert(Table* table, uint64_t hash, uint32_t id);
  Table* grow(Table* old, Arena* arena);

  std::atomic<Table*> table_;
  std::atomic<uint64_t> last_id_;
  std::atomic<uint32_t> growing_;
};

}  // namespace malloscope::record
