// SPDX-License-Identifier: Apache-2.0
// Makes an index while it listens to all events of a trace once.

#pragma once

#include <cstdint>
#include <functional>
#include <future>
#include <unordered_map>
#include <vector>

#include "analyze/heap.h"
#include "analyze/index.h"
#include "analyze/origins.h"

namespace malloscope::analyze {

class IndexBuilder : public trace::Listener {
 public:
  enum class Level { kStep, kGroup, kLives, kSurvivors, kSizes, kOddSizes };
  // Told of every block when it is whole; the step, the group or the part; of lives, their step
  // times kReaches and their reach.
  using Sink = std::function<void(Level, uint32_t, PackedBlock)>;

  // `several_processes`: whether peaks of single processes are to be kept as well.
  IndexBuilder(const IndexTimes& times, bool several_processes, Sink sink);

  void image_started(const trace::Image& image) override;
  void events(std::span<const wire::Event> events) override;
  void image_ended(const trace::Image& image) override;
  bool is_live(ImageId image, uint64_t address) override { return heap_.is_live(image, address); }

  // After the last event. False: there was more than an index is made for.
  bool finish(const trace::Tables& tables);
  const IndexFacts& facts() const { return facts_; }
  const std::vector<IndexCell>& cells() const { return cells_; }

 private:
  // A cache line, which is asked for before it is needed: what has changed in the present step.
  struct alignas(64) Cell {
    uint64_t live_bytes = 0;   // Now ...
    uint64_t live_before = 0;  // ... and when the step began.
    uint64_t allocated_bytes = 0;
    uint64_t at_peak = 0;  // Live bytes at the highest moment, if `epoch` is that of now.
    uint32_t epoch = 0;
    uint32_t step = UINT32_MAX;  // That the numbers below are of.
    uint32_t allocations = 0, reallocations = 0, temporary = 0;
    int32_t live_blocks = 0;
    uint32_t stack = 0;
    uint32_t strand_and_class = 0;
  };
  static_assert(sizeof(Cell) == 64);
  struct OwnPeak {  // Beside cells, for its own process.
    uint64_t bytes = 0;
    uint32_t epoch = 0;
  };
  // Cells, and what has changed in them.
  struct Changing {
    std::vector<Cell> states;
    std::vector<OwnPeak> own_peaks;  // Beside them, if there are several processes.
    std::vector<uint64_t> touched;   // A bit for each.
    bool any_touched = false;

    Cell& add(bool several_processes);
  };
  // Blocks of a cell that have another size than is usual for it, in the present step.
  struct OddSize {
    uint32_t cell;
    bool is_mapped;
    uint64_t size;
    bool operator==(const OddSize&) const = default;
    auto operator<=>(const OddSize&) const = default;
  };
  struct alignas(64) Sum {  // Of a group; beside cells.
    uint64_t allocations = 0, reallocations = 0, temporary = 0, allocated_bytes = 0;
    int64_t live_bytes = 0, live_blocks = 0;
  };
  // A running sum and its highest in the step. An epoch begins with the step and with each new
  // maximum; see tally.cc.
  struct Running {
    uint64_t bytes = 0;
    Peak peak;
    uint32_t epoch = 0;
    uint32_t step = UINT32_MAX;
  };
  struct ImageState {
    uint64_t live_bytes = 0;
    Peak peak;
    uint32_t step = UINT32_MAX;
    Totals before;  // At the end of the last step in which anything happened.
    bool ended = false;
    uint32_t end_epoch = 0, own_end_epoch = 0;
    uint32_t process = 0;
    std::vector<uint32_t> latest;   // By stack: the cell that was used last, + 1.
    std::vector<uint32_t> made_in;  // By thread: the step in which it made its newest block.
    // The cell of a size, + 1: of small ones by size.
    std::vector<uint32_t> small_sizes;
    std::unordered_map<uint64_t, uint32_t> large_sizes;
    // By the thread that made them: who freed how many in the present step. Few free others'.
    std::vector<std::vector<IndexFacts::Freed>> freed;
  };

  using End = HeapObserver::End;
  // A class of its own: what it is told has the same names as what a listener is.
  struct Observer : HeapObserver {
    IndexBuilder& builder;
    explicit Observer(IndexBuilder& whose) : builder(whose) {}
    void made(ImageId image, const Block& block, const wire::Event& event, bool) override {
      builder.made(image, block, event.tick);
    }
    void changed(ImageId image, const Block& before, const Block& now, const wire::Event& event,
                 bool) override {
      builder.changed(image, before, now, event.tick);
    }
    void gone(ImageId image, const Block& block, End how, const wire::Event& event, bool) override {
      builder.gone(image, block, how, event);
    }
    void left(ImageId image, const BlockTable& live) override { builder.left(image, live); }
  };
  void made(ImageId id, const Block& block, uint64_t tick);
  void changed(ImageId id, const Block& before, const Block& now, uint64_t tick);
  void gone(ImageId id, const Block& block, End how, const wire::Event& event);
  void left(ImageId id, const BlockTable& live);
  void count_freed(ImageState& image, const Block& block, ThreadId freer);
  void close_freed(ImageState& image, ImageId id);

