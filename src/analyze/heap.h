// SPDX-License-Identifier: Apache-2.0
// From events to what happens to blocks: made, changed, gone, each with the block as
// it was. Keeps the live blocks of every image, its totals and the peak; whoever
// wants to know more observes it. What a reallocation does and what a forked child
// inherits is told in heap.cc.

#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "analyze/block_table.h"
#include "analyze/phases.h"
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
  // With keep_last_calls(): of the calls that were for no block of this account.
  uint64_t unblamed_call_cycles = 0;
  std::array<uint64_t, 32> calls = {};  // By wire::Op.
  Mappings mappings;                    // Made by the program and its libraries.
  Mappings allocator_mappings;          // Made by the allocator itself; not in `calls`.

  Totals& operator+=(const Totals& other);
};

struct Peak {
  uint64_t bytes = 0;
  uint64_t tick = 0;
};

// The images a report is about: all, those of one process (several after an exec), or one of them.
struct Selection {
  std::optional<int> pid = std::nullopt;
  std::optional<ImageId> image = std::nullopt;

  bool is_all() const { return !pid && !image; }
  bool contains(const trace::Image& other) const {
    return (!pid || *pid == other.pid) && (!image || *image == other.id);
  }
};

// The part of the recording that counts. Events before it only build up the heap, those
// after it are not looked at: `live` is what is live at its end.
struct Window {
  static constexpr uint64_t kNever = UINT64_MAX;

  uint64_t from_tick = 0;
  uint64_t to_tick = kNever;  // Inclusive.
  // Many events may share the tick of the peak. A window that begins or ends at the peak does so
  // right behind the event that first makes the running sum this high; its tick only tells when
  // that is.
  uint64_t from_bytes = kNever;
  uint64_t to_bytes = kNever;

  // The moment that it begins at, which is where the one before it ends.
  uint64_t begin_tick() const {
    return from_bytes != kNever || from_tick == 0 ? from_tick : from_tick - 1;
  }
};

// Told of every block of the selected images, in order. `event` is the call that did it; before
// the window its thread, tick and stack are still told, with `counts` false.
class HeapObserver {
 public:
  virtual ~HeapObserver() = default;

  enum class End {
    kFreed,
    // Freed by the thread that allocated it, before that thread's next allocation; both in the
    // window.
    kTemporary,
    kLost,  // Its address was given to another block: an event is missing.
  };

  // Whether it wants to be told, by expect(), which stacks it is going to be asked about: only
  // worth the time if what it keeps of them does not fit into caches. At most one observer may.
  virtual bool has_much() const { return false; }
  virtual void expect(ImageId image, StackId stack) const { (void)image, (void)stack; }

  virtual void image_started(const trace::Image& image) { (void)image; }
  // The blocks that an image has when the window begins, unless that is at the very beginning. As
  // with left(), it may be told in parts.
  virtual void found(ImageId image, const BlockTable& live) { (void)image, (void)live; }
  virtual void made(ImageId image, const Block& block, const wire::Event& event, bool counts) {
    (void)image, (void)block, (void)event, (void)counts;
  }
  // By realloc; `now` may be at another address.
  virtual void changed(ImageId image, const Block& before, const Block& now,
                       const wire::Event& event, bool counts) {
    (void)image, (void)before, (void)now, (void)event, (void)counts;
  }
  virtual void gone(ImageId image, const Block& block, End how, const wire::Event& event,
                    bool counts) {
    (void)image, (void)block, (void)how, (void)event, (void)counts;
  }
  virtual void mapped(const wire::Event& event, StrandId strand, bool counts) {
    (void)event, (void)strand, (void)counts;
  }
  // A call took so many cycles: one that made, changed or freed this block (of one that made none,
  // what it asked for). Only if keep_last_calls() and the trace has times.
  virtual void timed(ImageId image, const Block& block, uint64_t cycles, bool counts) {
    (void)image, (void)block, (void)cycles, (void)counts;
  }
  // A free, or a realloc, of what is no block of the image and was none of its parent's.
  virtual void unmatched(ImageId image, uint64_t address, const wire::Event& event, bool counts) {
    (void)image, (void)address, (void)event, (void)counts;
  }
  // What is left when the image ends or the window does, mostly at once: of blocks with one
  // address, all but one of which are being reallocated, one at a time.
  virtual void left(ImageId image, const BlockTable& live) { (void)image, (void)live; }
  // Its blocks stay live, but are no longer part of the running sum.
  virtual void image_ended(ImageId image) { (void)image; }
};

