// SPDX-License-Identifier: Apache-2.0
// What each thread did becomes what each track does, in one pass over the events in the order in
// which they happened, with nothing in memory but the live blocks and the tracks: which slot a
// block gets (slot_pools.h), and who waits for whom.
//
// Somebody who frees or reallocates a block that another track made must come after that. A wait is
// written only if what was waited for before does not imply it (vector_clocks.h). What is waited
// for has happened earlier in the trace, so no circle can arise, whatever the trace holds.
//
// Nothing is dropped but what cannot be performed (a call that failed, a free of a block from
// before the recording), and that is counted. An impossible order is put right: a free before its
// block in untangle.h, a block before the free of the last one at its address in planned_heap.h.

#include "replay/plan.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <unordered_map>
#include <utility>

#include "replay/planned_heap.h"
#include "replay/slot_pools.h"
#include "replay/untangle.h"
#include "replay/vector_clocks.h"
#include "replay/writer.h"

namespace malloscope::replay {
namespace {

using wire::Event;
using wire::Kind;

constexpr uint32_t kNoTrack = ~0u;
// Ticks of the recording to one of the workload, which is then about a microsecond: no player keeps
// time better, and what is finer costs half a byte a call.
constexpr uint64_t kTicksToOne = 8;

class TrackPlanner : public Planner {
 public:
  TrackPlanner(const Survey& survey, const PlanOptions& options, int fd, const std::string& path)
      : survey_(survey),
        options_(options),
        before_(is_alone(options.image)),
        writer_(fd, path),
        blocks_(is_alone(options.image)) {
    // What it inherits is known from its parent, and its parent's parent.
    for (ImageId id = options.image;;) {
      const trace::Image& image = survey.tables.image(id);
      if (image.origin != trace::Origin::kForked || image.parent == ImageId::kNone ||
          !ancestors_.try_emplace(image.parent, is_alone(image.parent)).second)
        break;
      forks_.push_back(
          {image.parent, id, image.forked_tick ? image.forked_tick : image.start_tick});
      id = image.parent;
    }
    tail_.ns_per_tick = survey.tables.header.ns_per_tick * static_cast<double>(kTicksToOne);
    tail_.lost_events = survey.tables.image(options.image).lost;
    if (options.anonymize) tail_.flags |= kAnonymized;
  }

  void events(std::span<const Event> events) override {
    for (const Event& event : events) {
      if (!forks_.empty()) [[unlikely]]
        pass_forks(event);
      if (event.image == options_.image) {
        if (event.tick > options_.to_tick && !std::exchange(over_, true)) order_.flush();
        if (!over_) order_.add(event);
      } else if (auto ancestor = ancestors_.find(event.image); ancestor != ancestors_.end()) {
        ancestor->second.order.add(event);
      }
    }
  }

  bool is_live(ImageId image, uint64_t address) override {
    if (begun_ && image == options_.image) return blocks_.find(address) != nullptr;
    const WatchedHeap* heap = watched(image);
    return heap && heap->is_live(address);
  }

  Result<FileTail> finish() override {
    pass_forks(0);
    order_.flush();
    if (!begun_) begin(std::min(options_.to_tick, last_tick_));
    tail_.inversions += order_.put_right();
    tail_.threads = threads_;
    tail_.ticks = since_start(last_tick_);
    tail_.end_ideal_bytes = ideal_;
    tail_.slots = pools_.slots();
    std::vector<TrackPlace> tracks;
    for (uint32_t i = 0; i < tracks_.size(); ++i)
      tracks.push_back({tracks_[i].done, pools_.most_free(i), 0});
    return writer_.finish(tail_, std::move(tracks));
  }

 private:
  struct Track {
    uint64_t done = 0;  // Operations so far.
    uint64_t last_tick = 0;
    uint64_t free_from = 0;  // When its last thread has ended.
  };

  // A process that the one which is replayed was forked from, or one that that was forked from.
  struct Ancestor {
    WatchedHeap heap;
    Untangler order{[this](const Event& event, bool anyway) { return heap.watch(event, anyway); }};
    explicit Ancestor(bool one_thread) : heap(one_thread) {}
    Ancestor(const Ancestor&) = delete;
    Ancestor& operator=(const Ancestor&) = delete;
  };

  struct Fork {
    ImageId parent, child;
    uint64_t tick;
  };

