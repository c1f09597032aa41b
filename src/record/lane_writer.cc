// SPDX-License-Identifier: Apache-2.0
// Taking things from the shared memory is one compare-and-swap on the word that
// names the owner, so a process killed here leaves nothing half taken.
//
// No free segment means that the collector is behind. As long as it is alive,
// which its heartbeat tells, we wait for it: then nothing is lost however slow it
// is. If neither the heartbeat nor the number of segments given back has moved
// for 100 ms it is dead or stopped, and from then on the process drops events and
// counts them, without waiting, until the heartbeat moves again.

#include "record/lane_writer.h"

#include <cstring>

#include "base/clock.h"
#include "base/syscall.h"
#include "record/process.h"

namespace malloscope::record {

using wire::LaneState;

bool LaneWriter::open(int tid, uint32_t nesting) {
  uint32_t mine = 1 + inherited.image_slot;
  for (uint32_t slot = 0; slot < wire::kLanes; ++slot) {
    wire::LaneSlot& lane = inherited.shared.lane(slot);
    uint32_t nobody = 0;
    if (lane.owner.load(std::memory_order_relaxed) != 0 ||
        !lane.owner.compare_exchange_strong(nobody, mine))
      continue;
    lane.tid = tid;
    lane.nesting = nesting;
    lane.owner_stamp = inherited.image_stamp;
    lane.state.store(static_cast<uint32_t>(LaneState::kLive), std::memory_order_release);
    lane_ = 1 + slot;
    words_ = nullptr;
    segment_ = nullptr;
    used_ = limit_ = segment_number_ = 0;
    last_tick_ = 0;
    return true;
  }
  return false;
}

void LaneWriter::close() {
  if (!is_open()) return;
  inherited.shared.lane(lane_ - 1).state.store(static_cast<uint32_t>(LaneState::kEnded),
                                               std::memory_order_release);
  lane_ = 0;
  used_ = limit_ = 0;
}

void LaneWriter::count_drop() {
  if (is_open())
    inherited.shared.lane(lane_ - 1).dropped.fetch_add(1, std::memory_order_relaxed);
  else
    image().dropped.fetch_add(1, std::memory_order_relaxed);
}

// A free segment that is now ours, or 0.
static uint32_t take_segment(uint32_t lane) {
  wire::Control& control = inherited.shared.control();
  uint32_t count = inherited.segment_count;
  uint32_t start = control.next_segment_hint.load(std::memory_order_relaxed);
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t number = 1 + (start + i) % count;
    std::atomic<uint32_t>& owner = inherited.shared.segment_owner(number);
    uint32_t nobody = 0;
    if (owner.load(std::memory_order_relaxed) == 0 && owner.compare_exchange_strong(nobody, lane)) {
      control.next_segment_hint.store(number % count, std::memory_order_relaxed);
      control.segments_taken.fetch_add(1, std::memory_order_relaxed);
      return number;
    }
  }
  return wire::kNoSegment;
}

static uint32_t wait_for_segment(uint32_t lane) {
  wire::Control& control = inherited.shared.control();
  std::atomic<uint64_t>& stalled_at = process().stalled_at;
  uint64_t heartbeat = control.heartbeat.load(std::memory_order_relaxed);
  if (inherited.drop_when_full) return wire::kNoSegment;

  bool no_clock = inherited.clock_forbidden.load(std::memory_order_relaxed) != 0;
  uint64_t returned = control.segments_returned.load(std::memory_order_relaxed);
  uint64_t passes = control.passes.load(std::memory_order_relaxed);
  uint64_t patience = inherited.cycles_per_ms * 100;
  uint64_t since = no_clock ? 0 : cycles();
  for (uint64_t round = 0;; ++round) {
    if (uint32_t number = take_segment(lane)) return number;
    if (round < 64 || no_clock || sys::is_sandboxed()) {
      for (int i = 0; i < 64; ++i) pause();
    } else {
      timespec millisecond = {0, 1'000'000};
      sys::futex_wait(&control.heartbeat, static_cast<uint32_t>(heartbeat), &millisecond);
    }
    uint64_t beat = control.heartbeat.load(std::memory_order_relaxed);
    uint64_t back = control.segments_returned.load(std::memory_order_relaxed);
    // The collector has read everything, several times, and nothing came back: each segment is
    // held by an idle thread. Waiting would last until one of them ends.
    if (back != returned) passes = control.passes.load(std::memory_order_relaxed);
    if (control.passes.load(std::memory_order_relaxed) - passes > 3) {
      process().starved_at.store(back + 1, std::memory_order_relaxed);
      return wire::kNoSegment;
    }
    bool moved = beat != heartbeat || back != returned;
    heartbeat = beat;
    returned = back;
    if (moved) {
      since = no_clock ? 0 : cycles();
      if (no_clock) round = 0;
    } else if (no_clock ? round > 1'000'000 : cycles() - since > patience) {
      stalled_at.store(heartbeat + 1, std::memory_order_relaxed);
      return wire::kNoSegment;
    }
  }
}

