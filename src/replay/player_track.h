// SPDX-License-Identifier: Apache-2.0
// What one thread of the player does: it takes operations a few hundred at a time, performs them,
// and after each says how far it is; who needs a block of another's looks there, spins for a while
// and then sleeps. Of most calls only one in 64 is timed: two reads of the clock cost as much as a
// fast malloc.
//
// What the player itself costs is measured by rehearsals. What the calls leave of the CPU time will
// not do: a timed call is slower than others, and one that waits for a lock takes no CPU. So now
// and then, before operations are performed, the same code goes over them without calling, touching
// or waiting, and without a trace but for the time it took. The misses of the cache are its own
// then.
//
// It is all in a header so that what a call goes through is compiled as one.

#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <utility>

#include "base/attributes.h"
#include "base/clock.h"
#include "replay/player_allocator.h"
#include "replay/player_base.h"
#include "replay/player_blocks.h"
#include "replay/player_clocks.h"
#include "replay/player_feed.h"

namespace malloscope::replay {

// When it began: with kGo, or with kBegin.
inline uint64_t start_cycles, start_ns;
inline std::atomic<uint64_t> next_trim;

class Player {
  enum class Mode { kPlay, kRehearse };

 public:
  // `alone`: no other track has operations.
  Player(uint32_t track, uint32_t first_chunk, bool alone)
      : number_(track),
        mine_(board->track(track)),
        feed_(track, first_chunk),
        ops_(feed_.ops()),
        alone_(alone),
        random_((track + 1) * 0x9e3779b97f4a7c15),
        rehearsed_(static_cast<TrackCounts*>(own_memory(sizeof(TrackCounts)))) {
    draw_sample();
  }

  uint32_t number() const { return number_; }

  enum class Stop { kEnd, kNextThread };
  // Until the end, or until another thread is to go on.
  Stop play() {
    cpu_from_ = thread_cpu_ns();
    Stop stop = Stop::kEnd;
    while (stop == Stop::kEnd && refill()) {
      while (at_ < count_) {
        const Op& op = ops_[at_++];
        fetch_ahead(at_);
        perform<Mode::kPlay>(op);
        tell_done();
        if (op.kind == OpKind::kNextThread) {
          stop = Stop::kNextThread;
          break;
        }
      }
    }
    if (stop == Stop::kEnd) tell_ideal();
    counts().cpu_ns += thread_cpu_ns() - cpu_from_;
    counts().ops = done_ - done_before_;
    return stop;
  }

 private:
  template <Mode mode = Mode::kPlay>
  TrackCounts& counts() {
    return mode == Mode::kPlay ? mine_.counts : *rehearsed_;
  }

  // Whether there is more to do.
  bool refill() {
    if (at_ < count_) return true;
    uint64_t cpu = thread_cpu_ns();
    if (!feed_.has_more()) return false;
    count_ = feed_.refill(done_);
    at_ = 0;
    interruptions_ = interruptions();
    counts().decoding.cpu_ns += thread_cpu_ns() - cpu;
    counts().decoding.ops += count_;
    if (until_rehearsal_-- == 0) {
      until_rehearsal_ = draw(kRehearsals);
      if (!board->verify) rehearse();
    }
    return true;
  }

  // Other threads may be writing to the slots that are read here; nothing is done with them.
  void rehearse() {
#ifndef __SANITIZE_THREAD__
    int64_t ideal = ideal_, told_ideal = told_ideal_, max_ideal = max_ideal_;
    uint64_t cpu = thread_cpu_ns();
    for (size_t i = 0; i < count_; ++i) {
      fetch_ahead(i);
      perform<Mode::kRehearse>(ops_[i]);
      mine_.done.store(done_, std::memory_order_release);
    }
    cpu = thread_cpu_ns() - cpu;
    cpu_from_ += cpu;  // It does not count.
    counts().rehearsing.cpu_ns += cpu > timing_ns ? cpu - timing_ns : 0;
    counts().rehearsing.ops += count_;
    ideal_ = ideal, told_ideal_ = told_ideal, max_ideal_ = max_ideal;
#endif
  }

  // A block that was made long ago has its slot far away. (An operation without one has an old
  // number there, which does no harm.)
  MSCOPE_FAST void fetch_ahead(size_t at) const {
    if (at + kFetchAhead < count_) __builtin_prefetch(&slots[ops_[at + kFetchAhead].slot], 1);
  }

