// SPDX-License-Identifier: Apache-2.0
// Which allocators there are to replay on, and with which settings.

#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace malloscope::replay {

// One way to run the player.
struct Setup {
  std::string allocator;  // As the user called it.
  std::string library;    // To be preloaded; empty: the system's own.
  std::string tunables;   // As they are shown; empty: none.
  std::vector<std::pair<std::string, std::string>> environment;
  std::string error;  // It cannot be run, because ...; a sentence.
};

// The library of a name ("jemalloc") or of a path ("./mymalloc.so"). What is missing is an error in
// the setup: others may still be run.
Setup find_allocator(const std::string& name);
// The names that are known without a path.
std::vector<std::string_view> known_allocators();

// One setting and the values to try: "glibc.malloc.arena_max=1,2,8".
struct Tunable {
  std::string name;
  std::vector<std::string> values;
};
Result<std::vector<Tunable>> tunables_of(const std::string& words);

// The allocator as it is, then with each combination of those settings that are its own.
std::vector<Setup> combinations(const Setup& allocator, const std::vector<Tunable>& tunables);

// The settings that make it ask for huge pages; false if there are none.
bool ask_for_huge_pages(Setup* setup);

// Whether a variable sets any of the known allocators: a replay begins without them.
bool is_allocator_variable(std::string_view name);

}  // namespace malloscope::replay
