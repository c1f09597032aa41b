// SPDX-License-Identifier: Apache-2.0
// Most of the time that a trace takes is spent here, waiting for memory. So a place of the table
// is small, eight to a cache line, and holds enough of the hash to say without a look at the block
// whether it is another: an allocation, whose address should not be there, looks at one line. Open
// addressing with linear probing; erasing moves the followers back, so that there are no tombstones
// and a long trace with few live blocks stays in cache. The blocks themselves lie in pieces that
// never move, the last one given back first to be used again.
//
// Addresses come from a file that anybody may have written, and linear probing
// with a known hash can be made quadratic by choosing them. So one multiplier of
// the hash is drawn afresh in every run; nothing but speed depends on it.

#include "analyze/block_table.h"

#include <algorithm>
#include <random>

namespace malloscope::analyze {

BlockTable::BlockTable() {
  static const uint64_t drawn = [] {
    std::random_device random;
    return (uint64_t{random()} << 32 | random()) | 1;
  }();
  multiplier_ = drawn;
}

void BlockTable::put(Place place) {
  size_t at = home(place.hash);
  while (places_[at].number != 0) at = (at + 1) & mask_;
  places_[at] = place;
}

Block* BlockTable::insert(const Block& fresh) {
  if (size_ * 8 >= places_.size() * 5) grow();
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

uint32_t BlockTable::take_number() {
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

void BlockTable::erase(Block* gone) {
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

void BlockTable::clear() {
  places_ = std::vector<Place>();  // `= {}` would keep the memory.
  blocks_.clear();
  free_ = std::vector<uint32_t>();
  found_ = 0;
  size_ = 0;
  mask_ = 0;
}

void BlockTable::grow() {
  std::vector<Place> old = std::move(places_);
  size_t capacity = old.empty() ? 64 : old.size() * 2;
  places_ = std::vector<Place>(capacity);
  mask_ = capacity - 1;
  shift_ = 32 - __builtin_ctzll(capacity);
  for (const Place& place : old)
    if (place.number != 0) put(place);
}

}  // namespace malloscope::analyze