  void tell_done() {
    mine_.done.store(++done_, std::memory_order_release);
    if (done_ >= mine_.wanted.load(std::memory_order_relaxed)) [[unlikely]] {
      mine_.wanted.store(UINT64_MAX, std::memory_order_relaxed);
      mine_.wakes.fetch_add(1, std::memory_order_relaxed);
      futex_wake(&mine_.wakes);
    }
  }

  template <Mode mode>
  MSCOPE_FAST void perform(const Op& op) {
    if (is_call(op.kind)) {
      if (board->speed > 0) wait_until<mode>(op.tick);
      if (board->trim_ticks != 0) maybe_trim<mode>(op.tick);
      call<mode>(op);
    } else if (op.kind == OpKind::kWait) {
      wait_for<mode>(op.track, op.size);
    } else if (op.kind == OpKind::kBegin && mode == Mode::kPlay) {
      begin();
    }
  }

  // The heap is built up, and whoever else there is waits for us: from here on it counts.
  void begin() {
    tell_ideal();
    board->max_ideal.store(board->ideal.load());
    TrackCounts fresh;
    fresh.decoding = counts().decoding;
    fresh.rehearsing = counts().rehearsing;
    counts() = fresh;
    done_before_ = done_;
    cpu_from_ = thread_cpu_ns();
    start_ns = clock_ns();
    start_cycles = cycles_ordered();
  }

  // --- Waiting.

  template <Mode mode>
  void wait_for(uint32_t track, uint64_t count) {
    TrackBoard& other = board->track(track);
#ifdef __SANITIZE_THREAD__
    // To see that a race is noticed.
    static const bool never = getenv("MALLOSCOPE_PLAYER_WITHOUT_WAITS") != nullptr;
    if (never) return;
#endif
    if (other.done.load(std::memory_order_acquire) >= count || mode == Mode::kRehearse) [[likely]]
      return;
    uint64_t cpu = thread_cpu_ns();
    ++counts().slow_waits;
    for (int spin = 0; other.done.load(std::memory_order_acquire) < count; ++spin) {
      if (spin < kSpins) {
        pause();
        continue;
      }
      uint32_t wakes = other.wakes.load(std::memory_order_relaxed);
      uint64_t wanted = other.wanted.load(std::memory_order_relaxed);
      while (count < wanted && !other.wanted.compare_exchange_weak(wanted, count)) {
      }
      if (other.done.load(std::memory_order_acquire) >= count) break;
      // It looks at `wanted` without a fence, so it may have missed it: not for long.
      futex_wait(&other.wakes, wakes, 1'000'000);
    }
    counts().wait_cpu_ns += thread_cpu_ns() - cpu;
  }

