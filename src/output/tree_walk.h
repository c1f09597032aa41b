// SPDX-License-Identifier: Apache-2.0
// Through a call tree, callers before and after what they call.

#pragma once

#include <cstdint>
#include <vector>

#include "analyze/call_tree.h"

namespace malloscope::output {

// Calls enter(node) and leave(node) for every node but the root; in between is all that is below.
template <typename Enter, typename Leave>
void walk(const analyze::CallTree& tree, Enter&& enter, Leave&& leave) {
  const auto& nodes = tree.nodes();
  std::vector<uint32_t> first_child(nodes.size(), 0), next_sibling(nodes.size(), 0);
  for (auto i = static_cast<uint32_t>(nodes.size()); i-- > 1;) {
    next_sibling[i] = first_child[nodes[i].parent];
    first_child[nodes[i].parent] = i;
  }
  uint32_t n = first_child[analyze::CallTree::kRoot];
  while (n != 0) {
    enter(n);
    if (first_child[n] != 0) {
      n = first_child[n];
      continue;
    }
    leave(n);
    while (next_sibling[n] == 0 && nodes[n].parent != analyze::CallTree::kRoot) {
      n = nodes[n].parent;
      leave(n);
    }
    n = next_sibling[n];
  }
}

}  // namespace malloscope::output
