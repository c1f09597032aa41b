// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>

#include "analyze/call_graph.h"
#include "analyze/profile_views.h"

namespace malloscope::analyze {

using Kind = Column::Kind;

Answer by_function(Reading* reading, const Query& query, const ProfileOptions& options) {
  CallTree tree(reading, query);
  CallGraph graph(tree);
  Answer answer;
  answer.headline = headline(*reading, tree.total(), options.metric);
  Table table;
  table.key = "functions";
  std::string_view title = metric_name(options.metric);
  Kind kind = metric_kind(options.metric);
  table.columns = {{"self", "itself", kind},
                   {"self_share", "", Kind::kShare},
                   {"cumulative", fmt::format("{} in all", title), kind},
                   {"cumulative_share", "", Kind::kShare},
                   {"paths", "paths", Kind::kCount}};
  for (Column& column : amount_columns(options.metric)) {
    column.shown = false;
    table.columns.push_back(column);
  }
  table.columns.push_back({"frame", "function", Kind::kFrame});
  uint64_t whole = value(tree.total(), options.metric);
  std::vector<size_t> order = ordered(tree, graph, options);
  for (size_t i : order) {
    const GraphFunction& f = graph.functions[i];
    uint64_t all = value(f.cumulative, options.metric), self = value(f.self, options.metric);
    TableRow row;
    row.cells = {self, Share{self, whole}, all, Share{all, whole}, f.paths};
    add_amounts(f.cumulative, options.metric, &row.cells);
    row.cells.emplace_back(named(tree.symbol(f.symbol)));
    table.rows.push_back(std::move(row));
  }
  answer.tables.push_back(std::move(table));
  add_notes(tree, options.metric, &answer);
  return answer;
}

}  // namespace malloscope::analyze
