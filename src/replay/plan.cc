// SPDX-License-Identifier: Apache-2.0
// Three things are decided here, all in one pass over the events in the order in which they
// happened, with nothing in memory but the live blocks and the tracks.
//
// *Which slot.* A track takes new blocks' slots from a stack of its own, so nobody has to be asked.
// If one thread allocates and another frees, the slots pile up at the second; so a track that has
// none left takes many at once from one that has plenty, and waits for it once.
//
// *Who waits for whom.* Somebody who frees or reallocates a block that another track made must come
// after that. Every track has a vector clock: how far it knows each of the others to have come,
// from what it waited for and from what those knew then. A wait is written only if the clock does
// not imply it. What is waited for has happened earlier in the trace, so no circle can arise,
// whatever the trace holds.
//
// *What an impossible order means.* If an address is given out while its block lives, the free that
// belongs in between comes late: the recorder's clock was read out of order. Blocks at one address
// are then freed in the order in which they were made. Nothing is dropped but what cannot be
// performed (a call that failed, a free of a block from before the recording), and that is counted.

#include "replay/plan.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <deque>
#include <memory>
#include <unordered_map>
#include <utility>

#include "base/address_table.h"
#include "replay/writer.h"
#include "trace/event_stream.h"

namespace malloscope::replay {
namespace {

using wire::Event;
using wire::Kind;

constexpr uint32_t kNoTrack = ~0u;
// Ticks of the recording to one of the workload, which is then about a microsecond: no player keeps
// time better, and what is finer costs half a byte a call.
constexpr uint64_t kTicksToOne = 8;
// So many free slots are worth waiting for.
constexpr size_t kPlenty = 1024;
constexpr uint64_t kMostNewSlots = 4096;
// How many numbers all tracks together may remember of what they knew at earlier times.
constexpr size_t kMostRemembered = size_t{1} << 22;

// A live block. Before the workload has begun it has no slot, and `done` tells the order of births.
struct PlannedBlock {
  uint64_t address = 0;
  uint64_t size = 0;
  uint64_t done = 0;  // Which operation of its track made it or changed it last.
  uint32_t slot = 0;
  uint16_t track = 0;  // Before the beginning not used.
  OpKind kind = OpKind::kMalloc;
  uint8_t alignment_log2 = 0;
};

OpKind kind_of(wire::Op op) {
  switch (op) {
    case wire::Op::kCalloc:
      return OpKind::kCalloc;
    case wire::Op::kMemalign:
    case wire::Op::kValloc:
    case wire::Op::kPvalloc:
      return OpKind::kMemalign;
    case wire::Op::kAlignedAlloc:
      return OpKind::kAlignedAlloc;
    case wire::Op::kPosixMemalign:
    case wire::Op::kNewAligned:
    case wire::Op::kNewArrayAligned:
      return OpKind::kPosixMemalign;
    default:
      return OpKind::kMalloc;
  }
}

class TrackPlanner : public Planner {
 public:
  TrackPlanner(const Survey& survey, const PlanOptions& options, int fd, const std::string& path)
      : survey_(survey), options_(options), own_(lineage_[options.image]), writer_(fd, path) {
    // What it inherits is known from its parent, and its parent's parent.
    for (ImageId id = options.image;;) {
      const trace::Image& image = survey.tables.image(id);
      if (image.origin != trace::Origin::kForked || image.parent == ImageId::kNone ||
          !lineage_.try_emplace(image.parent).second)
        break;
      id = image.parent;
    }
    tail_.ns_per_tick = survey.tables.header.ns_per_tick * static_cast<double>(kTicksToOne);
    tail_.lost_events = survey.tables.image(options.image).lost;
    if (options.anonymize) tail_.flags |= kAnonymized;
  }

  void image_started(const trace::Image& image) override {
    if (!lineage_.contains(image.id) || image.origin != trace::Origin::kForked) return;
    auto parent = lineage_.find(image.parent);
    if (parent == lineage_.end()) return;
    Blocks& blocks = lineage_[image.id].blocks;
    parent->second.blocks.for_each([&](const PlannedBlock& block) { blocks.insert(block); });
    // Its ticks begin later than the parent's, so these were born first.
    lineage_[image.id].births = parent->second.births;
  }

  void events(std::span<const Event> events) override {
    for (const Event& event : events) {
      if (event.image == options_.image) {
        if (event.tick > options_.to_tick) over_ = true;
        if (over_) continue;
        if (!begun_ && event.tick >= options_.from_tick) begin(event.tick);
        if (begun_) {
          perform(event);
          continue;
        }
      }
      if (auto known = lineage_.find(event.image); known != lineage_.end())
        watch(&known->second, event);
    }
  }

