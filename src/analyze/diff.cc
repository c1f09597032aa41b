// SPDX-License-Identifier: Apache-2.0
#include "analyze/diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "analyze/call_graph.h"
#include "analyze/counterparts.h"
#include "analyze/numbers.h"
#include "analyze/view.h"
#include "symbols/name_rules.h"

namespace malloscope::analyze {
namespace {

using Kind = Column::Kind;

struct Item {
  NamedFrame frame;
  std::string full;
  Amounts amounts;
};

struct Pair {
  const Item* before = nullptr;
  const Item* after = nullptr;
};

std::vector<Item> sites_of(Reading* reading, const Query& query) {
  RowSelector selector(reading, query);
  std::map<std::string, Item> found;
  std::vector<FrameId> shown;
  reading->accounts().tally().for_each_row([&](const Row& row) {
    if (!selector.select(row, &shown)) return;
    static const Frame kHidden = {"[hidden]", "", 0, "", false};
    const Frame& site = shown.empty() ? kHidden : reading->frames().frame(shown.front());
    std::string key =
        site.function + '\0' + site.module + '\0' + site.file + '\0' + std::to_string(site.line);
    auto [place, fresh] = found.try_emplace(std::move(key));
    Item& item = place->second;
    if (fresh) {
      item.frame = {query.full_names ? site.function : symbols::short_name(site.function),
                    site.file,
                    site.line,
                    site.module,
                    site.function,
                    site.column};
      item.full = site.function;
    }
    item.amounts += row.amounts;
  });
  std::vector<Item> items;
  for (auto& [key, item] : found) items.push_back(std::move(item));
  return items;
}

std::vector<Item> functions_of(Reading* reading, const Query& query) {
  CallTree tree(reading, query);
  CallGraph graph(tree);
  std::vector<Item> items;
  for (const GraphFunction& f : graph.functions)
    items.push_back({named(tree.symbol(f.symbol)), tree.symbol(f.symbol).full, f.cumulative});
  return items;
}

std::vector<Pair> pairs_of(const std::vector<Item>& before, const std::vector<Item>& after,
                           const Counterparts& names) {
  auto keys = [&](const std::vector<Item>& items) {
    std::vector<SiteKey> result;
    for (const Item& item : items)
      result.push_back({names.function(item.full, item.frame.module), item.frame.line});
    return result;
  };
  std::vector<Pair> pairs;
  for (const SitePair& pair : matched(keys(before), keys(after)))
    pairs.push_back({pair.before ? &before[*pair.before] : nullptr,
                     pair.after ? &after[*pair.after] : nullptr});
  return pairs;
}

// The amounts of one side, for each of its units if there are any: then they are no whole numbers.
struct Side {
  double units;
  bool rates;

