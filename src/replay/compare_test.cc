// SPDX-License-Identifier: Apache-2.0
#include "replay/compare.h"

#include <gtest/gtest.h>

namespace malloscope::replay {
namespace {

Contender contender(std::string name, std::vector<uint64_t> times, std::vector<uint64_t> memory) {
  Contender made;
  made.setup.allocator = std::move(name);
  for (size_t i = 0; i < times.size(); ++i) {
    Trial trial;
    trial.allocator_ns = times[i];
    trial.heap_max_rss_bytes = memory[i];
    made.trials.push_back(trial);
  }
  return made;
}

TEST(Compare, ChanceIsNoDifference) {
  Comparison found = compare({contender("a", {100, 110, 120}, {50, 50, 50}),
                              contender("b", {95, 105, 115}, {50, 50, 50})});
  EXPECT_TRUE(found.advice.starts_with("Stay with a")) << found.advice;
  EXPECT_EQ(found.by_time.front(), 1u);
}

TEST(Compare, SaysWhatIsWon) {
  Comparison found = compare({contender("a", {100, 101, 102}, {80, 80, 80}),
                              contender("b", {50, 51, 52}, {79, 80, 81}),
                              contender("c", {200, 201, 202}, {40, 40, 40})});
  EXPECT_NE(found.advice.find("For time try b, for memory c"), std::string::npos) << found.advice;
  EXPECT_NE(found.advice.find("50 % less time"), std::string::npos) << found.advice;
  EXPECT_NE(found.advice.find("50 % less memory"), std::string::npos) << found.advice;
  EXPECT_EQ(found.by_memory.front(), 2u);
}

TEST(Compare, OneRunIsNoProof) {
  Comparison found = compare({contender("a", {100}, {80}), contender("b", {95}, {80})});
  EXPECT_TRUE(found.advice.starts_with("Stay with a")) << found.advice;
  EXPECT_NE(found.advice.find("--repeat"), std::string::npos);
}

TEST(Compare, WhatFailedIsNotRanked) {
  Contender broken = contender("a", {1}, {1});
  broken.trials[0].error = "it crashed";
  Comparison found = compare({broken, contender("b", {95}, {80})});
  EXPECT_EQ(found.by_time, std::vector<size_t>{1});
  EXPECT_TRUE(found.advice.empty());
}

TEST(Compare, WhoRefusesIsNotRecommended) {
  Contender refuses = contender("b", {1}, {1});
  refuses.trials[0].failed = 1;
  Comparison found = compare({contender("a", {95}, {80}), refuses});
  EXPECT_TRUE(found.advice.starts_with("Stay with a")) << found.advice;
  found = compare({refuses, contender("a", {95}, {80})});
  EXPECT_NE(found.advice.find("b did not have the memory"), std::string::npos) << found.advice;
}

TEST(Compare, WhatIsUsedAlreadyIsNotRecommended) {
  std::vector<Contender> contenders = {contender("a", {100, 101, 102}, {80, 80, 80}),
                                       contender("b", {50, 51, 52}, {80, 80, 80}),
                                       contender("b", {40, 41, 42}, {80, 80, 80})};
  contenders[2].setup.tunables = "setting=1";
  Comparison found = compare(contenders, "b");
  EXPECT_EQ(found.reference, 1u);
  EXPECT_TRUE(found.advice.starts_with("For time try b setting=1: against b,")) << found.advice;
  contenders.pop_back();
  EXPECT_TRUE(compare(contenders, "b").advice.starts_with("Stay with b")) << found.advice;
  EXPECT_EQ(compare(contenders, "not there").reference, 0u);
}

TEST(Spread, KeepsTheOrderOfFigures) {
  // The run of the median time is the second one, which is not that of the median memory.
  Contender made = contender("a", {100, 110, 120, 130}, {50, 90, 60, 55});
  uint64_t at_end[] = {40, 90, 30, 20};
  for (size_t i = 0; i < 4; ++i) made.trials[i].heap_end_rss_bytes = at_end[i];
  made.trials.push_back({});
  made.trials.back().error = "it crashed";
  EXPECT_EQ(heap_rss(made).median, 60);
  EXPECT_EQ(spread(made, &Trial::heap_end_rss_bytes).median, 40);
  EXPECT_EQ(spread(made, &Trial::heap_end_rss_bytes).high, 90);
}

TEST(Tunables, ThatWouldDoNothingAreRefused) {
  for (const char* words :
       {"glibc.malloc.nothere=1", "glibc.mallok.arena_max=1", "glibc.malloc.arena_max=many",
        "glibc.malloc.arena_max=-1", "LD_PRELOAD=/x"})
    EXPECT_FALSE(tunables_of(words)) << words;
  EXPECT_TRUE(tunables_of("glibc.malloc.arena_max=0x10,4K,2"));
}

TEST(Tunables, AreAllCombined) {
  Result<std::vector<Tunable>> parsed = tunables_of(
      "glibc.malloc.mmap_threshold=64K,4M glibc.malloc.arena_max=1,2 MALLOC_CONF=a:1,b:2|c:3");
  ASSERT_TRUE(parsed);
  std::vector<replay::Setup> glibc = combinations(find_allocator("glibc"), *parsed);
  ASSERT_EQ(glibc.size(), 5u);
  EXPECT_TRUE(glibc[0].environment.empty());  // As it is.
  ASSERT_EQ(glibc[1].environment.size(), 1u);
  EXPECT_EQ(glibc[1].environment[0].first, "GLIBC_TUNABLES");
  EXPECT_EQ(glibc[1].environment[0].second,
            "glibc.malloc.mmap_threshold=65536:glibc.malloc.arena_max=1");
  replay::Setup jemalloc{"jemalloc", "/somewhere.so", "", {}, ""};
  std::vector<replay::Setup> settings = combinations(jemalloc, *parsed);
  ASSERT_EQ(settings.size(), 3u);
  EXPECT_EQ(settings[1].environment[0].second, "a:1,b:2");
  replay::Setup mimalloc{"mimalloc", "/somewhere.so", "", {}, ""};
  EXPECT_EQ(combinations(mimalloc, *parsed).size(), 1u);
}

TEST(Tunables, ReachLibrariesNamedByTheirPath) {
  Result<std::vector<Tunable>> parsed =
      tunables_of("glibc.malloc.arena_max=1 MALLOC_CONF=a:1 MIMALLOC_X=1");
  ASSERT_TRUE(parsed);
  auto settings = [&](const char* path) {
    return combinations({path, path, "", {}, ""}, *parsed).back().tunables;
  };
  EXPECT_EQ(settings("/opt/jemalloc-5/lib/libjemalloc.so.2"), "MALLOC_CONF=a:1");
  EXPECT_EQ(settings("/opt/jemalloc/libmine.so"), "MALLOC_CONF=a:1 MIMALLOC_X=1");
}

TEST(Tunables, NonsenseIsASentence) {
  for (const char* words : {"", "x", "=1", "x=", "x=1,,2", "  "})
    EXPECT_FALSE(tunables_of(words)) << words;
}

TEST(CycleBuckets, AreInOrder) {
  int last = -1;
  for (uint64_t cycles = 0; cycles < 1 << 20; cycles += 1 + cycles / 50) {
    int bucket = cycle_bucket(cycles);
    EXPECT_GE(bucket, last);
    EXPECT_LE(bucket_floor(bucket), cycles);
    EXPECT_GE(bucket_floor(bucket) * 9 / 8 + 1, cycles);
    last = bucket;
  }
  EXPECT_LT(cycle_bucket(UINT64_MAX), kCycleBuckets);
}

}  // namespace
}  // namespace malloscope::replay
