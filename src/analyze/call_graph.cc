// SPDX-License-Identifier: Apache-2.0
// One walk through the tree, deepest first. What is below a node counts for its
// function if the function is on the way to it for the first time, and for the edge
// from its caller if that edge is; so recursion counts once, however deep.

#include "analyze/call_graph.h"

#include <unordered_map>

namespace malloscope::analyze {

CallGraph::CallGraph(const CallTree& tree) {
  const std::vector<CallTree::Node>& nodes = tree.nodes();
  functions.resize(tree.symbols());
  for (size_t i = 0; i < functions.size(); ++i)
    functions[i].symbol = SymbolId{static_cast<uint32_t>(i)};

  // Children of a node are first_child[n], then next_sibling of each.
  std::vector<uint32_t> first_child(nodes.size(), 0), next_sibling(nodes.size(), 0);
  for (size_t i = nodes.size(); i-- > 1;) {
    next_sibling[i] = first_child[nodes[i].parent];
    first_child[nodes[i].parent] = static_cast<uint32_t>(i);
  }

  struct EdgeState {
    size_t place;
    uint32_t on_path;
  };
  std::unordered_map<uint64_t, EdgeState> known;
  std::vector<uint32_t> on_path(tree.symbols(), 0);
  std::vector<EdgeState*> edge_of(nodes.size(), nullptr);
  std::vector<Amounts> below;  // Of the nodes on the way to the present one, so far.

  auto enter = [&](uint32_t n) {
    const CallTree::Node& node = nodes[n];
    auto symbol = static_cast<uint32_t>(node.symbol);
    GraphFunction& function = functions[symbol];
    const Amounts& self = tree.self(n);
    function.self += self;
    if (self.allocations + self.reallocations + self.live_blocks + self.cpu_samples > 0 ||
        self.peak_bytes > 0)
      ++function.paths;
    below.push_back(self);
    ++on_path[symbol];
    if (node.parent == CallTree::kRoot) return;
    SymbolId caller = nodes[node.parent].symbol;
    uint64_t key = uint64_t{static_cast<uint32_t>(caller)} << 32 | symbol;
    auto [state, fresh] = known.try_emplace(key, EdgeState{edges.size(), 0});
    if (fresh) edges.push_back({caller, node.symbol, {}});
    edge_of[n] = &state->second;
    ++state->second.on_path;
  };
  auto leave = [&](uint32_t n) {
    Amounts all = below.back();
    below.pop_back();
    if (!below.empty()) below.back() += all;
    auto symbol = static_cast<uint32_t>(nodes[n].symbol);
    if (--on_path[symbol] == 0) functions[symbol].cumulative += all;
    EdgeState* edge = edge_of[n];
    if (edge && --edge->on_path == 0) edges[edge->place].amounts += all;
  };

  uint32_t n = first_child[CallTree::kRoot];
  if (n != 0) enter(n);
  while (n != 0) {
    uint32_t next = first_child[n];
    while (next == 0 && n != CallTree::kRoot) {
      leave(n);
      next = next_sibling[n];
      if (next == 0) n = nodes[n].parent;
      if (next == 0 && n == CallTree::kRoot) break;
    }
    n = next;
    if (n != 0) enter(n);
  }
}

}  // namespace malloscope::analyze
