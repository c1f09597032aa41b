// SPDX-License-Identifier: Apache-2.0
// A walk over the tree of debugging entries (DIEs) below one of them.

#pragma once

#include <elfutils/libdw.h>

#include <optional>
#include <utility>
#include <vector>

namespace malloscope::symbols {

// Visits the entries below `root` in the order of the file. `visit(die, state)`
// returns the state for the entry's children, or nothing to leave them out.
//
// In a sound file each entry stands behind those visited before. A damaged one may
// lead us over the same entries again and again: there the walk ends, so it is never
// longer than the file.
template <typename State, typename Visit>
void walk_below(Dwarf_Die root, State initial, Visit visit) {
  constexpr size_t kMaxDepth = 1000;
  struct Level {
    Dwarf_Die die;
    State state;
  };
  std::vector<Level> levels;
  const void* last = root.addr;
  if (Dwarf_Die child; dwarf_child(&root, &child) == 0) levels.push_back({child, initial});
  while (!levels.empty()) {
    auto [die, state] = levels.back();
    if (die.addr <= last) return;
    last = die.addr;
    std::optional<State> inner = visit(die, state);
    if (Dwarf_Die next; dwarf_siblingof(&die, &next) == 0)
      levels.back().die = next;
    else
      levels.pop_back();
    if (Dwarf_Die child; inner && levels.size() < kMaxDepth && dwarf_child(&die, &child) == 0)
      levels.push_back({child, *inner});
  }
}

}  // namespace malloscope::symbols
