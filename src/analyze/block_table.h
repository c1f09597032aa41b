// SPDX-License-Identifier: Apache-2.0
// The live blocks of one image, by address.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/attributes.h"
#include "base/ids.h"
#include "base/pieces.h"

namespace malloscope::analyze {

struct Block {
  uint64_t address = 0;  // 0: no block.
  uint64_t size = 0;
  uint64_t born_tick = 0;
  StackId stack = StackId::kNone;  // Of the allocation, or of the last reallocation.
  ThreadId thread = ThreadId::kNone;
};

// A hash table of eight bytes a place, and apart from it the blocks; see block_table.cc.
class BlockTable {
 public:
  BlockTable();

  // nullptr if there is none. Valid until the block is erased.
  Block* find(uint64_t address) {
    size_t at = place_of(address);
    if (at == kNowhere) return nullptr;
    found_ = at;
    return &blocks_[places_[at].number];
  }
  const Block* find(uint64_t address) const { return const_cast<BlockTable*>(this)->find(address); }

  // The address must not be 0. If there is a block at it already, returns that one and changes
  // nothing; else nullptr.
  Block* insert(const Block& block);
  void erase(Block* block);
  void clear();

  // To be called some events ahead of find(), first the one and then the other, with as many
  // events in between: most lookups miss the cache twice. (gcc leaves out calls of functions that
  // do nothing but prefetch, unless they are inlined before it looks.)
  MSCOPE_FAST void prefetch_place(uint64_t address) const {
    if (!places_.empty()) __builtin_prefetch(&places_[home(hash(address))], 1);
  }
  MSCOPE_FAST void prefetch_block(uint64_t address) const {
    if (places_.empty()) return;
    uint32_t hashed = hash(address);
    size_t at = home(hashed);
    while (places_[at].number != 0 && places_[at].hash != hashed) at = (at + 1) & mask_;
    if (places_[at].number != 0) __builtin_prefetch(&blocks_[places_[at].number], 1);
  }

  size_t size() const { return size_; }

  // In no particular order.
  template <typename Visit>
  void for_each(Visit&& visit) const {
    for (size_t number = 1; number < blocks_.size(); ++number)
      if (blocks_[number].address != 0) visit(blocks_[number]);
  }

 private:
  struct Place {
    uint32_t hash;
    uint32_t number;  // Of the block; 0: none.
  };
  static constexpr size_t kNowhere = ~size_t{0};
  static constexpr size_t kAhead = 8;  // How many insertions ahead a free block is fetched.

  uint32_t hash(uint64_t address) const {
    uint64_t h = address * 0x9e3779b97f4a7c15;
    return static_cast<uint32_t>((h ^ h >> 32) * multiplier_ >> 32);
  }
  size_t home(uint32_t hashed) const { return hashed >> shift_; }
  size_t place_of(uint64_t address) const {
    if (places_.empty()) return kNowhere;
    uint32_t hashed = hash(address);
    for (size_t at = home(hashed);; at = (at + 1) & mask_) {
      const Place& place = places_[at];
      if (place.number == 0) return kNowhere;
      if (place.hash == hashed && blocks_[place.number].address == address) return at;
    }
  }
  void put(Place place);
  uint32_t take_number();
  void grow();

  std::vector<Place> places_;
  Pieces<Block> blocks_;        // By number; 0 is none.
  std::vector<uint32_t> free_;  // Numbers of blocks that are gone, the last one to be used next.
  size_t found_ = 0;            // Where find() found its last block: mostly the one to be erased.
  size_t size_ = 0;
  size_t mask_ = 0;
  int shift_ = 31;
  uint64_t multiplier_;
};

}  // namespace malloscope::analyze
