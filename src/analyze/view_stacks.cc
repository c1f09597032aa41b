// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "analyze/profile_views.h"

namespace malloscope::analyze {

using Kind = Column::Kind;

Answer by_stack(Reading* reading, const Query& query, const ProfileOptions& options) {
  // As long as somebody may ask it for a stack.
  auto kept = std::make_shared<const CallTree>(reading, query, /*by_line=*/true);
  const CallTree& tree = *kept;
  const auto& nodes = tree.nodes();
  Answer answer;
  answer.headline = headline(*reading, tree.total(), options.metric);
  Table table;
  table.key = "stacks";
  table.columns = profile_columns(options.metric);
  table.columns.push_back({"frame", "function", Kind::kFrame});
  table.columns.push_back({"stack", "", Kind::kStack});
  uint64_t whole = value(tree.total(), options.metric);
  auto order = heaviest_first(
      nodes.size(), [&](size_t i) { return value(tree.self(i), options.metric); },
      [](size_t i) { return i; });
  size_t most = options.top == 0 ? order.size() : std::min(order.size(), options.top);
  for (size_t i = 0; i < most; ++i) {
    auto node = static_cast<uint32_t>(order[i]);
    TableRow row;
    add_profile(tree.self(node), whole, options.metric, &row.cells);
    row.cells.emplace_back(node == CallTree::kRoot ? NamedFrame{"[hidden]", "", 0, ""}
                                                   : named(tree.symbol(nodes[node].symbol)));
    row.cells.emplace_back(Stack([kept, node] {
      std::vector<SymbolId> path;
      kept->path(node, &path);
      std::vector<NamedFrame> stack;
      for (SymbolId id : path) stack.push_back(named(kept->symbol(id)));
      return stack;
    }));
    table.rows.push_back(std::move(row));
  }
  table.left_out = order.size() - most;
  answer.tables.push_back(std::move(table));
  add_notes(tree, options.metric, &answer);
  return answer;
}

}  // namespace malloscope::analyze
