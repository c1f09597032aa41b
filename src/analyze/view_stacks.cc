// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>

#include "analyze/profile_views.h"

namespace malloscope::analyze {

using Kind = Column::Kind;

Answer by_stack(Reading* reading, const Query& query, const ProfileOptions& options) {
  CallTree tree(reading, query, /*by_line=*/true);
  const auto& nodes = tree.nodes();
  Answer answer;
  answer.headline = headline(*reading, tree.total(), options.metric);
  Table table;
  table.key = "stacks";
  table.columns = {{metric_key(options.metric), std::string(metric_name(options.metric)),
                    metric_kind(options.metric)},
                   {"share", "", Kind::kShare}};
  for (Column& column : amount_columns(options.metric)) table.columns.push_back(column);
  table.columns.push_back({"frame", "function", Kind::kFrame});
  table.columns.push_back({"stack", "", Kind::kStack});
  uint64_t whole = value(tree.total(), options.metric);
  auto order = heaviest_first(
      nodes.size(), [&](size_t i) { return value(tree.self(i), options.metric); },
      [](size_t i) { return i; });
  size_t most = options.top == 0 ? order.size() : std::min(order.size(), options.top);
  std::vector<SymbolId> path;
  for (size_t i = 0; i < most; ++i) {
    auto node = static_cast<uint32_t>(order[i]);
    uint64_t amount = value(tree.self(node), options.metric);
    TableRow row;
    row.cells = {amount, Share{amount, whole}};
    add_amounts(tree.self(node), &row.cells);
    tree.path(node, &path);
    std::vector<NamedFrame> stack;
    for (SymbolId id : path) stack.push_back(named(tree.symbol(id)));
    row.cells.emplace_back(stack.empty() ? NamedFrame{"[hidden]", "", 0, ""} : stack.front());
    row.cells.emplace_back(std::move(stack));
    table.rows.push_back(std::move(row));
  }
  table.left_out = order.size() - most;
  answer.tables.push_back(std::move(table));
  add_notes(tree, options.metric, &answer);
  return answer;
}

}  // namespace malloscope::analyze
