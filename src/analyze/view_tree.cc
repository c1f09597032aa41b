// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <queue>
#include <utility>

#include "analyze/numbers.h"
#include "analyze/profile_views.h"

namespace malloscope::analyze {

using Kind = Column::Kind;

Answer as_tree(Reading* reading, const Query& query, const ProfileOptions& options) {
  CallTree tree(reading, query);
  const auto& nodes = tree.nodes();
  std::vector<Amounts> sums = tree.cumulative();
  Metric metric = options.metric;
  Answer answer;
  answer.headline = headline(*reading, tree.total(), metric);
  Table table;
  table.key = "tree";
  table.list = false;
  table.columns = {{"cumulative", std::string(metric_name(metric)), metric_kind(metric)},
                   {"cumulative_share", "", Kind::kShare},
                   {"self", "itself", metric_kind(metric)},
                   {"depth", "", Kind::kCount, false},
                   {"stands_for", "", Kind::kCount, false},
                   {"frame", "function", Kind::kFrame}};

  std::vector<std::vector<uint32_t>> children(nodes.size());
  for (uint32_t n = 1; n < nodes.size(); ++n)
    if (value(sums[n], metric) > 0) children[nodes[n].parent].push_back(n);
  uint64_t whole = value(tree.total(), metric);
  // The heaviest nodes, however deep; each comes after its parent, which is never lighter. Of
  // equals the one that is met first.
  std::vector<bool> is_shown(nodes.size(), options.top == 0);
  std::priority_queue<std::pair<uint64_t, uint32_t>> next;
  auto meet_children = [&](uint32_t node) {
    for (uint32_t child : children[node]) next.emplace(value(sums[child], metric), ~child);
  };
  meet_children(CallTree::kRoot);
  for (size_t shown = 0; shown < options.top && !next.empty(); ++shown) {
    uint32_t node = ~next.top().second;
    next.pop();
    is_shown[node] = true;
    meet_children(node);
  }
  // What --sort names comes first; equals are ordered as without it.
  auto weights = [&](uint32_t node) {
    uint64_t asked =
        options.siblings == ProfileOptions::Siblings::kSelf ? value(tree.self(node), metric) : 0;
    return std::pair(asked, value(sums[node], metric));
  };
  auto order = [&](std::vector<uint32_t>& list) {
    std::sort(list.begin(), list.end(), [&](uint32_t a, uint32_t b) {
      const std::string& name_a = tree.symbol(nodes[a].symbol).full;
      const std::string& name_b = tree.symbol(nodes[b].symbol).full;
      if (options.siblings == ProfileOptions::Siblings::kName && name_a != name_b)
        return name_a < name_b;
      auto x = weights(a), y = weights(b);
      return x != y ? x > y : name_a < name_b;
    });
  };
  auto others = [&](uint64_t amount, uint64_t count, unsigned depth) {
    TableRow row;
    row.depth = depth;
    row.cells = {
        amount,
        Share{amount, whole},
        std::monostate{},
        uint64_t{depth},
        count,
        NamedFrame{fmt::format("... {}", count_text(count, "other", "others")), "", 0, ""}};
    table.rows.push_back(std::move(row));
  };
  // Depth first; an "others" line comes after the last child that is shown.
  struct Level {
    std::vector<uint32_t> shown;
    size_t next = 0;
    uint64_t rest = 0, rest_count = 0;
  };
  std::vector<Level> levels;
  auto descend = [&](uint32_t node) {
    Level level;
    order(children[node]);
    for (uint32_t child : children[node]) {
      uint64_t amount = value(sums[child], metric);
      if (is_shown[child])
        level.shown.push_back(child);
      else
        level.rest += amount, ++level.rest_count;
    }
    levels.push_back(std::move(level));
  };
  descend(CallTree::kRoot);
  while (!levels.empty()) {
    Level& level = levels.back();
    auto depth = static_cast<unsigned>(levels.size() - 1);
    if (level.next == level.shown.size()) {
      if (level.rest > 0) others(level.rest, level.rest_count, depth);
      levels.pop_back();
      continue;
    }
    uint32_t node = level.shown[level.next++];
    uint64_t all = value(sums[node], metric), self = value(tree.self(node), metric);
    TableRow row;
    row.depth = depth;
    row.cells = {all,         Share{all, whole},
                 self,        uint64_t{depth},
                 uint64_t{1}, named(tree.symbol(nodes[node].symbol))};
    table.rows.push_back(std::move(row));
    descend(node);
  }
  for (uint32_t n = 1; n < nodes.size(); ++n)
    table.left_out += !is_shown[n] && value(sums[n], metric) > 0;
  answer.tables.push_back(std::move(table));
  add_notes(tree, metric, &answer);
  return answer;
}

}  // namespace malloscope::analyze
