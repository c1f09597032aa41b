// SPDX-License-Identifier: Apache-2.0
// Threads hand blocks to each other as fast as they can: every block is freed or
// reallocated by whoever takes it, and its address is somebody else's at once.
// In the trace no address may ever be live twice (F18's order, architecture 2).
//
// run: few_slots n=200000 long=2500000
// run: many_slots n=100000 long=1000000
// run: mailbox n=400000 long=2500000
// expect: totals order_violations=0 unmatched_frees=0
// expect few_slots: hand_over allocations=4*n live_blocks=0 live_bytes=0
// expect many_slots: hand_over allocations=4*n live_blocks=0 live_bytes=0
// expect mailbox: produce allocations=n live_blocks=0 live_bytes=0

#include <sched.h>

#include <atomic>
#include <thread>
#include <vector>

#include "known.h"

static std::atomic<void *> slots[4096];
static unsigned slot_mask;

struct Random {
  uint64_t state;
  uint64_t next() {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state;
  }
};

OPAQUE static void hand_over(int seed, long n) {
  Random random{0x9e3779b97f4a7c15u * static_cast<uint64_t>(seed + 1)};
  for (long i = 0; i < n; ++i) {
    const uint64_t r = random.next();
    void *mine = malloc(1 + r % 400);
    *static_cast<volatile char *>(mine) = 1;
    void *taken = slots[(r >> 32) & slot_mask].exchange(mine, std::memory_order_acq_rel);
    if (taken && r >> 60 < 4) taken = realloc(taken, 1 + (r >> 20) % 800);
    free(taken);
  }
}

// With nothing but loads and stores, so that the CPU is free to read its clock before the load
// that brings the block.
OPAQUE static void produce(long n) {
  for (long i = 0; i < n; ++i) {
    void *block = malloc(24);
    while (slots[i % 8].load(std::memory_order_acquire))
      if (i % 64 == 0) sched_yield();
    slots[i % 8].store(block, std::memory_order_release);
  }
}
OPAQUE static void consume(long n) {
  for (long i = 0; i < n; ++i) {
    void *block;
    while (!(block = slots[i % 8].load(std::memory_order_acquire)))
      if (i % 64 == 0) sched_yield();
    slots[i % 8].store(nullptr, std::memory_order_release);
    free(block);
  }
}

int main(int, char **argv) {
  const long n = number(argv, 200000);
  if (is(argv, "mailbox")) {
    std::thread consumer(consume, n);
    produce(n);
    consumer.join();
    tell("handed over", n);
    return 0;
  }
  slot_mask = is(argv, "few_slots") ? 3 : 4095;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) threads.emplace_back(hand_over, t, n);
  for (auto &t : threads) t.join();
  for (auto &slot : slots) free(slot.load());
  tell("handed over", 4 * n);
}
