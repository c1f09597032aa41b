// SPDX-License-Identifier: Apache-2.0
// An allocation storm: each thread frees and refills random slots of its own
// array with blocks of random size, and touches them. Now and then it takes a
// slot of its neighbour, so that some frees are remote.
//
//     storm THREADS CALLS_EACH

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

static constexpr int kSlots = 4096;
struct Slots {
  std::atomic<char*> blocks[kSlots];
};

static uint64_t step(uint64_t& state) {
  state ^= state << 13, state ^= state >> 7, state ^= state << 17;
  return state;
}

// Mostly small, sometimes a few KiB, as programs are.
static size_t random_size(uint64_t r) {
  return r % 16 == 0 ? 64 + (r >> 8) % 4096 : 8 + (r >> 8) % 248;
}

__attribute__((noinline)) static char* fill(size_t size) {
  char* p = static_cast<char*>(malloc(size));
  for (size_t i = 0; i < size; i += 64) p[i] = static_cast<char>(i);
  return p;
}

static void storm(std::vector<Slots>& all, size_t self, long calls) {
  uint64_t state = 0x9e3779b97f4a7c15u + self * 0x1234567;
  for (long i = 0; i < calls; ++i) {
    const uint64_t r = step(state);
    const bool remote = r >> 56 < 8;
    Slots& slots = all[(self + remote) % all.size()];
    char* old = slots.blocks[(r >> 32) % kSlots].exchange(fill(random_size(r)));
    free(old);
  }
}

int main(int argc, char** argv) {
  const size_t count = argc > 1 ? strtoul(argv[1], nullptr, 10) : 2;
  const long calls = argc > 2 ? atol(argv[2]) : 1'000'000;
  std::vector<Slots> all(count);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < count; ++t) threads.emplace_back(storm, std::ref(all), t, calls);
  for (auto& t : threads) t.join();
  printf("%zu threads, %ld calls each\n", count, calls);
}
