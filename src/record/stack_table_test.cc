// SPDX-License-Identifier: Apache-2.0
// Threads define and find stacks as fast as they can; whatever is found must be
// what was published, however often the table has grown meanwhile.

#include "record/stack_table.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <thread>
#include <vector>

namespace malloscope::record {
namespace {

struct Zeroed {
  Arena arena;
  StackTable table;
};

// As in the recorder: in memory that begins as zeros.
Zeroed* make() { return static_cast<Zeroed*>(std::calloc(1, sizeof(Zeroed))); }

TEST(StackTable, FindsWhatWasPublished) {
  Zeroed* z = make();
  std::mt19937_64 random(1);
  std::vector<std::pair<uint64_t, StackId>> all;
  for (int i = 0; i < 100'000; ++i) {
    uint64_t hash = random() | 1;
    EXPECT_EQ(z->table.find(hash, StackId{static_cast<uint32_t>(i)}), StackId::kNone);
    StackId id = z->table.new_id();
    z->table.publish(hash, id, &z->arena);
    all.push_back({hash, id});
  }
  for (auto [hash, id] : all) {
    ASSERT_EQ(z->table.find(hash, StackId::kNone), id);
    for (uint32_t back = 0; back < 10 && back <= raw(id); ++back)
      ASSERT_EQ(z->table.find(hash, StackId{raw(id) - back}), id);
  }
  EXPECT_EQ(raw(z->table.new_id()), 100'001u);
  std::free(z);
}

TEST(StackTable, NeverGivesTheIdOfAnotherPath) {
  Zeroed* z = make();
  constexpr int kThreads = 4, kPaths = 20'000;
  // ids[path] is what some thread gave it; several may have.
  std::vector<std::vector<uint32_t>> given(kThreads, std::vector<uint32_t>(kPaths));
  auto hash_of = [](uint64_t path) { return (path + 1) * 0x9e3779b97f4a7c15; };
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      for (int i = 0; i < 100'000; ++i) {
        uint32_t path = static_cast<uint32_t>(random() % kPaths);
        StackId after{static_cast<uint32_t>(random() % 30'000)};
        if (z->table.find(hash_of(path), after) != StackId::kNone) continue;
        StackId id = z->table.new_id();
        given[static_cast<size_t>(t)][path] = raw(id);
        z->table.publish(hash_of(path), id, &z->arena);
      }
    });
  for (auto& thread : threads) thread.join();
  for (uint32_t path = 0; path < kPaths; ++path) {
    uint32_t found = raw(z->table.find(hash_of(path), StackId::kNone));
    bool ours = found == 0;
    for (const auto& ids : given) ours |= ids[path] == found;
    ASSERT_TRUE(ours) << path;
  }
  std::free(z);
}

}  // namespace
}  // namespace malloscope::record
