// SPDX-License-Identifier: Apache-2.0
// The player: performs a workload on whatever allocator it was started with. It is a program of its
// own so that the heap which is measured holds the workload's blocks and nothing else: its own
// memory comes from mmap, is touched before the beginning, and it needs no C++ library.
//
// Each track is a thread. It decodes a few hundred operations ahead, performs them, and after each
// says how far it is; who needs a block of another's looks there, spins for a while and then
// sleeps. Of most calls only one in 64 is timed: two reads of the clock cost as much as a fast
// malloc.
//
// What the player itself costs is measured by rehearsals. What the calls leave of the CPU time will
// not do: a timed call is slower than others, and one that waits for a lock takes no CPU. So now
// and then, before operations are performed, the same code goes over them without calling, touching
// or waiting, and without a trace but for the time it took. The misses of the cache are its own
// then.

#define ZSTD_STATIC_LINKING_ONLY
#include <dlfcn.h>
#include <linux/futex.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <zstd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "base/clock.h"
#include "replay/board.h"
#include "replay/codec.h"

namespace malloscope::replay {
namespace {

constexpr size_t kOpsAhead = 512;
constexpr size_t kFetchAhead = 8;
constexpr size_t kThreadStack = 256 << 10;
constexpr uint64_t kPage = 4096;
constexpr int kSpins = 2000;
constexpr int64_t kIdealStep = 16 << 10;
// A small call that takes longer than this was interrupted, or it is worth knowing that not.
constexpr uint64_t kSuspiciousCycles = 100'000;
// One of so many buffers of operations is rehearsed.
constexpr uint32_t kRehearsals = 32;

enum class Mode { kPlay, kRehearse };

struct Slot {
  uint8_t* block = nullptr;
  uint64_t size = 0;
};

// The allocator, as functions of one library.
struct Allocator {
  void* (*malloc)(size_t) = nullptr;
  void* (*calloc)(size_t, size_t) = nullptr;
  void* (*realloc)(void*, size_t) = nullptr;
  void (*free)(void*) = nullptr;
  void* (*memalign)(size_t, size_t) = nullptr;
  void* (*aligned_alloc)(size_t, size_t) = nullptr;
  int (*posix_memalign)(void**, size_t, size_t) = nullptr;
  int (*trim)(size_t) = nullptr;
};

Allocator allocator;
Board* board;
FileTail tail;
int workload;
const ChunkPlace* places;
const TrackPlace* track_places;
uint32_t* next_chunk;  // Of the same track; by chunk. 0: none.
Slot* slots;
uint64_t* marks;         // With --verify: what each slot's block is filled with.
double cycles_per_tick;  // Of the workload's, at the speed that was asked for.
uint64_t start_cycles, start_ns;
uint64_t timing_cycles, timing_ns;  // What it costs to read the clocks.
std::atomic<uint64_t> next_trim;
std::atomic<uint32_t> running;

void futex_wait(std::atomic<uint32_t>* word, uint32_t seen, uint64_t timeout_ns) {
  timespec timeout = {static_cast<time_t>(timeout_ns / 1'000'000'000),
                      static_cast<long>(timeout_ns % 1'000'000'000)};
  syscall(SYS_futex, word, FUTEX_WAIT, seen, &timeout, nullptr, 0);
}
void futex_wake(std::atomic<uint32_t>* word) {
  syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
}
std::atomic<uint32_t>* state_word() {
  return reinterpret_cast<std::atomic<uint32_t>*>(&board->state);
}

[[noreturn]] void give_up(Fault fault, uint64_t a = 0, uint64_t b = 0, uint32_t track = 0,
                          uint64_t op = 0) {
  if (board->fault_taken.exchange(1) == 0) {
    board->fault_a = a;
    board->fault_b = b;
    board->fault_track = track;
    board->fault_op = op;
    board->fault.store(fault, std::memory_order_release);
    _exit(1);
  }
  for (;;) pause();  // Whoever was first ends us.
}

// Memory of our own, touched.
void* own_memory(size_t bytes) {
  if (bytes == 0) bytes = 1;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) give_up(Fault::kNoMemory);
  board->own_bytes += bytes;
  return memory;
}

std::span<uint32_t> own_numbers(size_t count) {
  return {static_cast<uint32_t*>(own_memory(count * sizeof(uint32_t))), count};
}

void read_workload(uint64_t offset, void* bytes, size_t size) {
  auto* at = static_cast<uint8_t*>(bytes);
  while (size > 0) {
    ssize_t done = pread(workload, at, size, static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) give_up(Fault::kCannotRead, done < 0 ? static_cast<uint64_t>(errno) : 0);
    at += done;
    offset += static_cast<uint64_t>(done);
    size -= static_cast<size_t>(done);
  }
}

uint64_t thread_cpu_ns() { return clock_ns(CLOCK_THREAD_CPUTIME_ID); }

// How often the thread had to make room for others.
uint64_t interruptions() {
  rusage usage = {};
  getrusage(RUSAGE_THREAD, &usage);
  return static_cast<uint64_t>(usage.ru_nivcsw);
}

// --- With --verify, a block is full of its mark.

uint8_t byte_of(uint64_t mark, uint64_t at) { return static_cast<uint8_t>(mark >> at % 8 * 8); }

void check_block(const Slot& slot, uint64_t mark, uint32_t track, uint64_t op) {
  for (uint64_t i = 0; i < slot.size; ++i)
    if (slot.block[i] != byte_of(mark, i)) give_up(Fault::kOverwritten, slot.size, i, track, op);
}

// What is left when all have ended.
void check_all() {
  for (uint64_t i = 0; i < tail.slots; ++i)
    if (slots[i].block) check_block(slots[i], marks[i], 0, kAtTheEnd);
}

class Player {
 public:
  Player(uint32_t track, uint32_t first_chunk)
      : number_(track),
        mine_(board->track(track)),
        decoder_(own_numbers(track_places[track].most_free_slots),
                 own_numbers(track_places[track].births), {tail.slots, tail.tracks}),
        chunk_(first_chunk),
        stored_(static_cast<uint8_t*>(own_memory(tail.largest_stored))),
        raw_(static_cast<uint8_t*>(own_memory(tail.largest_raw))),
        ops_(static_cast<Op*>(own_memory(kOpsAhead * sizeof(Op)))),
        alone_(tail.tracks == 1),
        random_((track + 1) * 0x9e3779b97f4a7c15),
        rehearsed_(static_cast<TrackCounts*>(own_memory(sizeof(TrackCounts)))) {
    size_t workspace = ZSTD_estimateDCtxSize();
    zstd_ = ZSTD_initStaticDCtx(own_memory(workspace), workspace);
    if (!zstd_) give_up(Fault::kNoMemory);
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
    if (decoder_.left() == 0) {
      if (chunk_ == 0) return false;
      load(places[chunk_ - 1]);
      chunk_ = next_chunk[chunk_ - 1];
    }
    count_ = decoder_.read({ops_, kOpsAhead});
    at_ = 0;
    if (decoder_.bad()) give_up(Fault::kBadWorkload, 0, 0, number_, done_);
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

  void load(const ChunkPlace& place) {
    size_t stored = 0;
    for (uint32_t bytes : place.stored_bytes) stored += bytes;
    read_workload(place.offset, stored_, stored);
    std::span<const uint8_t> columns[kColumns];
    size_t from = 0, to = 0;
    for (int i = 0; i < kColumns; ++i) {
      size_t size = ZSTD_decompressDCtx(zstd_, raw_ + to, place.raw_bytes[i], stored_ + from,
                                        place.stored_bytes[i]);
      if (ZSTD_isError(size) || size != place.raw_bytes[i])
        give_up(Fault::kBadWorkload, 0, 0, number_, done_);
      columns[i] = {raw_ + to, size};
      from += place.stored_bytes[i];
      to += size;
    }
    decoder_.open(columns, place.ops);
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
    add_times(&counts<mode>(), op, board->sampling, net(t1 - t0), net(t3 - t2));
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
    add_times(&counts(), op, 1, net(t1 - t0), net(t2 - t1));
    // What the clock costs is no part of the player's work.
    counts().wait_cpu_ns += 3 * timing_ns;
  }

  // A time may come out below 0, as the reads do not always cost the same; only the mean is right.
  static void add_times(TrackCounts* counts, const Op& op, uint32_t weight, int64_t call_cycles,
                        int64_t touch_cycles) {
    auto add = [weight](Timed* timed, int64_t cycles) {
      timed->weight += weight;
      timed->cycles += weight * cycles;
    };
    int group = static_cast<int>(group_of(op.kind));
    add(&counts->groups[group], call_cycles);
    auto at_least_0 = static_cast<uint64_t>(call_cycles > 0 ? call_cycles : 0);
    counts->histogram[group][cycle_bucket(at_least_0)] += weight;
    if (group_of(op.kind) != CallGroup::kFree)
      add(&counts->sizes[op.size == 0 ? 0 : 64 - __builtin_clzll(op.size)], call_cycles);
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
        made = run_aligned(op);
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

  [[gnu::noinline]] static void* run_aligned(const Op& op) {
    size_t alignment = size_t{1} << op.alignment_log2;
    if (op.kind == OpKind::kMemalign && allocator.memalign)
      return allocator.memalign(alignment, op.size);
    // Some refuse sizes that are no multiples of the alignment, as they may.
    if (op.kind == OpKind::kAlignedAlloc && allocator.aligned_alloc && op.size % alignment == 0)
      return allocator.aligned_alloc(alignment, op.size);
    if (allocator.posix_memalign) {
      void* made = nullptr;
      if (alignment < sizeof(void*)) alignment = sizeof(void*);
      return allocator.posix_memalign(&made, alignment, op.size) == 0 ? made : nullptr;
    }
    return allocator.memalign ? allocator.memalign(alignment, op.size)
                              : allocator.aligned_alloc(alignment, op.size);
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
    uint64_t alignment = is_aligned(op.kind) ? uint64_t{1} << op.alignment_log2
                         : op.size >= 16     ? 16
                                             : 8;
    if (reinterpret_cast<uintptr_t>(made) % alignment != 0)
      give_up(Fault::kMisaligned, op.size, alignment, number_, done_);
    if (op.kind == OpKind::kCalloc)
      for (uint64_t i = 0; i < op.size; ++i)
        if (made[i] != 0) give_up(Fault::kNotZero, op.size, i, number_, done_);
    uint64_t& mark = marks[op.slot];
    if (op.kind == OpKind::kRealloc && before.block)
      for (uint64_t i = 0; i < before.size && i < op.size; ++i)
        if (made[i] != byte_of(mark, i)) give_up(Fault::kNotCopied, op.size, i, number_, done_);
    mark = new_mark();
    for (uint64_t i = 0; i < op.size; ++i) made[i] = byte_of(mark, i);
  }

  static constexpr uint64_t kShortSleepNs = 100'000;

  uint32_t number_;
  TrackBoard& mine_;
  TrackDecoder decoder_;
  uint32_t chunk_;  // The next one, from 1 on; 0: none.
  uint8_t* stored_;
  uint8_t* raw_;
  Op* ops_;
  ZSTD_DCtx* zstd_;
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

void track_ended() {
  if (running.fetch_sub(1, std::memory_order_acq_rel) == 1) futex_wake(&running);
}

void* thread_main(void* argument);

void start_thread(Player* player) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kThreadStack);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_t thread;
  int problem = pthread_create(&thread, &attributes, thread_main, player);
  if (problem != 0) give_up(Fault::kNoThread, static_cast<uint64_t>(problem), 0, player->number());
  pthread_attr_destroy(&attributes);
}

void* thread_main(void* argument) {
  auto* player = static_cast<Player*>(argument);
  while (board->state.load(std::memory_order_acquire) < State::kGo)
    futex_wait(state_word(), static_cast<uint32_t>(State::kReady), 1'000'000'000);
  if (player->play() == Player::Stop::kNextThread)
    start_thread(player);
  else
    track_ended();
  return nullptr;
}

// All functions of the library that malloc is from. What it lacks would be libc's, whose blocks it
// does not know.
void find_allocator() {
  Dl_info home = {};
  void* found = dlsym(RTLD_DEFAULT, "malloc");
  if (!found || !dladdr(found, &home)) give_up(Fault::kNotAllocator);
  size_t length = strlen(home.dli_fname);
  if (length >= sizeof board->library) length = sizeof board->library - 1;
  memcpy(board->library, home.dli_fname, length);
  auto find = [&home](const char* name, auto* function) {
    Dl_info info = {};
    void* symbol = dlsym(RTLD_DEFAULT, name);
    if (symbol && dladdr(symbol, &info) && info.dli_fbase == home.dli_fbase)
      *reinterpret_cast<void**>(function) = symbol;
  };
  find("malloc", &allocator.malloc);
  find("calloc", &allocator.calloc);
  find("realloc", &allocator.realloc);
  find("free", &allocator.free);
  find("memalign", &allocator.memalign);
  find("aligned_alloc", &allocator.aligned_alloc);
  find("posix_memalign", &allocator.posix_memalign);
  find("malloc_trim", &allocator.trim);
  board->can_trim = allocator.trim != nullptr;
  Dl_info libc = {};
  bool is_libc =
      dladdr(reinterpret_cast<void*>(&getppid), &libc) && libc.dli_fbase == home.dli_fbase;
  if (!allocator.calloc || !allocator.realloc || !allocator.free || (board->preloaded && is_libc))
    give_up(Fault::kNotAllocator);
  bool aligned = false;
  for (int kind = 0; kind < kCallKinds; ++kind)
    aligned |= is_aligned(static_cast<OpKind>(kind)) && tail.calls[kind] != 0;
  if (aligned && !allocator.memalign && !allocator.aligned_alloc && !allocator.posix_memalign)
    give_up(Fault::kNoAligned);
}

// What it costs to read a clock, on average; without the times when something came in between.
template <typename Clock>
uint64_t cost_of(Clock&& clock) {
  uint64_t least = UINT64_MAX, sum = 0, count = 0;
  for (int i = 0; i < 4000; ++i) {
    uint64_t from = clock(), took = clock() - from;
    if (took < least) least = took;
    if (took > 3 * least) continue;
    sum += took;
    ++count;
  }
  return (sum + count / 2) / count;
}

void calibrate() {
  uint64_t ns = clock_ns(), from = cycles_ordered();
  while (clock_ns() - ns < 20'000'000) {
  }
  board->cycles_per_ns =
      static_cast<double>(cycles_ordered() - from) / static_cast<double>(clock_ns() - ns);
  timing_cycles = cost_of(cycles_before_loads);
  board->timing_cycles = timing_cycles;
  timing_ns = cost_of(thread_cpu_ns);
  if (board->speed > 0) cycles_per_tick = tail.ns_per_tick * board->cycles_per_ns / board->speed;
}

int play(int workload_fd, int board_fd) {
  workload = workload_fd;
  off_t board_bytes = lseek(board_fd, 0, SEEK_END);
  off_t bytes = lseek(workload_fd, 0, SEEK_END);
  if (board_bytes < static_cast<off_t>(sizeof(Board)) || bytes < static_cast<off_t>(sizeof tail))
    return 2;
  board = static_cast<Board*>(mmap(nullptr, static_cast<size_t>(board_bytes),
                                   PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, board_fd, 0));
  if (board == MAP_FAILED) return 2;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != board->launcher) return 2;  // It has ended before that.
  read_workload(static_cast<uint64_t>(bytes) - sizeof tail, &tail, sizeof tail);
  if (tail.tracks != board->tracks) give_up(Fault::kBadWorkload);
  find_allocator();

  auto* chunks = static_cast<ChunkPlace*>(own_memory(tail.chunks * sizeof(ChunkPlace)));
  auto* tracks = static_cast<TrackPlace*>(own_memory(tail.tracks * sizeof(TrackPlace)));
  read_workload(tail.places_offset, chunks, tail.chunks * sizeof(ChunkPlace));
  read_workload(tail.places_offset + tail.chunks * sizeof(ChunkPlace), tracks,
                tail.tracks * sizeof(TrackPlace));
  places = chunks;
  track_places = tracks;
  next_chunk = static_cast<uint32_t*>(own_memory(tail.chunks * sizeof(uint32_t)));
  auto* first = static_cast<uint32_t*>(own_memory(tail.tracks * sizeof(uint32_t)));
  for (uint32_t i = static_cast<uint32_t>(tail.chunks); i-- > 0;)
    next_chunk[i] = std::exchange(first[chunks[i].track], i + 1);
  slots = static_cast<Slot*>(own_memory(tail.slots * sizeof(Slot)));
  if (board->verify) marks = static_cast<uint64_t*>(own_memory(tail.slots * sizeof(uint64_t)));
  auto* players = static_cast<Player*>(own_memory(tail.tracks * sizeof(Player)));
  for (uint32_t i = 0; i < tail.tracks; ++i) new (&players[i]) Player(i, first[i]);
  calibrate();
  next_trim = board->trim_ticks;

  running = tail.tracks;
  for (uint32_t i = 1; i < tail.tracks; ++i) start_thread(&players[i]);
  board->state.store(State::kReady, std::memory_order_release);
  futex_wake(state_word());
  while (board->state.load(std::memory_order_acquire) < State::kGo)
    futex_wait(state_word(), static_cast<uint32_t>(State::kReady), 1'000'000'000);
  start_ns = clock_ns();
  start_cycles = cycles_ordered();
  if (tail.tracks > 0) {
    players[0].play();
    track_ended();
  }
  while (uint32_t left = running.load(std::memory_order_acquire))
    futex_wait(&running, left, 1'000'000'000);
  board->wall_ns = clock_ns() - start_ns;
  if (board->verify) check_all();
  board->state.store(State::kDone, std::memory_order_release);
  while (board->state.load(std::memory_order_acquire) < State::kMayExit)
    futex_wait(state_word(), static_cast<uint32_t>(State::kDone), 1'000'000'000);
  // What the allocator does at the end of a program is no part of the workload.
  _exit(0);
}

}  // namespace
}  // namespace malloscope::replay

int main(int argc, char** argv) {
  if (argc != 3) {
    static const char kUse[] = "malloscope-player is started by `malloscope replay`\n";
    (void)!write(2, kUse, sizeof kUse - 1);
    return 2;
  }
  return malloscope::replay::play(atoi(argv[1]), atoi(argv[2]));
}