  // An image is announced before the events of the whole epoch in which it was forked, and its
  // parent goes on after: the heap is copied when the parent's events come to the fork.
  void pass_forks(const Event& event) {
    for (size_t i = 0; i < forks_.size(); ++i) {
      const Fork& fork = forks_[i];
      if (event.image == fork.child || (event.image == fork.parent && event.tick > fork.tick))
        return pass_forks(i);
    }
  }
  // All but so many, the oldest first.
  void pass_forks(size_t but) {
    for (; forks_.size() > but; forks_.pop_back()) {
      Ancestor& parent = ancestors_.at(forks_.back().parent);
      parent.order.flush();
      watched(forks_.back().child)->inherit(parent.heap);
    }
  }

  WatchedHeap* watched(ImageId image) {
    if (image == options_.image) return &before_;
    auto found = ancestors_.find(image);
    return found == ancestors_.end() ? nullptr : &found->second.heap;
  }

  // False, and nothing has happened, if it is of a block that is not there.
  bool place(const Event& event, bool anyway) {
    if (!begun_ && event.tick >= options_.from_tick) begin(event.tick);
    last_tick_ = std::max(last_tick_, event.tick);
    return begun_ ? perform(event, anyway) : before_.watch(event, anyway);
  }

  // The heap as it is now is built up by the first track, and everybody waits for that.
  void begin(uint64_t tick) {
    begun_ = true;
    start_tick_ = std::max(tick, options_.from_tick);
    last_tick_ = start_tick_;
    before_.end_overdue(tick);
    std::vector<PlannedBlock> live = before_.by_birth();
    before_ = WatchedHeap();
    ancestors_.clear();
    if (live.empty()) return;
    add_track();
    for (PlannedBlock& block : live) {
      make(0, block.kind, block.size, block.alignment_log2, 0, &block);
      blocks_.put(block, tick);
    }
    tail_.setup_calls = live.size();
    std::fill(std::begin(tail_.calls), std::end(tail_.calls), 0);
    tail_.max_ideal_bytes = ideal_;
    append(0, {.kind = OpKind::kBegin});
  }

  bool perform(const Event& event, bool anyway) {
    if (event.kind == Kind::kMapping) {
      tail_.mapping_calls += (event.flags & wire::kInsideAllocator) == 0;
      return true;
    }
    if (event.kind > Kind::kMapping) return true;
    end_overdue(event.tick);
    uint32_t track = track_of(event);
    uint64_t tick = since_start(event.tick);
    switch (event.kind) {
      case Kind::kAlloc: {
        if (event.address == 0) {
          ++tail_.failed_calls;
          return true;
        }
        make_room(event);
        PlannedBlock block = {.address = event.address};
        make(track, kind_of(event.op), event.size, alignment_log2(event), tick, &block);
        put(block, event.tick);
        return true;
      }
      case Kind::kFree: {
        if (event.address == 0) {
          append_call(track, {.kind = OpKind::kFreeNull, .tick = tick});
          return true;
        }
        std::optional<PlannedBlock> block = blocks_.take(event.address);
        if (!block) {
          tail_.unknown_frees += anyway;
          return anyway;
        }
        wait_for(track, block->track, block->done);
        pools_.put(track, block->slot);
        append_call(track, {.kind = OpKind::kFree, .slot = block->slot, .tick = tick});
        ideal_ -= block->size;
        return true;
      }
      case Kind::kReallocBegin: {
        std::optional<PlannedBlock> block = blocks_.take(event.address);
        if (!block && event.address != 0) {
          if (!anyway) return false;
          ++tail_.unknown_frees;
        }
        reallocating_[raw(event.thread)].push_back(block);
        return true;
      }
      case Kind::kReallocEnd:
        reallocate(track, event, tick);
        return true;
      default:
        return true;
    }
  }