  double rate(uint64_t amount) const { return static_cast<double>(amount) / units; }
  Cell cell(uint64_t amount) const { return rates ? Cell(Rate{rate(amount)}) : Cell(amount); }
  void add(const Item* item, Metric metric, std::vector<Cell>* cells) const {
    std::vector<Cell> amounts;
    add_amounts(item ? item->amounts : Amounts(), metric, &amounts);
    for (const Cell& amount : amounts) cells->push_back(cell(std::get<uint64_t>(amount)));
  }
};

std::string rate_text(double rate, Metric metric, bool rates) {
  bool bytes = metric_kind(metric) == Kind::kBytes;
  if (metric_kind(metric) == Kind::kDuration) return duration_text(static_cast<uint64_t>(rate));
  if (rates) return bytes ? bytes_rate_text(rate) : analyze::rate_text(rate);
  auto amount = static_cast<uint64_t>(rate);
  return bytes ? bytes_text(amount) : grouped(amount);
}

const char* metric_words(Metric metric) {
  switch (metric) {
    case Metric::kPeak:
      return "at the peak";
    case Metric::kLive:
      return "live";
    case Metric::kAllocated:
      return "allocated";
    case Metric::kTemporary:
      return "temporary allocations";
    case Metric::kAllocations:
      return "allocations";
    case Metric::kCalls:
      return "calls that allocated";
    case Metric::kLifetime:
      return "lived";
    case Metric::kOverhead:
      return "beyond what was asked for";
    case Metric::kAllocatorTime:
      return "in the allocator";
    case Metric::kCpu:
      return "of CPU time";
  }
  return "";
}

}  // namespace

Answer diff(Reading* before, const Query& before_query, Reading* after, const Query& after_query,
            const DiffOptions& options) {
  Metric metric = options.metric;
  bool by_function = options.by == By::kFunction;
  std::vector<Item> old_items =
      by_function ? functions_of(before, before_query) : sites_of(before, before_query);
  std::vector<Item> new_items =
      by_function ? functions_of(after, after_query) : sites_of(after, after_query);

  struct Change {
    Pair pair;
    uint64_t was, is;
    double by;  // For each unit.
  };
  bool rates = options.before_units != 1 || options.after_units != 1;
  Side old_side = {options.before_units, rates}, new_side = {options.after_units, rates};
  std::vector<Change> changes;
  uint64_t same = 0, counts[4] = {};
  uint64_t old_sum = 0, new_sum = 0;
  for (const Pair& pair : pairs_of(old_items, new_items, Counterparts(*before, *after))) {
    Change c = {pair, 0, 0, 0};
    if (pair.before) c.was = value(pair.before->amounts, metric);
    if (pair.after) c.is = value(pair.after->amounts, metric);
    old_sum += c.was, new_sum += c.is;
    c.by = new_side.rate(c.is) - old_side.rate(c.was);
    if (c.was == 0 && c.is == 0) continue;
    if (c.by == 0) {
      ++same;
      if (options.unchanged) changes.push_back(c);
      continue;
    }
    ++counts[c.was == 0 ? 0 : c.is == 0 ? 3 : c.by > 0 ? 1 : 2];
    changes.push_back(c);
  }
  // Growth first, the largest change on top of each half.
  std::sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
    if ((a.by > 0) != (b.by > 0)) return a.by > 0;
    if ((a.by == 0) != (b.by == 0)) return b.by == 0;
    if (a.by != b.by) return a.by > 0 ? a.by > b.by : a.by < b.by;
    const Item* x = a.pair.after ? a.pair.after : a.pair.before;
    const Item* y = b.pair.after ? b.pair.after : b.pair.before;
    return std::tie(x->full, x->frame.line) < std::tie(y->full, y->frame.line);
  });

  Answer answer;
  auto total = [&](const Reading& reading, uint64_t listed) {
    if (!by_function) return listed;
    // Functions contain each other; the whole is what the reading says.
    Amounts sum;
    reading.accounts().tally().for_each_row([&](const Row& row) { sum += row.amounts; });
    return value(sum, metric);
  };
  double was = old_side.rate(total(*before, old_sum)), is = new_side.rate(total(*after, new_sum));
  auto text = [&](double rate) { return rate_text(rate, metric, rates); };
  answer.headline = fmt::format("{} {}, {} before: {}{}", text(is), metric_words(metric), text(was),
                                is == was  ? "no change"
                                : is > was ? "+"
                                           : "-",
                                is == was ? "" : text(std::abs(is - was)));
  if (is != was && was > 0) {
    double percent = 100 * (is / was - 1);
    answer.headline +=
        std::abs(percent) < 0.1 ? " (less than 0.1 %)" : fmt::format(" ({:+.1f} %)", percent);
  }
  add_totals(*before, &answer, "totals.before", options.before_units);
  add_totals(*after, &answer, "totals.after", options.after_units);

  Table table;
  table.key = by_function ? "functions" : "sites";
  table.columns = {{"change", "change", metric_kind(metric)},
                   {"status", "", Kind::kText},
                   {"was", "before", metric_kind(metric)},
                   {"is", "after", metric_kind(metric)},
                   {"frame", by_function ? "function" : "site", Kind::kFrame}};
  for (const char* side : {"before", "after"})
    for (Column& column : amount_columns(metric))
      table.columns.push_back({fmt::format("{}.{}", side, column.key),
                               fmt::format("{} {}", side, column.title), column.kind, false});
  for (const Change& c : changes) {
    const Item& item = c.pair.after ? *c.pair.after : *c.pair.before;
    TableRow row;
    row.cells = {rates ? Cell(Rate{c.by, true})
                       : Cell(static_cast<int64_t>(c.is) - static_cast<int64_t>(c.was)),
                 std::string(c.by == 0    ? "same"
                             : c.was == 0 ? "new"
                             : c.is == 0  ? "gone"
                             : c.by > 0   ? "grown"
                                          : "shrunk"),
                 old_side.cell(c.was), new_side.cell(c.is), item.frame};
    old_side.add(c.pair.before, metric, &row.cells);
    new_side.add(c.pair.after, metric, &row.cells);
    table.rows.push_back(std::move(row));
  }
  answer.tables.push_back(std::move(table));
  answer.notes.push_back(fmt::format("{} new, {} grown, {} shrunk, {} gone, {} unchanged.",
                                     counts[0], counts[1], counts[2], counts[3], same));
  return answer;
}

}  // namespace malloscope::analyze
