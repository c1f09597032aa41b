// SPDX-License-Identifier: Apache-2.0
// A vector that is full allocates, moves its elements and frees the old block, all in one
// call. In the trace that is
//
//     T   allocates  B   by stack S
//     T   frees      A   which was allocated by stack S too, earlier, and is smaller
//
// with nothing, or little, of T's between. So when a thread frees A, its last few allocations
// are searched, newest first, for such a B; then B goes on with A's chain. A itself may have
// been made by another thread: a shared journal grows under a lock. Sizes need not double;
// a chain of any growing sizes counts. What is missed: the first step if the first block
// was made elsewhere (a constructor, a reserve), and elements that allocate more than a
// few blocks while they are copied.

#include "analyze/growth_chains.h"

#include <algorithm>

namespace malloscope::analyze {

GrowthChains::Image& GrowthChains::image_of(ImageId image) {
  if (raw(image) >= images_.size()) images_.resize(raw(image) + size_t{1});
  return images_[raw(image)];
}

GrowthChains::Thread& GrowthChains::thread_of(Image& image, ThreadId thread) {
  if (raw(thread) >= image.threads.size()) image.threads.resize(raw(thread) + size_t{1});
  return image.threads[raw(thread)];
}

void GrowthChains::forget(Image& image, const Block& block) {
  for (Block& recent : thread_of(image, analyze::thread_of(block.strand)).recent)
    if (recent.address == block.address) recent.address = 0;
}

GrowthChain GrowthChains::take(Image& image, const Block& block) {
  GrowthChain chain;
  auto found = image.chains.find(BlockKey(block));
  if (found == image.chains.end()) {
    chain.first_size = chain.largest_size = block.size;
    return chain;
  }
  chain = found->second;
  image.chains.erase(found);
  return chain;
}

void GrowthChains::grow(GrowthChain* chain, const Block& before, const Block& now, bool moved) {
  // From one element to two, and then always a multiple of the first.
  chain->of_one_element &= chain->growths > 0
                               ? now.size % std::max<uint64_t>(chain->first_size, 1) == 0
                               : now.size == 2 * before.size;
  ++chain->growths;
  if (moved) chain->copied_bytes += before.size;
  chain->factors +=
      static_cast<double>(now.size) / static_cast<double>(std::max<uint64_t>(before.size, 1));
  chain->largest_size = std::max(chain->largest_size, now.size);
}

void GrowthChains::made(ImageId id, const Block& block, const wire::Event& event, bool) {
  Thread& thread = thread_of(image_of(id), event.thread);
  thread.recent[thread.next] = block;
  thread.next = (thread.next + 1) % kRecent;
}

void GrowthChains::changed(ImageId id, const Block& before, const Block& now, const wire::Event&,
                           bool counts) {
  Image& image = image_of(id);
  forget(image, before);
  GrowthChain chain = take(image, before);
  // In place nothing is copied.
  if (counts && now.size > before.size) grow(&chain, before, now, now.address != before.address);
  chain.by_realloc = true;
  chain.of_one_element = false;
  chain.stack = now.stack;
  chain.strand = now.strand;
  if (chain.growths > 0) image.chains.insert_or_assign(BlockKey(now), chain);
}

void GrowthChains::gone(ImageId id, const Block& block, End how, const wire::Event& event,
                        bool counts) {
  Image& image = image_of(id);
  Thread& thread = thread_of(image, event.thread);
  Block* successor = nullptr;
  if (how != End::kLost && counts && block.stack != StackId::kNone) {
    for (size_t i = 1; i <= kRecent; ++i) {
      Block& recent = thread.recent[(thread.next + kRecent - i) % kRecent];
      if (recent.address == block.address) break;  // What is older than itself cannot follow it.
      if (recent.address == 0 || recent.stack != block.stack || recent.size <= block.size ||
          recent.born_tick < block.born_tick)
        continue;
      successor = &recent;
      break;
    }
  }
  GrowthChain chain = take(image, block);
  if (successor) {
    grow(&chain, block, *successor, true);
    chain.stack = block.stack;
    chain.strand = successor->strand;
    image.chains.insert_or_assign(BlockKey(*successor), chain);
    successor->address = 0;
  } else if (chain.growths > 0) {
    finished_(id, chain);
  }
  forget(image, block);
}

void GrowthChains::left(ImageId id, const BlockTable&) {
  Image& image = image_of(id);
  for (const auto& [key, chain] : image.chains) finished_(id, chain);
  image.chains.clear();
}

}  // namespace malloscope::analyze
