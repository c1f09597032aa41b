// SPDX-License-Identifier: Apache-2.0
#include "analyze/folded_tree.h"

#include <algorithm>

namespace malloscope::analyze {

FoldedTree::FoldedTree(const FunctionTree& whole,
                       const std::function<bool(const Symbol&)>& is_hidden)
    : node_of_(whole.nodes().size(), kRoot) {
  for (uint32_t i = 0; i < whole.symbols(); ++i) symbols_.push_back(whole.symbol(SymbolId{i}));
  std::vector<bool> hidden;
  for (const Symbol& symbol : symbols_) hidden.push_back(is_hidden(symbol));
  ChildTable below(whole.nodes().size());
  nodes_.reserve(whole.nodes().size());
  auto child = [&](uint32_t parent, SymbolId symbol) {
    auto next = static_cast<uint32_t>(nodes_.size());
    uint32_t node = below.find_or_add(parent, symbol, next);
    if (node == next) nodes_.push_back({parent, symbol, 0});
    return node;
  };
  for (uint32_t i = kRoot + 1; i < node_of_.size(); ++i) {
    const Node& node = whole.nodes()[i];
    uint32_t parent = node_of_[node.parent];
    node_of_[i] = hidden[static_cast<uint32_t>(node.symbol)] ? parent : child(parent, node.symbol);
  }
  if (std::ranges::count(node_of_, kRoot) == 1) return;
  Symbol nobody;
  nobody.name = nobody.full = "[hidden]";
  auto known = std::ranges::find(symbols_, nobody.full, &Symbol::full);
  SymbolId symbol{static_cast<uint32_t>(known - symbols_.begin())};
  if (known == symbols_.end()) symbols_.push_back(nobody);
  uint32_t all_hidden = child(kRoot, symbol);
  std::ranges::replace(node_of_.begin() + 1, node_of_.end(), kRoot, all_hidden);
}

}  // namespace malloscope::analyze
