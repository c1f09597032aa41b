// SPDX-License-Identifier: Apache-2.0
// Blocks as they were first allocated. A realloc goes on with a block's life under
// another address, stack and time; for those that were reallocated this remembers
// how it began.

#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "analyze/block_table.h"

namespace malloscope::analyze {

// Tells a block from others that had its address before: while one is being reallocated, another
// thread may be given its old address.
struct BlockKey {
  uint64_t address;
  uint64_t born_tick;

  explicit BlockKey(const Block& block) : address(block.address), born_tick(block.born_tick) {}
  bool operator==(const BlockKey&) const = default;
};
struct BlockKeyHash {
  size_t operator()(const BlockKey& key) const {
    uint64_t h = (key.address ^ key.born_tick << 20) * 0x9e3779b97f4a7c15;
    return h ^ h >> 29;
  }
};

class Origins {
 public:
  void changed(ImageId image, const Block& before, const Block& now) {
    put(image, now, take(image, before));
  }
  void put(ImageId image, const Block& block, const Block& origin) {
    if (raw(image) >= images_.size()) images_.resize(raw(image) + size_t{1});
    images_[raw(image)].insert_or_assign(BlockKey(block), origin);
  }

  // Blocks that a window finds began before it, even if that was in its first tick.
  void found(ImageId image, const BlockTable& live, uint64_t from_tick) {
    live.for_each([&](const Block& block) {
      if (block.born_tick < from_tick) return;
      Block origin = take(image, block);
      origin.born_tick = 0;
      images_[raw(image)].insert_or_assign(BlockKey(block), origin);
    });
  }

  // The block as it began, which is forgotten.
  Block take(ImageId image, const Block& block) {
    if (raw(image) >= images_.size()) images_.resize(raw(image) + size_t{1});
    auto& known = images_[raw(image)];
    if (known.empty()) return block;
    auto found = known.find(BlockKey(block));
    if (found == known.end()) return block;
    Block origin = found->second;
    known.erase(found);
    return origin;
  }

 private:
  std::vector<std::unordered_map<BlockKey, Block, BlockKeyHash>> images_;  // By id.
};

}  // namespace malloscope::analyze