bool LaneWriter::next_segment(uint32_t words) {
  if (!is_open() || words > wire::kSegmentWords) return false;
  uint64_t heartbeat = inherited.shared.control().heartbeat.load(std::memory_order_relaxed);
  if (process().stalled_at.load(std::memory_order_relaxed) == heartbeat + 1) return false;
  // None has come back since; the next event need not wait to learn that.
  uint64_t returned = inherited.shared.control().segments_returned.load(std::memory_order_relaxed);
  if (process().starved_at.load(std::memory_order_relaxed) == returned + 1) return false;
  uint32_t number = take_segment(lane_);
  if (number == wire::kNoSegment) number = wait_for_segment(lane_);
  if (number == wire::kNoSegment) return false;

  wire::Segment& fresh = inherited.shared.segment(number, inherited.segment_count);
  fresh.committed.store(0, std::memory_order_relaxed);
  fresh.next.store(wire::kNoSegment, std::memory_order_relaxed);
  // From here on the collector can see it, through the segment before it or the lane.
  if (segment_)
    segment_->next.store(number, std::memory_order_release);
  else
    inherited.shared.lane(lane_ - 1).first.store(number, std::memory_order_release);
  segment_ = &fresh;
  segment_number_ = number;
  words_ = fresh.words;
  used_ = 0;
  limit_ = wire::kSegmentWords;
  // Each segment says its time, so that short records have something to count from.
  words_[0] = wire::extended_word(wire::kTime, 2);
  words_[1] = last_tick_;
  commit(2, last_tick_);
  return true;
}

static constexpr uint32_t kWideWords = 5;

static void write_wide(uint64_t* at, wire::Kind kind, wire::Op op, uint64_t tick, uint64_t address,
                       uint64_t size, StackId stack) {
  at[0] = wire::extended_word(wire::kWide, kWideWords,
                              static_cast<uint64_t>(kind) << 8 | static_cast<uint64_t>(op));
  at[1] = tick;
  at[2] = address;
  at[3] = size;
  at[4] = raw(stack);
}

bool LaneWriter::wide(wire::Kind kind, wire::Op op, uint64_t tick, uint64_t address, uint64_t size,
                      StackId stack) {
  if (tick < last_tick_) tick = last_tick_;  // A clock that went back is not believed.
  if (!reserve(kWideWords)) return false;
  write_wide(words_ + used_, kind, op, tick, address, size, stack);
  commit(kWideWords, tick);
  return true;
}

// One commit: a signal handler may leave by longjmp after any instruction, and an alignment that
// stood there alone would be taken for the next event's.
bool LaneWriter::aligned_block(uint8_t alignment_log2, wire::Op op, uint64_t tick, uint64_t address,
                               uint64_t size, StackId stack) {
  if (tick < last_tick_) tick = last_tick_;
  if (!reserve(1 + kWideWords)) return false;
  uint64_t* at = words_ + used_;
  at[0] = wire::extended_word(wire::kAlignment, 1, alignment_log2);
  uint64_t ticks = tick - last_tick_;
  if (fits_short(address, ticks, size, stack)) {
    at[1] = wire::short_word(wire::kTagAlloc, address, ticks);
    at[2] = wire::block_word(stack, op, size);
    commit(1 + 2, tick);
  } else {
    write_wide(at + 1, wire::Kind::kAlloc, op, tick, address, size, stack);
    commit(1 + kWideWords, tick);
  }
  return true;
}

bool LaneWriter::mapping(wire::Op op, uint8_t flags, uint64_t tick, uint64_t address, uint64_t size,
                         StackId stack, uint64_t other) {
  if (tick < last_tick_) tick = last_tick_;
  if (!reserve(6)) return false;
  uint64_t* at = words_ + used_;
  at[0] = wire::extended_word(wire::kMappingEvent, 6,
                              static_cast<uint64_t>(flags) << 8 | static_cast<uint64_t>(op));
  at[1] = tick;
  at[2] = address;
  at[3] = size;
  at[4] = raw(stack);
  at[5] = other;
  commit(6, tick);
  return true;
}

