// SPDX-License-Identifier: Apache-2.0
// The live blocks of one image, by address.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/ids.h"

namespace malloscope::analyze {

struct Block {
  uint64_t address = 0;  // 0: an empty place of the table.
  uint64_t size = 0;
  uint64_t born_tick = 0;
  StackId stack = StackId::kNone;  // Of the allocation, or of the last reallocation.
  ThreadId thread = ThreadId::kNone;
};

// Open addressing with linear probing; erasing moves the followers back, so that
// there are no tombstones and a long trace with few live blocks stays in cache.
class BlockTable {
 public:
  BlockTable();

  // nullptr if there is none. Valid until the next insert() or erase().
  Block* find(uint64_t address) {
    if (places_.empty()) return nullptr;
    for (size_t i = home(address);; i = (i + 1) & mask_) {
      if (places_[i].address == address) return &places_[i];
      if (places_[i].address == 0) return nullptr;
    }
  }
  const Block* find(uint64_t address) const { return const_cast<BlockTable*>(this)->find(address); }

  // The address must not be 0 and not be in the table.
  void insert(const Block& block);
  void erase(Block* block);
  void clear();

  // To be called some events ahead of find(): most lookups miss the cache.
  void prefetch(uint64_t address) const {
    if (!places_.empty()) __builtin_prefetch(&places_[home(address)], 1);
  }

  size_t size() const { return size_; }

  // In no particular order.
  template <typename Visit>
  void for_each(Visit&& visit) const {
    for (const Block& block : places_)
      if (block.address != 0) visit(block);
  }

 private:
  size_t home(uint64_t address) const {
    uint64_t h = address * 0x9e3779b97f4a7c15;
    return static_cast<size_t>((h ^ h >> 32) * multiplier_ >> shift_);
  }
  void grow();

  std::vector<Block> places_;
  size_t size_ = 0;
  size_t mask_ = 0;
  int shift_ = 63;
  uint64_t multiplier_;
};

}  // namespace malloscope::analyze
