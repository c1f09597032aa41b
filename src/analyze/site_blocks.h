// SPDX-License-Identifier: Apache-2.0
// Each block of some stacks from its birth to its death. Of millions, those that are much alike
// (about as large, as long-lived, born one after the other) become one bar that says how
// many it stands for; none is left out.

#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "analyze/heap.h"
#include "analyze/index.h"

namespace malloscope::analyze {

struct BlockBar {
  uint64_t born = 0;   // Ticks: of the first that it stands for ...
  uint64_t died = 0;   // ... and of the last; kAlive: at least one was live at the end.
  uint64_t bytes = 0;  // Of all of them.
  uint64_t blocks = 0;
  ThreadId thread = ThreadId::kNone;  // That allocated them, if it is one.
  uint8_t size_class = 0;
  uint8_t life_class = 0;  // As size_class(): of its ticks.

  static constexpr uint64_t kAlive = UINT64_MAX;
};

class SiteBlocks : public HeapObserver {
 public:
  // `wants`: whether a block is shown.
  SiteBlocks(std::function<bool(ImageId, const Block&)> wants, size_t most_bars)
      : wants_(std::move(wants)), most_bars_(most_bars) {}

  // By birth, at most as many as wanted. After the last event.
  std::vector<BlockBar> take();
  uint64_t blocks() const { return blocks_; }

  // A block that was there until then, or BlockBar::kAlive; if it is wanted. An observer of events
  // does that by itself.
  void add(ImageId image, const Block& block, uint64_t died);

  // A realloc ends a block and begins another one.
  void changed(ImageId image, const Block& before, const Block& now, const wire::Event& event,
               bool counts) override;
  void gone(ImageId image, const Block& block, End how, const wire::Event& event,
            bool counts) override;
  void left(ImageId image, const BlockTable& live) override;

  // Instead of events (indexed_blocks.cc): adds the blocks of an index's cells that ended in these
  // steps (see Index::parting_steps_of) or were live at their end. `wants`: by cell, whether it is
  // shown; of some, only sizes in `sizes`. False: the index does not tell. What the index has put
  // together stays so: is_coarse() then, and a look at all events may tell more apart.
  struct Cells {
    enum Want : uint8_t { kNone, kSome, kAll };
    std::vector<Want> wants;
    uint64_t min_size = 0, max_size = UINT64_MAX;
  };
  bool restore(const Index& index, Index::Steps steps, const Cells& cells);
  // The same of very many, from what is kept of them, which must have these steps. Those of a kind
  // that were born in the same step and ended in the same are one.
  class Folded;
  void restore(const Folded& folded, const Index& index, Index::Steps steps);
  bool is_coarse() const { return is_coarse_; }

 private:
  // Merges neighbours that are alike until there are at most `most`.
  void thin(size_t most);
  uint64_t highest_waste(size_t pairs) const;
  struct Looks;
  class Wants;
  class StepFold;
  template <typename LookOf>
  bool restore(const Index& index, Index::Steps steps, const Cells& cells, const Looks& looks,
               const LookOf& look_of);

  std::function<bool(ImageId, const Block&)> wants_;
  size_t most_bars_;
  uint64_t blocks_ = 0;
  bool is_coarse_ = false;
  std::vector<BlockBar> bars_;
};

// The blocks of an index's cells that ended in some steps or were live at their end, for whoever
// asks about one range after the other: any part of these steps is told from here.
class SiteBlocks::Folded {
 public:
  // False: the index does not tell; nothing can be asked any more. To what is there already, only
  // the steps that are missing are added. Always the same index and cells.
  bool cover(const Index& index, const Cells& cells, Index::Steps steps);

 private:
  friend class SiteBlocks;
  friend class SiteBlocks::StepFold;
  struct Entry {
    uint32_t born = 0, ended = 0;  // The steps; IndexTimes::kSteps: live at the end.
    BlockBar bar;
  };
  template <typename LookOf>
  bool fold(const Index& index, const Cells& cells, std::span<const Index::Steps> missing,
            uint32_t last, const Looks& looks, const LookOf& look_of);

  std::optional<Index::Steps> steps_;
  std::vector<Entry> ended_, live_;
};

}  // namespace malloscope::analyze