  ImageState& state_of(ImageId image);
  void touch(ImageState& image, ImageId id);
  void touch(Running& running);
  Cell& touch(Changing& cells, uint32_t i, const ImageState& image);
  // Calls change(Cell&) for all that a change of a block is counted in. Returns the block's cell.
  template <typename Change>
  uint32_t count(ImageId id, ImageState& image, const Block& block, Change&& change);
  uint32_t odd_size_of(const OddSize& odd);
  void close_odd_sizes();
  // What has changed in a cell of an image.
  IndexEntry entry_of(const Changing& cells, uint32_t i, ImageId image) const;
  uint32_t cell_of(ImageId id, ImageState& image, const Block& block);
  uint32_t size_cell_of(ImageId id, ImageState& image, uint64_t size);
  // Of a block that was live under its present cell, and is not any more, or is left.
  void end_life(ImageId id, const Block& block, uint32_t cell, uint64_t tick, uint8_t roles,
                const Block& origin, ThreadId freer, IndexLivesWriter* lives);
  void close_survivors();
  // Packs what is to be packed in another thread, while events are read on; tells of what that has
  // packed before.
  void pack_beside();
  void tell_packed();
  uint32_t find_cell(ImageId id, ImageState& image, const Block& block, uint32_t strand_and_class);
  // In fewer bits than it has itself; a plain strand's is the thread's.
  uint32_t number_of(StrandId strand);
  void grow_places();
  void settle(ImageState& image, uint64_t change, uint64_t tick);
  void advance(uint32_t step);
  void close_step();
  void close_group(uint32_t group);
  void show(std::span<const wire::Event> events);
  void expect(std::span<const wire::Event> events);

  Heap heap_;
  Observer observer_{*this};
  Sink sink_;
  IndexFacts facts_;
  bool too_much_ = false;
  uint32_t step_ = 0;       // Of the latest event ...
  uint32_t high_ = 0;       // ... or of an image's end, if that is later.
  uint64_t low_tick_ = 0;   // Where high_ begins.
  uint64_t next_tick_ = 0;  // Where the step after step_ begins.
  ImageId last_image_ = ImageId::kNone;

  Running all_;
  std::vector<Running> processes_;
  std::vector<int> pids_;
  std::unordered_map<int, uint32_t> process_of_pid_;
  std::vector<ImageState> images_;  // By id.
  std::vector<uint32_t> touched_images_, touched_processes_, ended_images_;
  uint32_t running_images_ = 0;
  struct LastToRun {
    uint32_t image;  // From 0.
    uint32_t end_step;
  };
  std::optional<LastToRun> last_to_run_;  // What it leaves stays, unless another one follows.

  std::vector<IndexCell> cells_;
  std::vector<uint32_t> usual_sizes_;  // Beside cells_.
  Changing stacks_;                    // Likewise.
  std::vector<Sum> sums_;              // Likewise.
  std::vector<uint64_t> touched_in_group_;
  Changing sizes_;        // Beside facts_.sizes.
  Changing odd_changes_;  // Beside odd_sizes_.
  std::vector<OddSize> odd_sizes_;
  std::vector<uint32_t> odd_places_;  // Open addressing: number + 1.
  std::vector<uint64_t> told_alone_;  // A bit for each cell: see IndexBlockWriter::Sizes::kOne.
  std::vector<uint32_t> order_;       // Scratch: the cells of a step or a group, in order.
  std::vector<uint32_t> places_;      // Open addressing: cell + 1.
  std::unordered_map<uint32_t, uint32_t> strand_numbers_;  // Of those in phases.
  IndexBlockWriter step_writer_, group_writer_, size_writer_;
  OddSizesWriter odd_writer_;
  Origins origins_;
  IndexLivesWriter lives_, survivors_;
  uint32_t survivor_parts_ = 0;
  struct ToPack {
    Level level;
    uint32_t number;
    std::function<std::vector<PackedBlock>()> pack;  // The first has that number.
    std::vector<PackedBlock> packed;
  };
  std::vector<ToPack> to_pack_;
  std::future<std::vector<ToPack>> packing_;
};

}  // namespace malloscope::analyze
