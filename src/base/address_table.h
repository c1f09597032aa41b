// SPDX-License-Identifier: Apache-2.0
// The live blocks of a process, by address: a hash table of eight bytes a place, and apart from it
// the blocks.
//
// Most of the time that a trace takes is spent here, waiting for memory. So a place of the table
// is small, eight to a cache line, and holds enough of the hash to say without a look at the block
// whether it is another: an allocation, whose address should not be there, looks at one line. Open
// addressing with linear probing; erasing moves the followers back, so that there are no tombstones
// and a long trace with few live blocks stays in cache. The blocks themselves lie in pieces that
// never move, the last one given back first to be used again.
//
// Addresses come from a file that anybody may have written, and linear probing
// with a known hash can be made quadratic by choosing them. So one multiplier of
// the hash is drawn afresh in every run; nothing but speed depends on it. For the tools: it takes
// from the heap.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "base/attributes.h"
#include "base/pieces.h"

namespace malloscope {

// `Block` has a member `address`, 0 if it is none.
template <typename Block>
class AddressTable {
 public:
  AddressTable() {
    static const uint64_t drawn = [] {
      std::random_device random;
      return (uint64_t{random()} << 32 | random()) | 1;
    }();
    multiplier_ = drawn;
  }

  // nullptr if there is none. Valid until the block is erased.
  Block* find(uint64_t address) {
    size_t at = place_of(address);
    if (at == kNowhere) return nullptr;
    found_ = at;
    return &blocks_[places_[at].number];
  }
  const Block* find(uint64_t address) const {
    return const_cast<AddressTable*>(this)->find(address);
  }

  // The address must not be 0. If there is a block at it already, returns that one and changes
  // nothing; else nullptr.
  Block* insert(const Block& block);
  void erase(Block* block);
  void clear();

  // To be called some events ahead of find(), first the one and then the other, with as many
  // events in between: most lookups miss the cache twice. The second takes whatever block has the
  // first place, mostly the right one: to look further costs more time, in branches that nobody
  // can predict, than it saves. (gcc leaves out calls of functions that do nothing but
  // prefetch, unless they are inlined before it looks.)
  MSCOPE_FAST void prefetch_place(uint64_t address) const {
    if (!places_.empty()) __builtin_prefetch(&places_[home(hash(address))], 1);
  }
  MSCOPE_FAST void prefetch_block(uint64_t address) const {
    if (!places_.empty()) __builtin_prefetch(&blocks_[places_[home(hash(address))].number], 1);
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
  // Eighths. While it fits into caches anyway, room is cheaper than looking further.
  size_t fullest() const { return places_.size() <= size_t{1} << 20 ? 3 : 5; }
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

template <typename Block>
void AddressTable<Block>::put(Place place) {
  size_t at = home(place.hash);
  while (places_[at].number != 0) at = (at + 1) & mask_;
  places_[at] = place;
}

template <typename Block>
Block* AddressTable<Block>::insert(const Block& fresh) {
  if (size_ * 8 >= places_.size() * fullest()) grow();
  uint32_t hashed = hash(fresh.address);
  size_t at = home(hashed);
  for (; places_[at].number != 0; at = (at + 1) & mask_) {
    Block& other = blocks_[places_[at].number];
    if (places_[at].hash == hashed && other.address == fresh.address) return &other;
  }
  places_[at] = {hashed, take_number()};
  blocks_[places_[at].number] = fresh;
  ++size_;
  return nullptr;
}

template <typename Block>
uint32_t AddressTable<Block>::take_number() {
  if (free_.empty()) {
    size_t number = std::max<size_t>(1, blocks_.size());
    blocks_.grow_to(number + 1);
    return static_cast<uint32_t>(number);
  }
  uint32_t number = free_.back();
  free_.pop_back();
  if (free_.size() >= kAhead) __builtin_prefetch(&blocks_[free_[free_.size() - kAhead]], 1);
  return number;
}

template <typename Block>
void AddressTable<Block>::erase(Block* gone) {
  bool just_found = places_[found_].number != 0 && &blocks_[places_[found_].number] == gone;
  size_t hole = just_found ? found_ : place_of(gone->address);
  free_.push_back(places_[hole].number);
  gone->address = 0;
  // Whatever follows without a gap moves into the hole, unless that is before its home.
  for (size_t at = (hole + 1) & mask_; places_[at].number != 0; at = (at + 1) & mask_) {
    if (((at - home(places_[at].hash)) & mask_) < ((at - hole) & mask_)) continue;
    places_[hole] = places_[at];
    hole = at;
  }
  places_[hole].number = 0;
  --size_;
}

template <typename Block>
void AddressTable<Block>::clear() {
  places_ = std::vector<Place>();  // `= {}` would keep the memory.
  blocks_.clear();
  free_ = std::vector<uint32_t>();
  found_ = 0;
  size_ = 0;
  mask_ = 0;
}

template <typename Block>
void AddressTable<Block>::grow() {
  std::vector<Place> old = std::move(places_);
  size_t capacity = old.empty() ? 64 : old.size() * 2;
  places_ = std::vector<Place>(capacity);
  mask_ = capacity - 1;
  shift_ = 32 - __builtin_ctzll(capacity);
  for (const Place& place : old)
    if (place.number != 0) put(place);
}

}  // namespace malloscope
