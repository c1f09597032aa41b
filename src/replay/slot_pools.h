// SPDX-License-Identifier: Apache-2.0
// The free slots of each track. A track takes the slots of new blocks from a stack of its own, so
// nobody has to be asked; one that is freed is put on the stack of whoever freed it. If one thread
// allocates and another frees, the slots pile up at the second: so a track that has none left gets
// half of those of the one that has most, if that is plenty, and new ones otherwise.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "replay/workload.h"

namespace malloscope::replay {

class SlotPools {
 public:
  void add_track() { pools_.emplace_back(); }

  bool empty(uint32_t track) const { return pools_[track].free.empty(); }
  uint32_t take(uint32_t track) {
    std::vector<uint32_t>& free = pools_[track].free;
    uint32_t slot = free.back();
    free.pop_back();
    return slot;
  }
  void put(uint32_t track, uint32_t slot) {
    Pool& pool = pools_[track];
    pool.free.push_back(slot);
    pool.most = std::max<uint64_t>(pool.most, pool.free.size());
  }

  // The track that has most free slots, if they are worth waiting for.
  std::optional<uint32_t> donor() const {
    auto richest =
        std::ranges::max_element(pools_, {}, [](const Pool& p) { return p.free.size(); });
    if (richest == pools_.end() || richest->free.size() < kPlenty) return std::nullopt;
    return static_cast<uint32_t>(richest - pools_.begin());
  }
  // Half of what `from` has, from its top downwards, is `to`'s now.
  std::vector<uint32_t> move_half(uint32_t from, uint32_t to) {
    std::vector<uint32_t> moved;
    for (size_t i = pools_[from].free.size() / 2; i > 0; --i) {
      moved.push_back(take(from));
      put(to, moved.back());
    }
    return moved;
  }

  struct Range {
    uint32_t first;
    uint64_t count;
  };
  // Slots that nobody had, the first of them on top.
  Range add_new(uint32_t track) {
    Pool& pool = pools_[track];
    Range range = {static_cast<uint32_t>(slots_), pool.next_new};
    slots_ += range.count;
    for (uint64_t i = range.count; i-- > 0;) put(track, static_cast<uint32_t>(range.first + i));
    pool.next_new = std::min(pool.next_new * 2, kMostNewSlots);
    return range;
  }

  uint64_t slots() const { return slots_; }
  // That a track had on its stack.
  uint64_t most_free(uint32_t track) const { return pools_[track].most; }

 private:
  static constexpr size_t kPlenty = 1024;

  struct Pool {
    std::vector<uint32_t> free;
    uint64_t most = 0;
    uint64_t next_new = 16;
  };
  std::vector<Pool> pools_;
  uint64_t slots_ = 0;
};

}  // namespace malloscope::replay
