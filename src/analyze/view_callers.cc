// SPDX-License-Identifier: Apache-2.0
// The manner of gprof: each function between those that called it, lightest first, and those that
// it called, heaviest first.

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "analyze/call_graph.h"
#include "analyze/profile_views.h"

namespace malloscope::analyze {

using Kind = Column::Kind;

static constexpr size_t kMostEdges = 10;  // Of a function, as text.

Answer callers_and_callees(Reading* reading, const Query& query, const ProfileOptions& options) {
  CallTree tree(reading, query);
  CallGraph graph(tree);
  Answer answer;
  answer.headline = headline(*reading, tree.total(), options.metric);
  Metric metric = options.metric;
  uint64_t whole = value(tree.total(), metric);
  std::vector<size_t> order = ordered(tree, graph, options);
  // Whoever asks for a function wants to see that one.
  if (!query.frames.focus.empty())
    std::ranges::stable_partition(order, [&](size_t i) {
      return matches_any(query.frames.focus, tree.symbol(graph.functions[i].symbol).full);
    });
  size_t blocks = options.top == 0 ? order.size() : std::min(options.top, order.size());

  std::vector<std::vector<const GraphEdge*>> callers(graph.functions.size()),
      callees(graph.functions.size());
  for (const GraphEdge& edge : graph.edges) {
    if (value(edge.amounts, metric) == 0) continue;
    callers[static_cast<size_t>(edge.callee)].push_back(&edge);
    callees[static_cast<size_t>(edge.caller)].push_back(&edge);
  }
  auto by_weight = [&](std::vector<const GraphEdge*>& edges, bool ascending) {
    std::sort(edges.begin(), edges.end(), [&](const GraphEdge* a, const GraphEdge* b) {
      uint64_t x = value(a->amounts, metric), y = value(b->amounts, metric);
      if (x != y) return ascending ? x < y : x > y;
      return std::pair(a->caller, a->callee) < std::pair(b->caller, b->callee);
    });
  };

  Table table;
  table.key = "callgraph";
  table.list = false;
  table.columns = {
      {"rank", "rank", Kind::kText},
      {"role", "", Kind::kText, false},
      {"cumulative", fmt::format("{} in all", metric_name(metric)), metric_kind(metric)},
      {"cumulative_share", "", Kind::kShare},
      {"self", "itself", metric_kind(metric)},
      {"frame", "function, between its callers and its callees", Kind::kFrame}};
  for (size_t rank = 0; rank < blocks; ++rank) {
    const GraphFunction& f = graph.functions[order[rank]];
    size_t first = table.rows.size();
    auto add = [&](bool caller, uint64_t amount, NamedFrame frame, bool several = false) {
      TableRow row;
      row.main = false;
      row.depth = 1;
      row.cells = {std::string(),
                   fmt::format("{}{}", several ? "other " : "", caller ? "caller" : "callee"),
                   amount,
                   Share{amount, value(f.cumulative, metric)},
                   std::monostate{},
                   std::move(frame)};
      table.rows.push_back(std::move(row));
    };
    // The heaviest stand next to the function; of many, the rest are one line.
    auto add_edges = [&](std::vector<const GraphEdge*>& edges, bool are_callers) {
      by_weight(edges, are_callers);
      bool many = options.top > 0 && edges.size() > kMostEdges + 1;
      std::span<const GraphEdge* const> listed(edges), rest;
      if (many && are_callers)
        rest = listed.first(edges.size() - kMostEdges), listed = listed.last(kMostEdges);
      else if (many)
        rest = listed.subspan(kMostEdges), listed = listed.first(kMostEdges);
      auto add_rest = [&] {
        uint64_t amount = 0;
        for (const GraphEdge* edge : rest) amount += value(edge->amounts, metric);
        if (!rest.empty())
          add(are_callers, amount, {fmt::format("({} others)", rest.size()), "", 0, ""}, true);
      };
      if (are_callers) add_rest();
      for (const GraphEdge* edge : listed)
        add(are_callers, value(edge->amounts, metric),
            named(tree.symbol(are_callers ? edge->caller : edge->callee)));
      if (!are_callers) add_rest();
    };
    add_edges(callers[order[rank]], true);
    uint64_t all = value(f.cumulative, metric);
    TableRow row;
    row.cells = {fmt::format("[{}]", rank + 1), std::string("function"),     all, Share{all, whole},
                 value(f.self, metric),         named(tree.symbol(f.symbol))};
    table.rows.push_back(std::move(row));
    add_edges(callees[order[rank]], false);
    table.rows[first].begins_block = true;
  }
  table.left_out = order.size() - blocks;
  answer.tables.push_back(std::move(table));
  add_notes(tree, metric, &answer);
  return answer;
}

}  // namespace malloscope::analyze
