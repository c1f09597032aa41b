// SPDX-License-Identifier: Apache-2.0
// The stacks this image has met: path hash -> id. Shared by all its threads,
// read and extended without locks.

#pragma once

#include <atomic>
#include <cstdint>

#include "base/arena.h"
#include "base/attributes.h"
#include "base/ids.h"

namespace malloscope::record {

// Lives in zeroed memory that is wiped on fork: a forked child begins with none.
class StackTable {
 public:
  // kNone if the path is not known. `after` is the stack that was found last: what a program does
  // again it often does in the same order, and ids are given in the order of the first time.
  MSCOPE_FAST StackId find(uint64_t hash, StackId after) const {
    const Table* table = table_.load(std::memory_order_acquire);
    if (!table) [[unlikely]]
      return StackId::kNone;
    uint64_t next = raw(after);
    for (uint64_t id = next + 1; id <= next + kFollowers && id <= table->mask; ++id)
      if (table->hashes[id].load(std::memory_order_acquire) == hash)
        return StackId{static_cast<uint32_t>(id)};
    for (uint64_t i = hash;; ++i) {
      uint32_t id = table->ids[i & table->mask].load(std::memory_order_acquire);
      if (id == 0) return StackId::kNone;
      if (table->hashes[id].load(std::memory_order_relaxed) == hash) return StackId{id};
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
  static constexpr uint64_t kFollowers = 4;

  struct Table {
    uint64_t mask;
    std::atomic<uint32_t>* ids;     // mask + 1 of them, found by hash,
    std::atomic<uint64_t>* hashes;  // and as many, found by id. 0: not published.
  };
  static void insert(Table* table, uint64_t hash, uint32_t id);
  Table* grow(Table* old, uint32_t id, Arena* arena);

  std::atomic<Table*> table_;
  std::atomic<uint64_t> last_id_;
  std::atomic<uint32_t> growing_;
};

}  // namespace malloscope::record
