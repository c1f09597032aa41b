// SPDX-License-Identifier: Apache-2.0
// Several runs on several allocators, and what follows from them: who needs less time, who less
// memory, and whether that is more than chance.

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "replay/trial.h"

namespace malloscope::replay {

// All runs of one setup.
struct Contender {
  Setup setup;
  std::vector<Trial> trials;

  std::string name() const;  // With its settings.
  // Of the runs without an error; nullptr if there is none.
  const Trial* typical() const;  // The one with the median of allocator time.
  const Trial* first_error() const;
};

// The middle of several runs, and how far apart they were.
struct Spread {
  double low = 0, median = 0, high = 0;
  bool overlaps(const Spread& other) const { return low <= other.high && other.low <= high; }
  // Half the distance between the outer ones, as a share of the middle.
  double share() const { return median > 0 ? (high - low) / 2 / median : 0; }
};
// Of the runs without an error. Each figure's middle is found by the same rule, so what is at
// most another in every run is so here.
Spread spread(const Contender& contender, uint64_t Trial::* figure);
Spread allocator_time(const Contender& contender);
Spread heap_rss(const Contender& contender);

struct Comparison {
  std::vector<size_t> by_time;  // Contenders without an error, the best first.
  std::vector<size_t> by_memory;
  std::optional<size_t> reference;  // What the others are compared with.
  std::string advice;               // In a sentence or two.
};
// The reference is what the program `uses` already, if it is among those that ran, else the first
// of them.
Comparison compare(const std::vector<Contender>& contenders, std::string_view uses = {});

}  // namespace malloscope::replay
