// SPDX-License-Identifier: Apache-2.0
// Blocks that grow step by step: by realloc, or as vectors and strings do, by allocating
// a larger block, moving what was in the old one, and freeing that. How the second
// is told from other allocations is in growth_chains.cc.

#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <unordered_map>
#include <vector>

#include "analyze/heap.h"
#include "analyze/origins.h"

namespace malloscope::analyze {

struct GrowthChain {
  uint64_t growths = 0;  // In the window.
  uint64_t copied_bytes = 0;
  uint64_t first_size = 0;
  uint64_t largest_size = 0;
  double factors = 0;              // The sum over all growths of new size by old size.
  bool by_realloc = false;         // At least once.
  bool of_one_element = true;      // Began with one element and doubled, as far as sizes can tell.
  StackId stack = StackId::kNone;  // Of the last growth, and the strand that did it.
  StrandId strand = StrandId::kNone;
};

class GrowthChains : public HeapObserver {
 public:
  using Finished = std::function<void(ImageId, const GrowthChain&)>;
  explicit GrowthChains(Finished finished) : finished_(std::move(finished)) {}

  void made(ImageId image, const Block& block, const wire::Event& event, bool counts) override;
  void changed(ImageId image, const Block& before, const Block& now, const wire::Event& event,
               bool counts) override;
  void gone(ImageId image, const Block& block, End how, const wire::Event& event,
            bool counts) override;
  void left(ImageId image, const BlockTable& live) override;

  // How many of a thread's last allocations are looked at when it frees.
  static constexpr size_t kRecent = 8;

 private:
  struct Thread {
    std::array<Block, kRecent> recent = {};  // A ring; address 0: gone, or already a successor.
    size_t next = 0;
  };
  struct Image {
    std::vector<Thread> threads;
    std::unordered_map<BlockKey, GrowthChain, BlockKeyHash> chains;  // By their last block.
  };
  Image& image_of(ImageId image);
  static Thread& thread_of(Image& image, ThreadId thread);
  static void forget(Image& image, const Block& block);
  static GrowthChain take(Image& image, const Block& block);
  static void grow(GrowthChain* chain, const Block& before, const Block& now, bool moved);

  Finished finished_;
  std::vector<Image> images_;  // By id.
};

}  // namespace malloscope::analyze
