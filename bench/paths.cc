// SPDX-License-Identifier: Apache-2.0
// As many distinct stacks as wanted: every walk goes down a random path of a binary
// tree of calls and allocates at its end, so that 2^(DEPTH + 2) stacks come up equally often. That
// is the worst case for a reader: no stack is in its cache. Blocks are freed in random order.
//
//     paths WALKS DEPTH          a walk is 8 events: 4 blocks made, 4 freed

#include <cstdint>
#include <cstdio>
#include <cstdlib>

static constexpr int kSlots = 1 << 16;
static void* slots[kSlots];

static uint64_t step() {
  static uint64_t state = 88172645463325252u;
  state ^= state << 13, state ^= state >> 7, state ^= state << 17;
  return state;
}

// Work behind a call keeps it from becoming a jump.
#define NO_TAIL_CALL __asm__ volatile("")

[[gnu::noinline]] static void refill(uint64_t r, size_t size) {
  void*& slot = slots[r >> 32 & (kSlots - 1)];
  free(slot);
  slot = malloc(size);
  NO_TAIL_CALL;
}

// Three calls of one size for each path, as objects have, and one of any size, as text has.
[[gnu::noinline]] static void leaf(uint64_t path, uint64_t r) {
  size_t object = 16 + (path * 0x9e3779b97f4a7c15u >> 57) * 8;
  refill(r, object);
  refill(r * 3, object);
  refill(r * 5, object);
  refill(r * 7, 1 + (r & 255));
  NO_TAIL_CALL;
}

static void left(int depth, uint64_t path, uint64_t rest, uint64_t r);
static void right(int depth, uint64_t path, uint64_t rest, uint64_t r);

[[gnu::noinline]] static void descend(int depth, uint64_t path, uint64_t rest, uint64_t r) {
  if (depth == 0)
    leaf(path, r);
  else if (rest & 1)
    left(depth - 1, path, rest >> 1, r);
  else
    right(depth - 1, path, rest >> 1, r);
  NO_TAIL_CALL;
}
[[gnu::noinline]] static void left(int depth, uint64_t path, uint64_t rest, uint64_t r) {
  descend(depth, path, rest, r);
  NO_TAIL_CALL;
}
[[gnu::noinline]] static void right(int depth, uint64_t path, uint64_t rest, uint64_t r) {
  descend(depth, path, rest, r);
  __asm__ volatile("# another function than left, also for a compiler that merges equal ones");
}

int main(int argc, char** argv) {
  const long walks = argc > 1 ? atol(argv[1]) : 100'000;
  const int depth = argc > 2 ? atoi(argv[2]) : 10;
  for (long i = 0; i < walks; ++i) {
    const uint64_t path = step() & ((uint64_t{1} << depth) - 1);
    descend(depth, path, path, step());
  }
  printf("%ld walks, %d deep\n", walks, depth);
}
