// SPDX-License-Identifier: Apache-2.0
// What every image and every stack allocated, freed, still holds and held at the
// peak: one pass over the events. How the peak is shared out, what a
// reallocation does and what a forked child inherits is told in accounts.cc.

#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "analyze/block_table.h"
#include "trace/event_stream.h"

namespace malloscope::analyze {

// mmap and its like; never mixed with the heap.
struct Mappings {
  uint64_t calls = 0;
  uint64_t failed = 0;
  uint64_t mapped_bytes = 0;    // By mmap.
  uint64_t unmapped_bytes = 0;  // By munmap.
};

struct Totals {
  uint64_t allocations = 0;    // Calls that returned a new block.
  uint64_t reallocations = 0;  // Calls that changed a block of this account.
  uint64_t frees = 0;          // Of blocks of this account.
  uint64_t inherited_frees = 0;
  uint64_t allocated_bytes = 0;
  uint64_t freed_bytes = 0;
  uint64_t live_bytes = 0;
  uint64_t live_blocks = 0;
  uint64_t temporary = 0;
  uint64_t failed = 0;
  uint64_t unmatched_frees = 0;
  uint64_t order_violations = 0;
  std::array<uint64_t, 32> calls = {};  // By wire::Op.
  Mappings mappings;                    // Made by the program and its libraries.
  Mappings allocator_mappings;          // Made by the allocator itself; not in `calls`.

  Totals& operator+=(const Totals& other);
};

// Of a stack, or of all stacks of a site.
struct Amounts {
  uint64_t allocations = 0;
  uint64_t reallocations = 0;
  uint64_t allocated_bytes = 0;
  uint64_t live_bytes = 0;
  uint64_t live_blocks = 0;
  uint64_t temporary = 0;
  uint64_t peak_bytes = 0;  // The share of the peak.

  Amounts& operator+=(const Amounts& other);
};

struct Peak {
  uint64_t bytes = 0;
  uint64_t tick = 0;
};

// The images a report is about: all, or those of one process (several after an exec).
struct Selection {
  std::optional<int> pid;

  bool contains(const trace::Image& image) const { return !pid || *pid == image.pid; }
};

class Accounts : public trace::Listener {
 public:
  explicit Accounts(Selection selection = {});
  ~Accounts() override;

  void image_started(const trace::Image& image) override;
  void events(std::span<const wire::Event> events) override;
  void image_ended(const trace::Image& image) override;
  bool is_live(ImageId image, uint64_t address) override;

  const Selection& selection() const { return selection_; }
  // Of the selected images.
  Totals totals() const;
  Peak peak() const { return peak_; }

  // Of the last event shown.
  uint64_t last_tick() const { return last_tick_; }

  // Of one image, selected or not, with its own highest sum.
  Totals totals(ImageId image) const;
  Peak peak(ImageId image) const;

  // Calls visit(ImageId, StackId, const Amounts&) for every stack of the selected images that
  // allocated. The shares of the peak add up to peak().bytes, the others to totals().
  template <typename Visit>
  void for_each_stack(Visit&& visit) const {
    for (uint32_t i = 1; i < images_.size(); ++i)
      for (uint32_t s = 0; s < stack_count(ImageId{i}); ++s)
        if (std::optional<Amounts> amounts = stack(ImageId{i}, StackId{s}))
          visit(ImageId{i}, StackId{s}, *amounts);
  }

 private:
  struct ImageAccount;
  // A cache line. `peak_bytes` counts only if `peak_epoch` is the last one.
  struct StackAccount : Amounts {
    uint64_t peak_epoch = 0;
  };

  ImageAccount* account(ImageId id) const;
  uint32_t stack_count(ImageId image) const;
  std::optional<Amounts> stack(ImageId image, StackId id) const;

  void apply(ImageAccount& image, const wire::Event& event);
  void allocate(ImageAccount& image, const wire::Event& event);
  void free_block(ImageAccount& image, const wire::Event& event);
  void displace(ImageAccount& image, uint64_t address, uint64_t tick);
  void forget(ImageAccount& image, const Block& block, uint64_t tick);
  void release(ImageAccount& image, const Block& block, const wire::Event& event);
  void begin_realloc(ImageAccount& image, const wire::Event& event);
  void end_realloc(ImageAccount& image, const wire::Event& event);
  void map(ImageAccount& image, const wire::Event& event);

  // The stack's account, its share of the peak so far made safe from the change to come.
  StackAccount& touch(ImageAccount& image, StackId id);
  // To be called with the image's live bytes before an event, and after the event.
  void settle(ImageAccount& image, uint64_t live_before, uint64_t tick);

  void bury(ImageAccount& image, const Block& block, uint64_t tick);
  bool inherits(const ImageAccount& image, uint64_t address) const;
  void let_go(ImageAccount& image);

  Selection selection_;
  std::vector<std::unique_ptr<ImageAccount>> images_;  // By id; 0 is not used.
  uint64_t running_bytes_ = 0;
  uint64_t last_tick_ = 0;
  Peak peak_;
  uint64_t peak_epoch_ = 1;  // Counts the new maxima; 0 in a StackAccount is "never saved".
};

}  // namespace malloscope::analyze