class Heap : public trace::Listener {
 public:
  explicit Heap(Selection selection = {}, Window window = {});
  ~Heap() override;

  // Before the first event. Must outlive the heap.
  void add_observer(HeapObserver* observer) { observers_.push_back(observer); }
  // For HeapObserver::timed.
  void keep_last_calls() { keeps_last_calls_ = true; }

  void image_started(const trace::Image& image) override;
  void events(std::span<const wire::Event> events) override;
  void image_ended(const trace::Image& image) override;
  bool is_live(ImageId image, uint64_t address) override;

  const Selection& selection() const { return selection_; }
  const Window& window() const { return window_; }
  // Of the selected images, in the window.
  Totals totals() const;
  Peak peak() const { return peak_; }
  // Counts the new maxima; a change of an observer's sums that was made in the present epoch came
  // after the highest moment so far. See tally.cc.
  uint64_t peak_epoch() const { return peak_epoch_; }

  // Of the last event shown.
  uint64_t last_tick() const { return last_tick_; }
  // Up to when an image's blocks have lived, as far as is known: its end, or the last event; not
  // beyond the window.
  uint64_t end_tick(ImageId image) const;

  // What the strands of blocks mean.
  const PhasePaths& phases() const { return phases_.paths(); }

  // Whether a realloc of one of an image's blocks has begun and not ended.
  bool is_reallocating(ImageId image) const;

  // The block at an address now, or nullptr; and what makes that fast for events to come.
  const Block* block(ImageId image, uint64_t address) const;
  void expect(std::span<const wire::Event> events) const;

  // Of one image, selected or not, with its own highest sum.
  Totals totals(ImageId image) const;
  Peak peak(ImageId image) const;

  // To be called after the last event: shows what is left in images that have not ended. After it
  // there are totals, but no blocks.
  void finish();

  // Instead of events: what they led to. See index.h.
  void restore(const trace::Image& image, const Totals& totals, Peak peak);
  void restore(Peak peak, uint64_t last_tick);
  void restore(PhasePaths paths) { phases_.restore(std::move(paths)); }

 private:
  struct ImageAccount;

  ImageAccount* account(ImageId id) const;
  // Shows the image's blocks to observers.
  void show_live(ImageAccount& image, void (HeapObserver::*show)(ImageId, const BlockTable&));

  void apply(ImageAccount& image, const wire::Event& event);
  // That the event makes.
  Block block_of(const ImageAccount& image, const wire::Event& event) const;
  void allocate(ImageAccount& image, const wire::Event& event);
  void free_block(ImageAccount& image, const wire::Event& event);
  void put(ImageAccount& image, const Block& block, const wire::Event& event);
  void forget(ImageAccount& image, const Block& block, HeapObserver::End how,
              const wire::Event& event);
  void release(ImageAccount& image, const Block& block, const wire::Event& event,
               bool may_be_newest = true);
  void begin_realloc(ImageAccount& image, const wire::Event& event);
  void end_realloc(ImageAccount& image, const wire::Event& event);
  void pass_over(ImageAccount& image, const wire::Event& event);
  void map(ImageAccount& image, const wire::Event& event);
  static void count_call(ImageAccount& image, const wire::Event& event, uint64_t times);
  void time(ImageAccount& image, const wire::Event& event);
  void count_unmatched(ImageAccount& image, uint64_t address, const wire::Event& event);

  // To be called with the image's live bytes before an event, and after the event.
  void settle(ImageAccount& image, uint64_t live_before, uint64_t tick);
  void enter_window();
  void reach_peak();

  void bury(ImageAccount& image, const Block& block, uint64_t tick);
  bool inherits(const ImageAccount& image, uint64_t address) const;
  void let_go(ImageAccount& image);

  Selection selection_;
  Window window_;
  bool counts_;        // The window has begun.
  bool over_ = false;  // The window has ended.
  bool keeps_last_calls_ = false;
  std::vector<HeapObserver*> observers_;
  Phases phases_;
  StrandId strand_ = StrandId::kNone;                  // Of the event that is being applied.
  std::vector<std::unique_ptr<ImageAccount>> images_;  // By id; 0 is not used.
  uint64_t running_bytes_ = 0;
  uint64_t last_tick_ = 0;
  Peak peak_;
  uint64_t peak_epoch_ = 1;  // 0 in an observer is "never saved".
};

}  // namespace malloscope::analyze
