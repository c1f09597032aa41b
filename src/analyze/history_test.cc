// SPDX-License-Identifier: Apache-2.0
#include "analyze/history.h"

#include <gtest/gtest.h>

#include <cmath>

namespace malloscope::analyze {
namespace {

using Runs = std::vector<Run>;  // Where gtest has a Run of its own.

Runs runs_of(std::vector<uint64_t> peaks, std::string program = "app") {
  Runs runs;
  for (uint64_t peak : peaks) {
    Run run;
    run.program = program;
    run.peak_bytes = peak;
    run.start_unix_ns = static_cast<int64_t>(runs.size());
    runs.push_back(run);
  }
  return runs;
}

TEST(Growth, IsTheLastAgainstTheMedianOfThoseBefore) {
  auto percent = [](std::vector<uint64_t> peaks) {
    return growth(runs_of(std::move(peaks)), "peak").at(0).percent();
  };
  EXPECT_DOUBLE_EQ(percent({100, 1000, 100, 120}), 20);  // The outlier does not count.
  EXPECT_DOUBLE_EQ(percent({100, 200, 150}), 0);
  EXPECT_DOUBLE_EQ(percent({100, 50}), -50);
  EXPECT_DOUBLE_EQ(percent({0, 0}), 0);
  EXPECT_TRUE(std::isinf(percent({0, 1})));
  EXPECT_EQ(growth(runs_of({7}), "peak").at(0).runs_before, 0u);
}

TEST(Growth, IsOfEachProgramAndOfTheMetricAsked) {
  Runs runs = runs_of({100, 110});
  Runs others = runs_of({10, 10}, "other");
  runs.insert(runs.begin() + 1, others.begin(), others.end());
  std::vector<Growth> found = growth(runs, "peak");
  ASSERT_EQ(found.size(), 2u);
  EXPECT_DOUBLE_EQ(found[0].percent(), 10);
  EXPECT_DOUBLE_EQ(found[1].percent(), 0);
  EXPECT_DOUBLE_EQ(growth(runs, "live").at(0).percent(), 0);
  EXPECT_EQ(growth_text(found[0], "peak"),
            "app: peak is 110 B, 10.0 % more than the median of 1 run before (100 B)");
}

TEST(History, CountsARunOnceAndNoMerges) {
  Runs runs = runs_of({100, 100, 200, 300, 120});
  runs[1].start_unix_ns = runs[0].start_unix_ns;  // A copy.
  runs[2].merged = runs[3].merged = 2;
  std::vector<Growth> all = growth(runs, "peak");
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].runs_before, 1u);
  EXPECT_EQ(all[0].median, 100);
  EXPECT_EQ(all[0].last, 120u);
}

TEST(History, IsSortedByTimeAndSaysWhatIsWrong) {
  Runs runs = runs_of({3, 2, 1});
  runs[0].start_unix_ns = 9'000'000'000;
  runs[1].lost = 5;
  runs[2].complete = false;
  sort_by_time(&runs);
  EXPECT_EQ(runs.back().peak_bytes, 3u);
  Answer answer = history_answer(runs);
  EXPECT_EQ(answer.headline, "3 recordings of app, 1970-01-01 00:00 to 1970-01-01 00:00 UTC");
  EXPECT_EQ(answer.notes.size(), 2u);
}

}  // namespace
}  // namespace malloscope::analyze
