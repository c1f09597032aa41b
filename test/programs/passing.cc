// SPDX-License-Identifier: Apache-2.0
// build: -O2
// Threads allocate, reallocate and free, and pass blocks on to each other through boxes: most are
// freed by another thread than made them. passing [THREADS [ROUNDS [BLOCKS]]], which each keeps
#include <cstdlib>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

static constexpr int kBoxes = 64;
static std::mutex locks[kBoxes];
static void* boxes[kBoxes];

static void* put(unsigned box, void* block) {
  std::lock_guard<std::mutex> guard(locks[box]);
  void* there = boxes[box];
  boxes[box] = block;
  return there;
}

static void* make(std::mt19937& random) {
  switch (random() % 8) {
    case 0:
      return calloc(1, random() % 500);
    case 1:
      return aligned_alloc(64, 64 * (1 + random() % 8));
    default:
      return malloc(random() % 400);
  }
}

static void work(unsigned seed, long rounds, size_t keeps) {
  std::mt19937 random(seed);
  std::vector<void*> own;
  auto take = [&] {
    size_t i = random() % own.size();
    void* block = own[i];
    own[i] = own.back();
    own.pop_back();
    return block;
  };
  for (long i = 0; i < rounds; ++i) {
    unsigned what = random() % 100;
    if (what < 45 || own.size() <= keeps)
      own.push_back(make(random));
    else if (what < 60)
      free(take());
    else if (what < 65)
      own.push_back(realloc(take(), 1 + random() % 3000));
    else if (void* other = put(random() % kBoxes, take()))
      what < 70 ? own.push_back(realloc(other, 1 + random() % 1000)) : free(other);
  }
  for (void* block : own) free(block);
}

int main(int argc, char** argv) {
  int count = argc > 1 ? atoi(argv[1]) : 4;
  long rounds = argc > 2 ? atol(argv[2]) : 1000;
  long keeps = argc > 3 ? atol(argv[3]) : 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back(work, i + 1, rounds, keeps);
  for (std::thread& thread : threads) thread.join();
  for (void* block : boxes) free(block);
}