  bool is_live(ImageId image, uint64_t address) override {
    auto known = lineage_.find(image);
    return known != lineage_.end() && known->second.blocks.find(address) != nullptr;
  }

  Result<FileTail> finish() override {
    if (!begun_) begin(std::min(options_.to_tick, last_tick_));
    tail_.threads = threads_;
    tail_.ticks = since_start(last_tick_);
    tail_.end_ideal_bytes = ideal_;
    tail_.slots = slots_;
    std::vector<TrackPlace> tracks;
    for (const auto& track : tracks_) tracks.push_back({track->done, track->most_free, 0});
    return writer_.finish(tail_, std::move(tracks));
  }

 private:
  using Blocks = AddressTable<PlannedBlock>;
  // A process before it is measured, or one that it was forked from.
  struct Watched {
    Blocks blocks;
    uint64_t births = 0;
    std::unordered_map<uint32_t, std::vector<PlannedBlock>> reallocating;  // By thread.
  };
  using Clock = std::vector<uint64_t>;  // By track; those missing are 0.
  struct Track {
    uint64_t done = 0;  // Operations so far.
    uint64_t last_tick = 0;
    uint64_t free_from = 0;  // When its last thread has ended.
    std::vector<uint32_t> free_slots;
    uint64_t most_free = 0;
    uint64_t new_slots = 16;  // To be asked for next.
    Clock clock;
    std::deque<std::pair<uint64_t, Clock>> earlier;  // After which operation it knew what.
  };

  // Before the beginning: only what is live counts.
  void watch(Watched* watched, const Event& event) {
    last_tick_ = std::max(last_tick_, event.tick);
    Blocks& blocks = watched->blocks;
    auto put = [&](uint64_t address, uint64_t size, OpKind kind, uint8_t alignment) {
      PlannedBlock block = {address, size, watched->births++, 0, 0, kind, alignment};
      if (PlannedBlock* old = blocks.insert(block)) *old = block;
    };
    switch (event.kind) {
      case Kind::kAlloc:
        if (event.address) put(event.address, event.size, kind_of(event.op), alignment_log2(event));
        break;
      case Kind::kFree:
        if (PlannedBlock* block = blocks.find(event.address)) blocks.erase(block);
        break;
      case Kind::kReallocBegin: {
        PlannedBlock* block = blocks.find(event.address);
        watched->reallocating[raw(event.thread)].push_back(block ? *block : PlannedBlock());
        if (block) blocks.erase(block);
        break;
      }
      case Kind::kReallocEnd: {
        auto& open = watched->reallocating[raw(event.thread)];
        PlannedBlock old = open.empty() ? PlannedBlock() : open.back();
        if (!open.empty()) open.pop_back();
        if (event.address)
          put(event.address, event.size, OpKind::kMalloc, 0);
        else if (event.size != 0 && old.address != 0)
          put(old.address, old.size, old.kind, old.alignment_log2);
        break;
      }
      default:
        break;
    }
  }

  // The heap as it is now is built up by the first track, and everybody waits for that.
  void begin(uint64_t tick) {
    begun_ = true;
    start_tick_ = std::max(tick, options_.from_tick);
    last_tick_ = start_tick_;
    std::vector<PlannedBlock> live;
    own_.blocks.for_each([&](const PlannedBlock& block) { live.push_back(block); });
    own_.blocks.clear();
    if (live.empty()) return;
    std::ranges::sort(live, {}, &PlannedBlock::done);
    add_track();
    for (PlannedBlock& block : live) {
      make(0, block.kind, block.size, block.alignment_log2, 0, &block);
      own_.blocks.insert(block);
    }
    tail_.setup_calls = live.size();
    std::fill(std::begin(tail_.calls), std::end(tail_.calls), 0);
    tail_.max_ideal_bytes = ideal_;
    append(0, {.kind = OpKind::kBegin});
  }

  uint8_t alignment_log2(const Event& event) const {
    if (!is_aligned(kind_of(event.op))) return 0;
    if (event.op == wire::Op::kValloc || event.op == wire::Op::kPvalloc) return 12;
    if (event.other != 0)
      return static_cast<uint8_t>(std::min<uint64_t>(event.other, kMaxAlignmentLog2));
    // Recorded before alignments were: what the address allows, up to a page.
    return static_cast<uint8_t>(
        std::clamp(event.address ? __builtin_ctzll(event.address) : 4, 4, 12));
  }