void LaneWriter::stack(StackId id, StackId owner, uint32_t kept, uint32_t generation,
                       uint64_t flags, std::span<const uintptr_t> fresh) {
  uint32_t words = stack_words(fresh);
  uint64_t* at = words_ + used_;
  at[0] = wire::extended_word(wire::kStack, words, flags);
  at[1] = static_cast<uint64_t>(raw(id)) << 32 | raw(owner);
  at[2] = static_cast<uint64_t>(generation) << 32 | kept;
  for (size_t i = 0; i < fresh.size(); ++i) at[3 + i] = fresh[i];
  commit(words, last_tick_);
}

bool LaneWriter::module(uint64_t start, uint64_t end, uint64_t bias, uint32_t generation,
                        std::span<const uint8_t> build_id, std::span<const char> path) {
  uint32_t id_words = static_cast<uint32_t>((build_id.size() + 7) / 8);
  uint32_t path_words = static_cast<uint32_t>((path.size() + 7) / 8);
  uint32_t words = 5 + id_words + path_words;
  if (!reserve(words)) return false;
  uint64_t* at = words_ + used_;
  at[0] = wire::extended_word(wire::kModule, words);
  at[1] = start;
  at[2] = end;
  at[3] = bias;
  at[4] = static_cast<uint64_t>(generation) << 32 | build_id.size() << 16 | path.size();
  memcpy(at + 5, build_id.data(), build_id.size());
  memcpy(at + 5 + id_words, path.data(), path.size());
  commit(words, last_tick_);
  return true;
}

bool LaneWriter::thread_name(const char name[16]) {
  if (!reserve(3)) return false;
  uint64_t* at = words_ + used_;
  at[0] = wire::extended_word(wire::kThreadName, 3);
  memcpy(at + 1, name, 16);
  commit(3, last_tick_);
  return true;
}

bool LaneWriter::mark(wire::MarkKind kind, uint64_t tick, std::span<const char> name) {
  if (tick < last_tick_) tick = last_tick_;
  uint32_t words = static_cast<uint32_t>(2 + (name.size() + 7) / 8);
  if (!reserve(words)) return false;
  uint64_t* at = words_ + used_;
  at[0] =
      wire::extended_word(wire::kMarkEvent, words, name.size() << 8 | static_cast<uint64_t>(kind));
  at[words - 1] = 0;
  at[1] = tick;
  memcpy(at + 2, name.data(), name.size());
  commit(words, tick);
  return true;
}

bool LaneWriter::free_stack(StackId stack) {
  if (!reserve(1)) return false;
  words_[used_] = wire::extended_word(wire::kFreeStack, 1, raw(stack));
  commit(1, last_tick_);
  return true;
}

bool LaneWriter::passed_over() {
  if (!reserve(1)) return false;
  words_[used_] = wire::extended_word(wire::kPassedOver, 1);
  commit(1, last_tick_);
  return true;
}

bool LaneWriter::cpu_sample(uint64_t tick, uint64_t nanoseconds, StackId stack, uint64_t flags) {
  if (tick < last_tick_) tick = last_tick_;
  if (!reserve(3)) return false;
  uint64_t* at = words_ + used_;
  at[0] = wire::extended_word(wire::kCpuSample, 3, flags << 32 | raw(stack));
  at[1] = tick;
  at[2] = nanoseconds;
  commit(3, tick);
  return true;
}

bool LaneWriter::call_time(uint64_t cycles) {
  if (!reserve(1)) return false;
  if (cycles > wire::kMaxPayload) cycles = wire::kMaxPayload;
  words_[used_] = wire::extended_word(wire::kCallCycles, 1, cycles);
  commit(1, last_tick_);
  return true;
}

bool LaneWriter::not_followed(const char* program, uint64_t why) {
  constexpr size_t kMostBytes = 1024;
  size_t bytes = strlen(program);
  if (bytes > kMostBytes) bytes = kMostBytes;
  uint32_t words = static_cast<uint32_t>(1 + (bytes + 7) / 8);
  if (!reserve(words)) return false;
  uint64_t* at = words_ + used_;
  at[0] = wire::extended_word(wire::kNotFollowed, words, why);
  at[words - 1] = 0;
  memcpy(at + 1, program, bytes);
  commit(words, last_tick_);
  return true;
}

}  // namespace malloscope::record