  template <Mode mode>
  void wait_until(uint64_t tick) {
    uint64_t due =
        start_cycles + static_cast<uint64_t>(static_cast<double>(tick) * cycles_per_tick);
    uint64_t now = cycles();
    if (now >= due || mode == Mode::kRehearse) return;
    uint64_t cpu = thread_cpu_ns();
    for (; now < due; now = cycles()) {
      auto left_ns = static_cast<uint64_t>(static_cast<double>(due - now) / board->cycles_per_ns);
      if (left_ns < kShortSleepNs) {
        pause();
        continue;
      }
      left_ns -= kShortSleepNs / 2;
      timespec left = {static_cast<time_t>(left_ns / 1'000'000'000),
                       static_cast<long>(left_ns % 1'000'000'000)};
      nanosleep(&left, nullptr);
    }
    counts().wait_cpu_ns += thread_cpu_ns() - cpu;
  }

  template <Mode mode>
  void maybe_trim(uint64_t tick) {
    uint64_t due = next_trim.load(std::memory_order_relaxed);
    if (tick < due || !allocator.trim || mode == Mode::kRehearse ||
        !next_trim.compare_exchange_strong(due, tick + board->trim_ticks))
      return;
    allocator.trim(0);
    board->trims.fetch_add(1);
  }

  // --- Calls.

  // One to twice the mean less one, so that no rhythm of the program is met.
  uint32_t draw(uint32_t mean) {
    random_ ^= random_ << 13;
    random_ ^= random_ >> 7;
    random_ ^= random_ << 17;
    return static_cast<uint32_t>(1 + random_ % (2 * mean - 1));
  }
  bool draw_sample() {
    if (--until_sample_ > 0) [[likely]]
      return false;
    until_sample_ = draw(board->sampling);
    return true;
  }

  template <Mode mode>
  MSCOPE_FAST void call(const Op& op) {
    ++counts<mode>().calls[static_cast<int>(op.kind)];
    Slot* slot = op.kind == OpKind::kFreeNull ? &nothing_ : &slots[op.slot];
    uint64_t bytes = makes_block(op.kind) ? op.size : slot->size > op.size ? slot->size : op.size;
    if (bytes >= kLargeSize && mode == Mode::kPlay) [[unlikely]]
      return large_call(op, slot);
    if (draw_sample()) [[unlikely]]
      return sampled_call<mode>(op, slot);
    Slot before = *slot;
    if (board->verify) check(op, before);
    uint8_t* made = run<mode>(op, before.block);
    settle<mode>(op, slot, before, made);
    touch<mode>(op, before, made);
  }

  // The same by the CPU's counter, unless the thread was interrupted meanwhile.
  template <Mode mode>
  [[gnu::noinline]] void sampled_call(const Op& op, Slot* slot) {
    Slot before = *slot;
    if (board->verify) check(op, before);
    uint64_t t0 = cycles_before_loads();
    uint8_t* made = run<mode>(op, before.block);
    uint64_t t1 = cycles_before_loads();
    settle<mode>(op, slot, before, made);
    uint64_t t2 = cycles_before_loads();
    touch<mode>(op, before, made);
    uint64_t t3 = cycles_before_loads();
    if (t3 - t0 > kSuspiciousCycles && interruptions() != interruptions_) {
      ++counts<mode>().interrupted;
      return;
    }
    auto net = [](uint64_t cycles) { return static_cast<int64_t>(cycles - timing_cycles); };
    add_times(&counts<mode>(), op, before, board->sampling, net(t1 - t0), net(t3 - t2));
  }

  // The same by the kernel's clock of this thread: dear, as such a call is, and never interrupted.
  [[gnu::noinline]] void large_call(const Op& op, Slot* slot) {
    Slot before = *slot;
    if (board->verify) check(op, before);
    uint64_t t0 = thread_cpu_ns();
    uint8_t* made = run<Mode::kPlay>(op, before.block);
    uint64_t t1 = thread_cpu_ns();
    settle<Mode::kPlay>(op, slot, before, made);
    touch<Mode::kPlay>(op, before, made);
    uint64_t t2 = thread_cpu_ns();
    auto net = [](uint64_t ns) {
      return static_cast<int64_t>((static_cast<double>(ns) - static_cast<double>(timing_ns)) *
                                  board->cycles_per_ns);
    };
    add_times(&counts(), op, before, 1, net(t1 - t0), net(t2 - t1));
    // What the clock costs is no part of the player's work.
    counts().wait_cpu_ns += 3 * timing_ns;
  }

  // A time may come out below 0, as the reads do not always cost the same; only the mean is right.
  static void add_times(TrackCounts* counts, const Op& op, const Slot& before, uint32_t weight,
                        int64_t call_cycles, int64_t touch_cycles) {
    auto add = [weight](Timed* timed, int64_t cycles) {
      timed->weight += weight;
      timed->cycles += weight * cycles;
    };
    int group = static_cast<int>(group_of(op.kind));
    add(&counts->groups[group], call_cycles);
    auto at_least_0 = static_cast<uint64_t>(call_cycles > 0 ? call_cycles : 0);
    counts->histogram[group][cycle_bucket(at_least_0)] += weight;
    uint64_t bytes = group_of(op.kind) == CallGroup::kFree ? before.size : op.size;
    add(&counts->sizes[group][bytes == 0 ? 0 : 64 - __builtin_clzll(bytes)], call_cycles);
    add(&counts->touches, touch_cycles);
  }

  // The call itself.
  template <Mode mode>
  MSCOPE_FAST static uint8_t* run(const Op& op, uint8_t* block) {
    if (mode == Mode::kRehearse) return reinterpret_cast<uint8_t*>(slots);
    void* made = nullptr;
    switch (op.kind) {
      case OpKind::kMalloc:
        made = allocator.malloc(op.size);
        break;
      case OpKind::kCalloc:
        made = allocator.calloc(1, op.size);
        break;
      case OpKind::kMemalign:
      case OpKind::kAlignedAlloc:
      case OpKind::kPosixMemalign:
        made = allocator.aligned_block(op);
        break;
      case OpKind::kRealloc:
        made = allocator.realloc(block, op.size);
        break;
      case OpKind::kReallocToFree:
        // Some free the block and return nothing, some return another.
        if (void* another = allocator.realloc(block, 0)) allocator.free(another);
        break;
      default:
        allocator.free(block);
    }
    return static_cast<uint8_t*>(made);
  }

  // The slot, and the sum of what is live.
  template <Mode mode>
  MSCOPE_FAST void settle(const Op& op, Slot* slot, const Slot& before, uint8_t* made) {
    if (mode == Mode::kRehearse) slot = &rehearsed_slot_;
    int64_t change = 0;
    if (makes_block(op.kind) || op.kind == OpKind::kRealloc) {
      // Nothing for 0 bytes is no failure; a block that was reallocated to them is gone.
      if (!made && op.size != 0) [[unlikely]] {
        ++counts<mode>().failed;
        if (op.kind == OpKind::kRealloc) return;  // The old block lives on.
        *slot = {};
        return;
      }
      change = static_cast<int64_t>(op.size - before.size);
      *slot = {made, op.size};
    } else if (op.kind != OpKind::kFreeNull) {
      change = -static_cast<int64_t>(before.size);
      *slot = {};
    }
    ideal_ += change;
    if (ideal_ > max_ideal_) max_ideal_ = ideal_;
    if (ideal_ - told_ideal_ > kIdealStep || told_ideal_ - ideal_ > kIdealStep) tell_ideal<mode>();
  }

  template <Mode mode = Mode::kPlay>
  void tell_ideal() {
    int64_t change = mode == Mode::kPlay ? ideal_ - told_ideal_ : 0;
    told_ideal_ = ideal_;
    int64_t all = board->ideal.fetch_add(change, std::memory_order_relaxed) + change;
    // Of several threads nobody knows the sum in between.
    int64_t highest = std::exchange(max_ideal_, ideal_);
    if (alone_ && mode == Mode::kPlay) all = highest;
    int64_t most = board->max_ideal.load(std::memory_order_relaxed);
    while (all > most &&
           !board->max_ideal.compare_exchange_weak(most, all, std::memory_order_relaxed)) {
    }
  }

  // --- Touching and checking.

  // What the program may have written to: of a realloc, only what was added.
  template <Mode mode>
  MSCOPE_FAST void touch(const Op& op, const Slot& before, uint8_t* made) {
    if (!made || mode == Mode::kRehearse) return;
    if (board->verify) [[unlikely]]
      return fill(op, before, made);
    uint64_t from = op.kind == OpKind::kRealloc ? before.size : 0;
    if (board->touch == Touch::kNone || op.size <= from) return;
    if (board->touch == Touch::kAll) {
      memset(made + from, 0x11, op.size - from);
      return;
    }
    uint8_t* end = made + op.size;
    uint8_t* at = made + from;
    *static_cast<volatile uint8_t*>(at) = 0x11;
    at = reinterpret_cast<uint8_t*>((reinterpret_cast<uintptr_t>(at) | (kPage - 1)) + 1);
    for (; at < end; at += kPage) *static_cast<volatile uint8_t*>(at) = 0x11;
  }

  [[gnu::noinline]] void check(const Op& op, const Slot& before) {
    if (!before.block || op.kind == OpKind::kFreeNull) return;
    check_block(before, marks[op.slot], number_, done_);
  }

  // Every birth has its own, so that a block which was given out twice shows.
  uint64_t new_mark() {
    uint64_t mark = (uint64_t{number_} << 48 ^ ++births_) * 0x9e3779b97f4a7c15;
    return mark ^ mark >> 29;
  }

  [[gnu::noinline]] void fill(const Op& op, const Slot& before, uint8_t* made) {
    fill_block(op, before, made, new_mark(), number_, done_);
  }

  static constexpr size_t kFetchAhead = 8;
  static constexpr uint64_t kPage = 4096;
  static constexpr int kSpins = 2000;
  static constexpr int64_t kIdealStep = 16 << 10;
  // A small call that takes longer than this was interrupted, or it is worth knowing that not.
  static constexpr uint64_t kSuspiciousCycles = 100'000;
  // One of so many buffers of operations is rehearsed.
  static constexpr uint32_t kRehearsals = 32;
  static constexpr uint64_t kShortSleepNs = 100'000;

  uint32_t number_;
  TrackBoard& mine_;
  Feed feed_;
  const Op* ops_;
  size_t at_ = 0, count_ = 0;
  uint64_t done_ = 0;
  uint64_t done_before_ = 0;  // When it began to count.
  bool alone_;
  int64_t ideal_ = 0, told_ideal_ = 0, max_ideal_ = 0;
  uint32_t until_sample_ = 1;
  uint64_t random_;
  uint64_t births_ = 0;         // With --verify.
  uint64_t interruptions_ = 0;  // When the operations were decoded.
  uint32_t until_rehearsal_ = 0;
  TrackCounts* rehearsed_;  // What a rehearsal counts and makes; nobody looks at it.
  Slot rehearsed_slot_;
  uint64_t cpu_from_ = 0;
  Slot nothing_;
};

}  // namespace malloscope::replay