  void perform(const Event& event) {
    last_tick_ = std::max(last_tick_, event.tick);
    if (event.kind == Kind::kMapping) {
      tail_.mapping_calls += (event.flags & wire::kInsideAllocator) == 0;
      return;
    }
    if (event.kind == Kind::kCallTime) return;
    uint32_t track = track_of(event);
    uint64_t tick = since_start(event.tick);
    switch (event.kind) {
      case Kind::kAlloc: {
        if (event.address == 0) {
          ++tail_.failed_calls;
          return;
        }
        PlannedBlock block = {.address = event.address};
        make(track, kind_of(event.op), event.size, alignment_log2(event), tick, &block);
        put(block);
        break;
      }
      case Kind::kFree: {
        if (event.address == 0) {
          append_call(track, {.kind = OpKind::kFreeNull, .tick = tick});
          return;
        }
        if (std::optional<PlannedBlock> block = take(event.address)) {
          wait_for(track, block->track, block->done);
          free_slot(track, block->slot);
          append_call(track, {.kind = OpKind::kFree, .slot = block->slot, .tick = tick});
          ideal_ -= block->size;
        } else {
          ++tail_.unknown_frees;
        }
        break;
      }
      case Kind::kReallocBegin:
        reallocating_[raw(event.thread)].push_back(event.address ? take(event.address)
                                                                 : std::nullopt);
        if (event.address && !reallocating_[raw(event.thread)].back()) ++tail_.unknown_frees;
        break;
      case Kind::kReallocEnd:
        reallocate(track, event, tick);
        break;
      default:
        break;
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
      if (old) put(*old);
      return;
    }
    if (old) wait_for(track, old->track, old->done);
    if (event.address == 0) {
      if (!old) return;  // Counted at its beginning, or realloc(NULL, 0) that returned nothing.
      free_slot(track, old->slot);
      append_call(track, {.kind = OpKind::kReallocToFree, .slot = old->slot, .tick = tick});
      ideal_ -= old->size;
      return;
    }
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
    block.done = tracks_[track]->done;
    put(block);
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
                        .slot = block->slot,
                        .size = block->size,
                        .tick = tick});
    block->done = tracks_[track]->done;
  }

  void put(const PlannedBlock& block) {
    PlannedBlock* earlier = own_.blocks.insert(block);
    if (!earlier) [[likely]]
      return;
    ++tail_.inversions;
    overtaken_[block.address].push_back(*earlier);
    *earlier = block;
  }

  // The oldest block at that address.
  std::optional<PlannedBlock> take(uint64_t address) {
    if (!overtaken_.empty()) [[unlikely]] {
      if (auto found = overtaken_.find(address); found != overtaken_.end()) {
        PlannedBlock block = found->second.front();
        found->second.pop_front();
        if (found->second.empty()) overtaken_.erase(found);
        return block;
      }
    }
    PlannedBlock* found = own_.blocks.find(address);
    if (!found) return std::nullopt;
    PlannedBlock block = *found;
    own_.blocks.erase(found);
    return block;
  }

  void add_track() {
    tracks_.push_back(std::make_unique<Track>());
    remembered_ = std::clamp<size_t>(kMostRemembered / (tracks_.size() * tracks_.size()), 1, 16);
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
      if (tracks_[i]->free_from < event.tick) track = i;
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
    tracks_[track]->free_from = std::max(tracks_[track]->free_from, ends);
    track_of_[thread] = track;
    // Somebody has started it, most likely who was there just before.
    if (!first || latest_ != track) wait_for(track, latest_, tracks_[latest_]->done);
    return track;
  }

  void wait_for(uint32_t track, uint32_t other, uint64_t count) {
    if (track == other || count == 0) return;
    Track& self = *tracks_[track];
    if (self.clock.size() <= other) self.clock.resize(other + size_t{1});
    if (self.clock[other] >= count) return;
    append(track, {.kind = OpKind::kWait, .track = static_cast<uint16_t>(other), .size = count});
    ++tail_.waits;
    self.clock[other] = count;
    // What the other knew when it had done that.
    const auto& earlier = tracks_[other]->earlier;
    auto after = std::ranges::upper_bound(earlier, count, {}, &std::pair<uint64_t, Clock>::first);
    if (after != earlier.begin()) {
      const Clock& knew = std::prev(after)->second;
      if (self.clock.size() < knew.size()) self.clock.resize(knew.size());
      for (size_t i = 0; i < knew.size(); ++i) self.clock[i] = std::max(self.clock[i], knew[i]);
    }
    self.earlier.emplace_back(self.done, self.clock);
    while (self.earlier.size() > remembered_) self.earlier.pop_front();
  }

  uint32_t new_slot(uint32_t track) {
    Track& self = *tracks_[track];
    if (self.free_slots.empty()) find_slots(track);
    uint32_t slot = self.free_slots.back();
    self.free_slots.pop_back();
    return slot;
  }

