// SPDX-License-Identifier: Apache-2.0
#include "analyze/site_blocks.h"

#include <algorithm>
#include <tuple>

#include "analyze/tally.h"

namespace malloscope::analyze {

void SiteBlocks::add(ImageId image, const Block& block, uint64_t died) {
  if (!wants_(image, block)) return;
  BlockBar bar;
  bar.born = block.born_tick;
  bar.died = died;
  bar.bytes = block.bytes();
  bar.blocks = block.stands_for();
  bar.thread = thread_of(block.strand);
  bar.size_class = static_cast<uint8_t>(size_class(block.size));
  bar.life_class =
      died == BlockBar::kAlive ? UINT8_MAX : static_cast<uint8_t>(size_class(died - bar.born));
  bars_.push_back(bar);
  blocks_ += block.stands_for();
  // Room for many, so that this is rare, and more than is shown in the end: neighbours of which
  // one comes late find each other then.
  if (bars_.size() > most_bars_ * 16) thin(most_bars_ * 8);
}

void SiteBlocks::changed(ImageId image, const Block& before, const Block& now,
                         const wire::Event& event, bool counts) {
  // The block goes on, but is another stack's or has another size.
  (void)now;
  if (counts) add(image, before, std::max(event.tick, before.born_tick));
}

void SiteBlocks::gone(ImageId image, const Block& block, End how, const wire::Event& event,
                      bool counts) {
  (void)how;
  if (counts) add(image, block, std::max(event.tick, block.born_tick));
}

void SiteBlocks::left(ImageId image, const BlockTable& live) {
  live.for_each([&](const Block& block) { add(image, block, BlockBar::kAlive); });
}

// For how long the bar of two would say that there was a block when there was none, or where one is
// longer. UINT64_MAX: they are unlike each other.
static uint64_t waste(const BlockBar& bar, const BlockBar& next) {
  if (bar.life_class != next.life_class || bar.size_class != next.size_class) return UINT64_MAX;
  uint64_t longest = std::max(bar.died - bar.born, next.died - next.born);
  return std::min(std::max(bar.died, next.died) - bar.born - longest, UINT64_MAX - 1);
}

// Of the `pairs` of neighbours that waste the least, what the worst does.
uint64_t SiteBlocks::highest_waste(size_t pairs) const {
  std::vector<uint64_t> wastes;
  for (size_t i = 0; i + 1 < bars_.size(); ++i)
    if (uint64_t here = waste(bars_[i], bars_[i + 1]); here != UINT64_MAX) wastes.push_back(here);
  if (wastes.size() <= pairs) return UINT64_MAX - 1;
  auto last = wastes.begin() + static_cast<ptrdiff_t>(pairs);
  std::nth_element(wastes.begin(), last, wastes.end());
  return *last;
}

static void merge(const BlockBar& more, BlockBar* bar) {
  bar->born = std::min(bar->born, more.born);
  bar->died = std::max(bar->died, more.died);
  bar->bytes += more.bytes;
  bar->blocks += more.blocks;
  if (bar->thread != more.thread) bar->thread = ThreadId::kNone;
}

void SiteBlocks::thin(size_t most) {
  while (bars_.size() > most) {
    size_t before = bars_.size();
    auto goes_before = [](const BlockBar& a, const BlockBar& b) {
      return std::tie(a.life_class, a.size_class, a.born, a.died) <
             std::tie(b.life_class, b.size_class, b.born, b.died);
    };
    if (!std::ranges::is_sorted(bars_, goes_before)) std::ranges::sort(bars_, goes_before);
    // One of each pair of neighbours, as long as there are too many; first those that leave out
    // the least time in which there was none.
    size_t kept = 0, surplus = bars_.size() - most;
    uint64_t most_waste = highest_waste(surplus);
    for (size_t i = 0; i < bars_.size(); ++i) {
      BlockBar bar = bars_[i];
      if (surplus > 0 && i + 1 < bars_.size() && waste(bar, bars_[i + 1]) <= most_waste) {
        merge(bars_[++i], &bar);
        --surplus;
      }
      bars_[kept++] = bar;
    }
    bars_.resize(kept);
    if (kept == before) break;  // All are unlike each other: there are few such classes.
  }
}

std::vector<BlockBar> SiteBlocks::take() {
  thin(most_bars_);
  std::ranges::sort(bars_, [](const BlockBar& a, const BlockBar& b) {
    return std::tie(a.born, a.died, a.bytes) < std::tie(b.born, b.died, b.bytes);
  });
  return std::move(bars_);
}

}  // namespace malloscope::analyze
