// SPDX-License-Identifier: Apache-2.0
// Addresses come from a file that anybody may have written, and linear probing
// with a known hash can be made quadratic by choosing them. So one multiplier of
// the hash is drawn afresh in every run; nothing but speed depends on it.

#include "analyze/block_table.h"

#include <random>

namespace malloscope::analyze {

BlockTable::BlockTable() {
  static const uint64_t drawn = [] {
    std::random_device random;
    return (uint64_t{random()} << 32 | random()) | 1;
  }();
  multiplier_ = drawn;
}

void BlockTable::insert(const Block& block) {
  if (size_ * 8 >= places_.size() * 5) grow();
  size_t i = home(block.address);
  while (places_[i].address != 0) i = (i + 1) & mask_;
  places_[i] = block;
  ++size_;
}

void BlockTable::erase(Block* block) {
  size_t hole = static_cast<size_t>(block - places_.data());
  // Whatever follows without a gap moves into the hole, unless that is before its home.
  for (size_t i = (hole + 1) & mask_; places_[i].address != 0; i = (i + 1) & mask_) {
    if (((i - home(places_[i].address)) & mask_) < ((i - hole) & mask_)) continue;
    places_[hole] = places_[i];
    hole = i;
  }
  places_[hole].address = 0;
  --size_;
}

void BlockTable::clear() {
  places_ = {};
  size_ = 0;
  mask_ = 0;
}

void BlockTable::grow() {
  std::vector<Block> old = std::move(places_);
  size_t capacity = old.empty() ? 64 : old.size() * 2;
  places_ = std::vector<Block>(capacity);
  mask_ = capacity - 1;
  shift_ = 64 - __builtin_ctzll(capacity);
  for (const Block& block : old) {
    if (block.address == 0) continue;
    size_t i = home(block.address);
    while (places_[i].address != 0) i = (i + 1) & mask_;
    places_[i] = block;
  }
}

}  // namespace malloscope::analyze