  void reallocate(uint32_t track, const Event& event, uint64_t tick) {
    auto& open = reallocating_[raw(event.thread)];
    std::optional<PlannedBlock> old;
    if (!open.empty()) {
      old = open.back();
      open.pop_back();
    }
    if (event.address == 0 && event.size != 0) {
      ++tail_.failed_calls;
      if (old) put(*old, event.tick);
      return;
    }
    if (old) wait_for(track, old->track, old->done);
    if (event.address == 0) {
      if (!old) return;  // Counted at its beginning, or realloc(NULL, 0) that returned nothing.
      pools_.put(track, old->slot);
      append_call(track, {.kind = OpKind::kReallocToFree, .slot = old->slot, .tick = tick});
      ideal_ -= old->size;
      return;
    }
    make_room(event);
    uint64_t size = asked(event.size);
    bool fresh = !old;
    PlannedBlock block = fresh ? PlannedBlock{} : *old;
    if (fresh) block.slot = new_slot(track);
    block.address = event.address;
    ideal_ += size - (fresh ? 0 : old->size);
    block.size = size;
    block.track = static_cast<uint16_t>(track);
    append_call(
        track,
        {.kind = OpKind::kRealloc, .fresh = fresh, .slot = block.slot, .size = size, .tick = tick});
    block.done = tracks_[track].done;
    put(block, event.tick);
  }

  // In ticks of the workload.
  uint64_t since_start(uint64_t tick) const {
    return tick > start_tick_ ? (tick - start_tick_) / kTicksToOne : 0;
  }
  uint64_t asked(uint64_t size) const { return options_.anonymize ? coarse_size(size) : size; }

  void make(uint32_t track, OpKind kind, uint64_t size, uint8_t alignment, uint64_t tick,
            PlannedBlock* block) {
    block->kind = kind;
    block->size = asked(size);
    block->alignment_log2 = alignment;
    block->slot = new_slot(track);
    block->track = static_cast<uint16_t>(track);
    ideal_ += block->size;
    append_call(track, {.kind = kind,
                        .alignment_log2 = alignment,
                        .fresh = kind == OpKind::kRealloc,
                        .slot = block->slot,
                        .size = block->size,
                        .tick = tick});
    block->done = tracks_[track].done;
  }

  void put(const PlannedBlock& block, uint64_t tick) {
    if (blocks_.put(block, tick)) [[likely]]
      return;
    ++tail_.inversions;
    end_overdue(tick);
  }

  // What is lost was freed before its address was given out, so that the two never count together.
  void make_room(const Event& event) {
    if (std::optional<PlannedBlock> lost = blocks_.take_lost(event.address)) [[unlikely]]
      end(*lost, event.tick);
  }

  void end_overdue(uint64_t tick) {
    blocks_.end_overdue(tick, [&](const PlannedBlock& block) {
      --tail_.inversions;
      end(block, tick);
    });
  }

  // Freed by who made it, as nobody knows who did.
  void end(const PlannedBlock& block, uint64_t tick) {
    ++tail_.missing_frees;
    pools_.put(block.track, block.slot);
    ideal_ -= block.size;
    append_call(block.track,
                {.kind = OpKind::kFree, .slot = block.slot, .tick = since_start(tick)});
  }

  bool is_alone(ImageId image) const {
    if (raw(image) >= survey_.images.size()) return true;
    return std::ranges::count_if(survey_.images[raw(image)].threads, [](const auto& thread) {
             return thread.first_tick <= thread.last_tick;
           }) <= 1;
  }

  void add_track() {
    tracks_.emplace_back();
    clocks_.add_track();
    pools_.add_track();
  }

  // The track of the event's thread; a new one, or one whose thread has ended, if it is the first.
  uint32_t track_of(const Event& event) {
    uint32_t thread = options_.one_thread ? 0 : raw(event.thread);
    if (thread < track_of_.size() && track_of_[thread] != kNoTrack) return track_of_[thread];
    if (thread >= track_of_.size()) track_of_.resize(thread + size_t{1}, kNoTrack);
    const auto& spans = survey_.images[raw(options_.image)].threads;
    uint64_t ends = thread < spans.size() ? spans[thread].last_tick : UINT64_MAX;
    uint32_t track = kNoTrack;
    // The first is the main thread's, which stays.
    for (uint32_t i = 1; i < tracks_.size() && track == kNoTrack; ++i)
      if (tracks_[i].free_from < event.tick) track = i;
    // What was called after its thread had ended is told as of one that has no number.
    const auto& known = survey_.tables.image(options_.image).threads;
    threads_ += thread == 0 || thread > known.size() || known[thread - 1].tid != 0;
    bool first = std::exchange(is_first_, false);
    if (first && !tracks_.empty()) {
      track = 0;  // It has built up the heap.
    } else if (track != kNoTrack) {
      append(track, {.kind = OpKind::kNextThread});
    } else if (tracks_.size() < kMaxTracks) {
      track = static_cast<uint32_t>(tracks_.size());
      add_track();
    } else {
      track = thread % kMaxTracks;  // Two threads on one track: in order, if not at once.
    }
    tracks_[track].free_from = std::max(tracks_[track].free_from, ends);
    track_of_[thread] = track;
    // Somebody has started it, most likely who was there just before.
    if (!first || latest_ != track) wait_for(track, latest_, tracks_[latest_].done);
    return track;
  }

