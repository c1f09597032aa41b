// SPDX-License-Identifier: Apache-2.0
// For each function: what it asked for itself, what was asked for below it, by whom it
// was called for that and whom it called. A function that calls itself counts once.

#pragma once

#include <cstdint>
#include <vector>

#include "analyze/call_tree.h"

namespace malloscope::analyze {

struct GraphFunction {
  SymbolId symbol = {};
  Amounts self;
  Amounts cumulative;
  uint64_t paths = 0;  // Distinct paths from the root on which it asked for something itself.
};

// Of what was asked for below `callee`, what came by `caller`.
struct GraphEdge {
  SymbolId caller = {};
  SymbolId callee = {};
  Amounts amounts;
};

struct CallGraph {
  std::vector<GraphFunction> functions;  // By SymbolId.
  std::vector<GraphEdge> edges;          // In no particular order.

  explicit CallGraph(const CallTree& tree);
};

}  // namespace malloscope::analyze
