// SPDX-License-Identifier: Apache-2.0
// Threads that read, insert and grow at once must each find for a key its rule or
// none, never another's.

#include "unwind/rule_cache.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

namespace malloscope::unwind {
namespace {

constinit Arena arena;

uintptr_t key_of(uint64_t number) { return 0x400000 + number * 5; }
Rule rule_for(uintptr_t key, uint32_t generation) {
  return Rule::make(Rule::kSp, static_cast<int64_t>((key ^ generation * 77) % 1000) * 8, -16);
}

TEST(RuleCache, FindsWhatWasInserted) {
  auto cache = std::make_unique<RuleCache>();
  EXPECT_EQ(cache->find(key_of(1), 1).kind(), Rule::kNone);
  for (uint64_t i = 0; i < 100'000; ++i) {
    uintptr_t key = key_of(i) | (i % 3 ? 0 : kInterrupted);
    cache->insert(key, rule_for(key, 1), 1, arena);
  }
  uint64_t found = 0;
  for (uint64_t i = 0; i < 100'000; ++i) {
    uintptr_t key = key_of(i) | (i % 3 ? 0 : kInterrupted);
    Rule rule = cache->find(key, 1);
    if (rule.kind() == Rule::kNone) continue;
    ++found;
    ASSERT_EQ(rule, rule_for(key, 1));
    ASSERT_EQ(cache->find(key ^ kInterrupted, 1).kind(), Rule::kNone);
  }
  EXPECT_EQ(found, 100'000u);
}

TEST(RuleCache, KnowsNothingOfAnotherGeneration) {
  auto cache = std::make_unique<RuleCache>();
  cache->insert(key_of(1), rule_for(key_of(1), 1), 1, arena);
  EXPECT_EQ(cache->find(key_of(1), 2).kind(), Rule::kNone);
  cache->insert(key_of(1), rule_for(key_of(1), 2), 2, arena);
  EXPECT_EQ(cache->find(key_of(1), 2), rule_for(key_of(1), 2));
  EXPECT_EQ(cache->find(key_of(1), 1).kind(), Rule::kNone);
  // The generation's low bits come round.
  uint32_t later = 2 + (1 << 16);
  for (uint32_t generation = 3; generation <= later; ++generation) cache->prepare(generation);
  EXPECT_EQ(cache->find(key_of(1), later).kind(), Rule::kNone);
}

TEST(RuleCache, IsRightForAllThreadsAtAllTimes) {
  auto cache = std::make_unique<RuleCache>();
  std::atomic<uint32_t> generation = 1;
  std::atomic<uint64_t> wrong = 0, hits = 0;
  std::vector<std::thread> threads;
  for (unsigned id = 0; id < 4; ++id)
    threads.emplace_back([&, id] {
      uint64_t random = id + 1;
      for (int i = 0; i < 200'000; ++i) {
        random = random * 6364136223846793005 + 1442695040888963407;
        uintptr_t key = key_of((random >> 33) % 20'000);
        uint32_t now = generation;
        Rule rule = cache->find(key, now);
        if (rule.kind() == Rule::kNone) {
          cache->insert(key, rule_for(key, now), now, arena);
        } else {
          ++hits;
          wrong += rule != rule_for(key, now);
        }
        if (id == 0 && i % 20'000 == 0) {
          cache->prepare(now + 1);
          ++generation;
        }
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0u);
  EXPECT_GT(hits, 100'000u);
}

TEST(RuleCache, GoesOnWithoutMemory) { EXPECT_EQ(RuleCache().find(1, 1).kind(), Rule::kNone); }

}  // namespace
}  // namespace malloscope::unwind
