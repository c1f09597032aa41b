// SPDX-License-Identifier: Apache-2.0
#include "analyze/comparison.h"

namespace malloscope::analyze {

Comparison::Treeing Comparison::tree(const Explorer::Question& question) {
  Explorer::Treeing before = before_.tree(question), after = after_.tree(question);
  if (!latest_ || latest_->before != before || latest_->after != after)
    latest_ = std::make_shared<Tree>(std::move(before), std::move(after), names_);
  return latest_;
}

NodeValues Comparison::values_before(const Tree& tree, const Explorer::Amounted& amounts,
                                     Metric metric) const {
  std::vector<uint64_t> own = before_.self_by_node(*tree.before, amounts, metric);
  std::vector<uint64_t> self(tree.tree.nodes().size());
  for (uint32_t node = 0; node < own.size(); ++node) self[tree.tree.node_of(node)] += own[node];
  return NodeValues(tree.tree, std::move(self));
}

NodeValues Comparison::values_after(const Tree& tree, const Explorer::Amounted& amounts,
                                    Metric metric) const {
  std::vector<uint64_t> self = after_.self_by_node(*tree.after, amounts, metric);
  self.resize(tree.tree.nodes().size());
  return NodeValues(tree.tree, std::move(self));
}

}  // namespace malloscope::analyze
