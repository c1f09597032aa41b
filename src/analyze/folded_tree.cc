// SPDX-License-Identifier: Apache-2.0
// A node of the folded tree stands for nodes of the whole one that look the same without what is
// hidden. All that is right below those is looked at together, so that whether two of them are the
// same function is a look at a short list, not at a table of the whole tree.

#include "analyze/folded_tree.h"

#include <algorithm>

namespace malloscope::analyze {

namespace {
constexpr uint32_t kNobody = UINT32_MAX;
}

FoldedTree::FoldedTree(const FunctionTree& whole, const NodeChildren& below,
                       const std::function<bool(const Symbol&)>& is_hidden)
    : node_of_(whole.nodes().size(), kRoot) {
  std::vector<uint8_t> hidden;
  for (uint32_t i = 0; i < whole.symbols(); ++i) {
    symbols_.push_back(whole.symbol(SymbolId{i}));
    hidden.push_back(is_hidden(symbols_.back()));
  }
  nodes_.reserve(whole.nodes().size());
  // The nodes that a node stands for, as a list.
  struct List {
    uint32_t first = kNobody, last = kNobody;
  };
  std::vector<List> members(1);
  members.reserve(whole.nodes().size());
  std::vector<uint32_t> next(whole.nodes().size(), kNobody);
  auto append = [&](uint32_t node, List* list) {
    (list->last == kNobody ? list->first : next[list->last]) = node;
    list->last = node;
  };
  struct Latest {
    uint32_t parent = kNobody, child = 0;
  };
  std::vector<Latest> latest(symbols_.size());  // By symbol.
  append(kRoot, &members[kRoot]);
  for (std::vector<uint32_t> open = {kRoot}; !open.empty();) {
    uint32_t parent = open.back();
    open.pop_back();
    for (uint32_t member = members[parent].first; member != kNobody; member = next[member])
      for (uint32_t node : below.of(member)) {
        SymbolId symbol = whole.nodes()[node].symbol;
        auto number = static_cast<uint32_t>(symbol);
        if (hidden[number]) {  // What is below it is as if it were here.
          node_of_[node] = parent;
          append(node, &members[parent]);
          continue;
        }
        Latest& known = latest[number];
        if (known.parent != parent) {
          known = {parent, static_cast<uint32_t>(nodes_.size())};
          nodes_.push_back({parent, symbol, 0});
          members.emplace_back();
          open.push_back(known.child);
        }
        node_of_[node] = known.child;
        append(node, &members[known.child]);
      }
  }
  if (std::ranges::count(node_of_, kRoot) > 1) add_all_hidden();
}

// What has nothing but hidden functions is a node that says so.
void FoldedTree::add_all_hidden() {
  Symbol nobody;
  nobody.name = nobody.full = "[hidden]";
  auto known = std::ranges::find(symbols_, nobody.full, &Symbol::full);
  SymbolId symbol{static_cast<uint32_t>(known - symbols_.begin())};
  if (known == symbols_.end()) symbols_.push_back(nobody);
  uint32_t node = kRoot + 1;
  while (node < nodes_.size() && (nodes_[node].parent != kRoot || nodes_[node].symbol != symbol))
    ++node;
  if (node == nodes_.size()) nodes_.push_back({kRoot, symbol, 0});
  std::ranges::replace(node_of_.begin() + 1, node_of_.end(), kRoot, node);
}

}  // namespace malloscope::analyze
