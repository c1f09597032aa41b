// SPDX-License-Identifier: Apache-2.0
// A tree of functions without some of them: whom a hidden function has called is below its caller.
// Faster than another look at all stacks, and the functions keep their numbers.

#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "analyze/flame.h"

namespace malloscope::analyze {

class FoldedTree : public FunctionTree {
 public:
  // `below`: of the whole tree.
  FoldedTree(const FunctionTree& whole, const NodeChildren& below,
             const std::function<bool(const Symbol&)>& is_hidden);
  // Of a node of the whole tree with amounts of its own: if all of its functions are hidden, a node
  // that says so.
  uint32_t node_of(uint32_t node) const { return node_of_[node]; }

 private:
  void add_all_hidden();

  std::vector<uint32_t> node_of_;
};

}  // namespace malloscope::analyze
