// SPDX-License-Identifier: Apache-2.0
#include "output/igprof_table.h"

#include <algorithm>
#include <unordered_map>

#include "analyze/call_graph.h"
#include "output/tree_walk.h"

namespace malloscope::output {
namespace {

using analyze::Amounts;
using analyze::CallTree;
using analyze::Metric;

// The names that IgProf has for these, or would have.
const char* counter_name(Metric metric) {
  switch (metric) {
    case Metric::kAllocated:
      return "MEM_TOTAL";
    case Metric::kLive:
      return "MEM_LIVE";
    case Metric::kPeak:
      return "MEM_LIVE_PEAK";
    case Metric::kAllocations:
      return "MEM_ALLOCATIONS";
    case Metric::kTemporary:
      return "MEM_TEMPORARY";
    case Metric::kCalls:
      return "MEM_CALLS";
    case Metric::kLifetime:
      return "MEM_LIFETIME";
    case Metric::kOverhead:
      return "MEM_OVERHEAD";
    case Metric::kAllocatorTime:
      return "MEM_TIME";
    case Metric::kCpu:
      return "CPU_TIME";
  }
  return "";
}

IgprofAmounts amounts_of(const Amounts& amounts, Metric metric, uint64_t paths) {
  return {analyze::value(amounts, metric),
          metric == Metric::kLive  ? amounts.live_blocks
          : metric == Metric::kCpu ? amounts.cpu_samples
                                   : amounts.allocations,
          paths};
}

// Distinct stacks below each function and each call, counted as CallGraph counts amounts.
struct Paths {
  explicit Paths(const CallTree& tree) : functions(tree.symbols()) {
    const auto& nodes = tree.nodes();
    std::vector<uint64_t> below(nodes.size());
    for (size_t n = nodes.size(); n-- > 1;) {
      below[n] += !is_empty(tree.self(n));
      below[nodes[n].parent] += below[n];
    }
    std::vector<uint32_t> on_path(tree.symbols());
    std::unordered_map<uint64_t, uint32_t> edge_on_path;
    auto symbol = [&](uint32_t n) { return static_cast<uint32_t>(nodes[n].symbol); };
    auto edge = [&](uint32_t n) { return key(symbol(nodes[n].parent), symbol(n)); };
    walk(
        tree,
        [&](uint32_t n) {
          if (on_path[symbol(n)]++ == 0) functions[symbol(n)] += below[n];
          if (nodes[n].parent != CallTree::kRoot && edge_on_path[edge(n)]++ == 0)
            edges[edge(n)] += below[n];
        },
        [&](uint32_t n) {
          --on_path[symbol(n)];
          if (nodes[n].parent != CallTree::kRoot) --edge_on_path[edge(n)];
        });
  }
  static uint64_t key(uint32_t caller, uint32_t callee) { return uint64_t{caller} << 32 | callee; }

  std::vector<uint64_t> functions;
  std::unordered_map<uint64_t, uint64_t> edges;
};

}  // namespace

IgprofTable::IgprofTable(const Export& what)
    : counter(counter_name(what.metric)), tree(export_tree(what, false)) {
  analyze::CallGraph graph(tree);
  Paths paths(tree);
  uint64_t all_paths = 0;
  for (size_t n = 0; n < tree.nodes().size(); ++n) all_paths += !is_empty(tree.self(n));
  total = amounts_of(tree.total(), what.metric, all_paths);

  std::vector<uint32_t> order(graph.functions.size());
  for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  auto weight = [&](uint32_t i) {
    return analyze::value(graph.functions[i].cumulative, what.metric);
  };
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    if (weight(a) != weight(b)) return weight(a) > weight(b);
    return graph.functions[a].symbol < graph.functions[b].symbol;
  });
  std::vector<size_t> rank(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    const analyze::GraphFunction& function = graph.functions[order[i]];
    rank[order[i]] = i + 1;
    IgprofRow row;
    row.symbol = &tree.symbol(function.symbol);
    row.self = amounts_of(function.self, what.metric, function.paths);
    row.cumulative = amounts_of(function.cumulative, what.metric, paths.functions[order[i]]);
    row.all_self = function.self;
    row.all_cumulative = function.cumulative;
    rows.push_back(std::move(row));
  }
  for (const analyze::GraphEdge& edge : graph.edges) {
    auto caller = static_cast<uint32_t>(edge.caller), callee = static_cast<uint32_t>(edge.callee);
    IgprofAmounts amounts =
        amounts_of(edge.amounts, what.metric, paths.edges[Paths::key(caller, callee)]);
    rows[rank[caller] - 1].callees.push_back({rank[callee], amounts});
    rows[rank[callee] - 1].callers.push_back({rank[caller], amounts});
  }
  for (IgprofRow& row : rows) {
    std::sort(row.callers.begin(), row.callers.end(), [](const auto& a, const auto& b) {
      return std::pair(a.amounts.count, b.rank) < std::pair(b.amounts.count, a.rank);
    });
    std::sort(row.callees.begin(), row.callees.end(), [](const auto& a, const auto& b) {
      return std::pair(b.amounts.count, a.rank) < std::pair(a.amounts.count, b.rank);
    });
  }
}

}  // namespace malloscope::output
