// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <optional>

#include "analyze/numbers.h"
#include "analyze/profile_views.h"
#include "analyze/row_groups.h"

namespace malloscope::analyze {
namespace {

using Kind = Column::Kind;

const char* group_title(By by) {
  switch (by) {
    case By::kSite:
      return "site";
    case By::kFile:
      return "file";
    case By::kModule:
      return "module";
    case By::kThread:
      return "thread";
    case By::kPhase:
      return "phase";
    case By::kSize:
      return "size";
    case By::kType:
      return "type";
    case By::kFunction:
      break;
  }
  return "function";
}

}  // namespace

Answer by_group(Reading* reading, const Query& query, const ProfileOptions& options) {
  RowGroups rows(reading, query, options.by);
  struct Sum {
    Amounts amounts;
    uint64_t stacks = 0;
  };
  std::vector<Sum> sums;
  Amounts total;
  DistinctStacks stacks(reading->accounts().tally().options());
  reading->for_each_row([&](const Row& row) {
    std::optional<size_t> group = rows.of(row);
    if (!group) return;
    if (*group >= sums.size()) sums.resize(*group + 1);
    sums[*group].amounts += row.amounts;
    sums[*group].stacks += value(row.amounts, options.metric) > 0 && stacks.is_new(*group, row);
    total += row.amounts;
  });
  std::vector<RowGroups::Group> groups = rows.take();

  Answer answer;
  answer.headline = headline(*reading, total, options.metric);
  Table table;
  bool is_site = options.by == By::kSite;
  table.key = fmt::format("{}s", group_title(options.by));
  table.columns = profile_columns(options.metric);
  table.columns.push_back({"stacks", "stacks", Kind::kCount});
  table.columns.push_back({is_site ? "frame" : group_title(options.by), group_title(options.by),
                           is_site ? Kind::kFrame : Kind::kText});
  uint64_t whole = value(total, options.metric);
  auto order = heaviest_first(
      groups.size(), [&](size_t i) { return value(sums[i].amounts, options.metric); },
      [&](size_t i) -> const std::string& {
        return is_site ? groups[i].site.function : groups[i].name;
      });
  if (options.by == By::kSize) {  // A histogram reads better from small to large.
    if (options.top > 0 && order.size() > options.top) {
      table.left_out = order.size() - options.top;
      order.resize(options.top);
    }
    std::sort(order.begin(), order.end(),
              [&](size_t a, size_t b) { return groups[a].order < groups[b].order; });
  }
  for (size_t i : order) {
    RowGroups::Group& group = groups[i];
    TableRow row;
    add_profile(sums[i].amounts, whole, options.metric, &row.cells);
    row.cells.emplace_back(sums[i].stacks);
    if (is_site)
      row.cells.emplace_back(std::move(group.site));
    else
      row.cells.emplace_back(std::move(group.name));
    table.rows.push_back(std::move(row));
  }
  answer.tables.push_back(std::move(table));
  uint64_t unknown = 0;
  for (size_t i = 0; i < groups.size(); ++i)
    if (groups[i].unknown) unknown += value(sums[i].amounts, options.metric);
  if (unknown > 0)
    answer.notes.push_back(fmt::format(
        "Of {} the type is not known: neither malloc nor a plain new-expression tells it.",
        percent_text(unknown, whole)));
  return answer;
}

}  // namespace malloscope::analyze