  void wait_for(uint32_t track, uint32_t other, uint64_t count) {
    if (clocks_.knows(track, other, count)) return;
    append(track, {.kind = OpKind::kWait, .track = static_cast<uint16_t>(other), .size = count});
    clocks_.wait(track, tracks_[track].done, other, count);
    ++tail_.waits;
  }

  uint32_t new_slot(uint32_t track) {
    if (!pools_.empty(track)) return pools_.take(track);
    if (std::optional<uint32_t> donor = pools_.donor()) {
      std::vector<uint32_t> slots = pools_.move_half(*donor, track);
      append(*donor, {.kind = OpKind::kDropSlots, .size = slots.size()});
      wait_for(track, *donor, tracks_[*donor].done);
      for (uint32_t slot : slots) append(track, {.kind = OpKind::kTakeSlot, .slot = slot});
    } else {
      SlotPools::Range range = pools_.add_new(track);
      append(track, {.kind = OpKind::kNewSlots, .slot = range.first, .size = range.count});
    }
    return pools_.take(track);
  }

  void append_call(uint32_t track, Op op) {
    // Ticks may go back a little from epoch to epoch.
    uint64_t& last = tracks_[track].last_tick;
    if (options_.anonymize) op.tick -= op.tick % kCoarseTicks;
    op.tick = last = std::max(last, op.tick);
    ++tail_.calls[static_cast<int>(op.kind)];
    tail_.max_ideal_bytes = std::max(tail_.max_ideal_bytes, ideal_);
    append(track, op);
    latest_ = track;
  }
  void append(uint32_t track, const Op& op) {
    ++tracks_[track].done;
    writer_.append(track, op);
  }

  static constexpr uint64_t kCoarseTicks = 1 << 10;  // About a millisecond.

  const Survey& survey_;
  PlanOptions options_;
  std::unordered_map<ImageId, Ancestor> ancestors_;
  std::vector<Fork> forks_;  // That are yet to come, the last one first.
  WatchedHeap before_;       // The process itself, until it begins.
  Untangler order_{[this](const Event& event, bool anyway) { return place(event, anyway); }};
  WorkloadWriter writer_;
  FileTail tail_;
  PlannedBlocks blocks_;
  std::unordered_map<uint32_t, std::vector<std::optional<PlannedBlock>>>
      reallocating_;                // By thread.
  std::vector<uint32_t> track_of_;  // Too.
  std::vector<Track> tracks_;
  VectorClocks clocks_;
  SlotPools pools_;
  uint32_t threads_ = 0;
  bool is_first_ = true;  // The next thread.
  uint32_t latest_ = 0;   // The track that was called last.
  uint64_t ideal_ = 0;
  uint64_t start_tick_ = 0, last_tick_ = 0;
  bool begun_ = false, over_ = false;
};

}  // namespace

uint64_t coarse_size(uint64_t size) {
  if (size <= 128) return (size + 15) / 16 * 16;
  uint64_t step = std::bit_floor(size) / 8;
  return size > UINT64_MAX - step ? size : (size + step - 1) / step * step;
}

std::unique_ptr<Planner> planner(const Survey& survey, const PlanOptions& options, int fd,
                                 const std::string& path) {
  return std::make_unique<TrackPlanner>(survey, options, fd, path);
}

Result<FileTail> plan(const std::string& trace, const Survey& survey, const PlanOptions& options,
                      int fd, const std::string& path, Progress progress) {
  if (survey.tables.header.is_sampled()) {
    close(fd);
    return fail_usage(trace +
                      " holds only a sample of the calls, so it cannot be replayed; record "
                      "the program again without sampling");
  }
  std::unique_ptr<Planner> planner = replay::planner(survey, options, fd, path);
  Result<trace::Tables> tables =
      trace::stream(trace, planner.get(), {.progress = std::move(progress), .stacks = false});
  if (!tables) return std::unexpected(tables.error());
  return planner->finish();
}

}  // namespace malloscope::replay
