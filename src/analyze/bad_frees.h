// SPDX-License-Identifier: Apache-2.0
// Frees of what is no block: of one that was freed before (by whom, if the trace has
// the stacks of frees), or of an address that no allocation returned.

#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "analyze/answer.h"
#include "analyze/heap.h"
#include "analyze/query.h"
#include "analyze/reading.h"

namespace malloscope::analyze {

class BadFrees : public HeapObserver {
 public:
  // Remembers every freed block until its address is used again, if the trace has the stacks of
  // frees; else it only counts.
  void attach(Heap* heap, bool has_free_stacks);

  // Instead of that, if so many is all that is known.
  void restore(uint64_t count, bool has_free_stacks) {
    count_ = count;
    has_stacks_ = has_free_stacks;
  }

  void made(ImageId image, const Block& block, const wire::Event& event, bool counts) override;
  void changed(ImageId image, const Block& before, const Block& now, const wire::Event& event,
               bool counts) override;
  void gone(ImageId image, const Block& block, End how, const wire::Event& event,
            bool counts) override;
  void unmatched(ImageId image, uint64_t address, const wire::Event& event, bool counts) override;
  void image_ended(ImageId image) override;

  uint64_t count() const { return count_; }
  bool has_stacks() const { return has_stacks_; }

  // Three rows for each: where it was freed again, first freed and allocated.
  Table table(Reading* reading, bool full_names) const;

 private:
  struct Call {
    StackId stack = StackId::kNone;
    ThreadId thread = ThreadId::kNone;
    uint64_t tick = 0;
  };
  struct Freed {
    Block block;
    Call by;
  };
  // Those with the same stacks; told of the first.
  struct BadFree {
    ImageId image;
    uint64_t address;
    Call call;
    bool was_block;
    Freed before;
    uint64_t times = 0;
  };
  using Stacks = std::array<uint32_t, 4>;  // Image, and the three stacks.

  bool has_stacks_ = false;
  uint64_t count_ = 0;
  std::vector<std::unordered_map<uint64_t, Freed>> freed_;  // By image, then by address.
  std::vector<BadFree> found_;
  std::map<Stacks, size_t> places_;
};

}  // namespace malloscope::analyze
