// SPDX-License-Identifier: Apache-2.0
// Tracks wait for each other at random, beside a model that forgets nothing.

#include "replay/vector_clocks.h"

#include <gtest/gtest.h>

#include <random>

namespace malloscope::replay {
namespace {

struct Model {
  using Clock = std::vector<uint64_t>;
  std::vector<std::vector<Clock>> after;  // Of each track, after each operation; the first is none.

  explicit Model(size_t tracks) : after(tracks, {Clock(tracks)}) {}

  uint64_t done(size_t track) const { return after[track].size() - 1; }
  bool knows(size_t track, size_t other, uint64_t count) const {
    return track == other || after[track].back()[other] >= count;
  }
  void step(size_t track) { after[track].push_back(after[track].back()); }
  void wait(size_t track, size_t other, uint64_t count) {
    step(track);
    Clock& clock = after[track].back();
    const Clock& theirs = after[other][count];
    for (size_t i = 0; i < clock.size(); ++i) clock[i] = std::max(clock[i], theirs[i]);
    clock[other] = std::max(clock[other], count);
  }
};

// How often an implied wait was not seen to be.
uint64_t forgotten(unsigned seed, uint32_t tracks, int steps) {
  std::mt19937 random(seed);
  VectorClocks clocks;
  Model model(tracks);
  for (uint32_t i = 0; i < tracks; ++i) clocks.add_track();
  uint64_t forgotten = 0;
  for (int i = 0; i < steps; ++i) {
    auto track = static_cast<uint32_t>(random() % tracks);
    auto other = static_cast<uint32_t>(random() % tracks);
    uint64_t count = model.done(other) - std::min<uint64_t>(model.done(other), random() % 20);
    if (random() % 3 == 0) {
      model.step(track);
    } else if (clocks.knows(track, other, count)) {
      EXPECT_TRUE(model.knows(track, other, count)) << "step " << i;
    } else {
      forgotten += model.knows(track, other, count);
      model.wait(track, other, count);
      clocks.wait(track, model.done(track), other, count);
    }
  }
  return forgotten;
}

TEST(VectorClocks, NeverKnowWhatIsNotSo) {
  for (unsigned seed = 1; seed <= 20; ++seed) forgotten(seed, 2 + seed % 7, 3000);
}

TEST(VectorClocks, KnowWhatFollowsFromAFewWaits) {
  // Nobody waits more often than is remembered.
  for (unsigned seed = 1; seed <= 100; ++seed) EXPECT_EQ(forgotten(seed, 5, 20), 0u);
}

TEST(VectorClocks, LearnFromWhomTheyWaitFor) {
  VectorClocks clocks;
  for (int i = 0; i < 3; ++i) clocks.add_track();
  clocks.wait(1, 8, 0, 5);  // As its eighth operation.
  EXPECT_TRUE(clocks.knows(1, 0, 5));
  EXPECT_FALSE(clocks.knows(1, 0, 6));
  clocks.wait(2, 1, 1, 7);  // Before that.
  EXPECT_FALSE(clocks.knows(2, 0, 5));
  clocks.wait(2, 2, 1, 8);
  EXPECT_TRUE(clocks.knows(2, 0, 5));
}

}  // namespace
}  // namespace malloscope::replay