  void find_slots(uint32_t track) {
    Track& self = *tracks_[track];
    uint32_t richest = track;
    for (uint32_t i = 0; i < tracks_.size(); ++i)
      if (tracks_[i]->free_slots.size() > tracks_[richest]->free_slots.size()) richest = i;
    Track& other = *tracks_[richest];
    if (other.free_slots.size() < kPlenty) {
      append(track, {.kind = OpKind::kNewSlots,
                     .slot = static_cast<uint32_t>(slots_),
                     .size = self.new_slots});
      for (uint64_t i = self.new_slots; i-- > 0;)
        self.free_slots.push_back(static_cast<uint32_t>(slots_ + i));
      slots_ += self.new_slots;
      self.new_slots = std::min(self.new_slots * 2, kMostNewSlots);
    } else {
      size_t count = other.free_slots.size() / 2;
      append(richest, {.kind = OpKind::kDropSlots, .size = count});
      wait_for(track, richest, other.done);
      for (size_t i = 0; i < count; ++i) {
        append(track, {.kind = OpKind::kTakeSlot, .slot = other.free_slots.back()});
        self.free_slots.push_back(other.free_slots.back());
        other.free_slots.pop_back();
      }
    }
    self.most_free = std::max<uint64_t>(self.most_free, self.free_slots.size());
  }

  void free_slot(uint32_t track, uint32_t slot) {
    Track& self = *tracks_[track];
    self.free_slots.push_back(slot);
    self.most_free = std::max<uint64_t>(self.most_free, self.free_slots.size());
  }

  void append_call(uint32_t track, Op op) {
    // Ticks may go back a little from epoch to epoch.
    uint64_t& last = tracks_[track]->last_tick;
    if (options_.anonymize) op.tick -= op.tick % kCoarseTicks;
    op.tick = last = std::max(last, op.tick);
    ++tail_.calls[static_cast<int>(op.kind)];
    tail_.max_ideal_bytes = std::max(tail_.max_ideal_bytes, ideal_);
    append(track, op);
    latest_ = track;
  }
  void append(uint32_t track, const Op& op) {
    ++tracks_[track]->done;
    writer_.append(track, op);
  }

  static constexpr uint64_t kCoarseTicks = 1 << 10;  // About a millisecond.

  const Survey& survey_;
  PlanOptions options_;
  std::unordered_map<ImageId, Watched> lineage_;  // The image, and what it was forked from.
  Watched& own_;
  WorkloadWriter writer_;
  FileTail tail_;
  std::unordered_map<uint64_t, std::deque<PlannedBlock>> overtaken_;  // By address.
  std::unordered_map<uint32_t, std::vector<std::optional<PlannedBlock>>>
      reallocating_;                // By thread.
  std::vector<uint32_t> track_of_;  // Too.
  std::vector<std::unique_ptr<Track>> tracks_;
  size_t remembered_ = 16;
  uint32_t threads_ = 0;
  bool is_first_ = true;  // The next thread.
  uint32_t latest_ = 0;   // The track that was called last.
  uint64_t slots_ = 0;
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

ImageId Survey::busiest(std::optional<int> pid) const {
  ImageId best = ImageId::kNone;
  for (uint32_t i = 1; i < images.size(); ++i)
    if ((!pid || tables.image(ImageId{i}).pid == *pid) && images[i].calls > 0 &&
        (best == ImageId::kNone || images[i].calls > images[raw(best)].calls))
      best = ImageId{i};
  return best;
}

void Survey::add(std::span<const Event> events) {
  for (const Event& event : events) {
    if (event.kind == Kind::kMapping || event.kind == Kind::kCallTime) continue;
    if (raw(event.image) >= images.size()) images.resize(raw(event.image) + size_t{1});
    ImageSpan& image = images[raw(event.image)];
    image.calls += event.kind != Kind::kReallocBegin;
    if (raw(event.thread) >= image.threads.size())
      image.threads.resize(raw(event.thread) + size_t{1});
    ThreadSpan& thread = image.threads[raw(event.thread)];
    thread.first_tick = std::min(thread.first_tick, event.tick);
    thread.last_tick = std::max(thread.last_tick, event.tick);
  }
}

Result<Survey> survey(const std::string& trace, Progress progress) {
  struct Surveyor : trace::Listener {
    Survey survey;
    void events(std::span<const Event> events) override { survey.add(events); }
  } surveyor;
  Result<trace::Tables> tables =
      trace::stream(trace, &surveyor, {.progress = std::move(progress), .stacks = false});
  if (!tables) return std::unexpected(tables.error());
  surveyor.survey.tables = std::move(*tables);
  return std::move(surveyor.survey);
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
