// SPDX-License-Identifier: Apache-2.0
// A function is the same if its name and the name of its library are (a rebuilt or
// moved library has another path, and after an upgrade another version number); of two
// recordings with one program each, the programs are the same whatever they are called.
//
// A site is a line of a function. Lines move when something above them is edited, all by
// the same distance: the one by which most lines of the function meet. What is left over
// then is matched in the order of the lines.

#include "analyze/diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <map>
#include <set>

#include "analyze/call_graph.h"
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

// "/opt/app-2/libfoo.so.1.2" -> "libfoo.so".
std::string library_name(const std::string& path) {
  std::string name = path.substr(path.rfind('/') + 1);
  size_t so = name.find(".so.");
  return so == std::string::npos ? name : name.substr(0, so + 3);
}

std::set<std::string> programs_of(const Reading& reading) {
  std::set<std::string> names;
  for (const trace::Image* image : reading.selected())
    names.insert(library_name(image->executable));
  return names;
}

// The program of `after` that has no namesake in `before`, and the one there that is taken for it.
struct Renamed {
  std::string before, after;
};
Renamed renamed_program(const Reading& before, const Reading& after) {
  std::set<std::string> old_ones = programs_of(before), new_ones = programs_of(after), gone, fresh;
  std::set_difference(old_ones.begin(), old_ones.end(), new_ones.begin(), new_ones.end(),
                      std::inserter(gone, gone.end()));
  std::set_difference(new_ones.begin(), new_ones.end(), old_ones.begin(), old_ones.end(),
                      std::inserter(fresh, fresh.end()));
  if (gone.size() != 1 || fresh.size() != 1) return {};
  return {*gone.begin(), *fresh.begin()};
}

std::string function_key(const Item& item, const Renamed& renamed) {
  std::string library = library_name(item.frame.module);
  if (library == renamed.after) library = renamed.before;
  return item.full + '\0' + library;
}

// By how many lines the sites of a function have moved.
int distance_of(const std::vector<const Item*>& before, const std::vector<const Item*>& after) {
  std::map<int, size_t> met;
  for (const Item* b : before)
    for (const Item* a : after) ++met[a->frame.line - b->frame.line];
  int best = 0;
  for (const auto& [distance, count] : met)
    if (count > met[best] || (count == met[best] && std::abs(distance) < std::abs(best)))
      best = distance;
  return best;
}

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

std::vector<Pair> matched(const std::vector<Item>& before, const std::vector<Item>& after,
                          const Renamed& renamed) {
  struct Sides {
    std::vector<const Item*> before, after;
  };
  std::map<std::string, Sides> by_function;
  for (const Item& item : before) by_function[function_key(item, renamed)].before.push_back(&item);
  for (const Item& item : after) by_function[function_key(item, renamed)].after.push_back(&item);

  std::vector<Pair> pairs;
  for (auto& [key, sides] : by_function) {
    std::vector<const Item*>& old_ones = sides.before;
    auto by_line = [](const Item* a, const Item* b) { return a->frame.line < b->frame.line; };
    std::sort(old_ones.begin(), old_ones.end(), by_line);
    std::sort(sides.after.begin(), sides.after.end(), by_line);
    std::vector<const Item*> fresh;
    int distance = distance_of(old_ones, sides.after);
    for (const Item* item : sides.after) {
      auto same = std::find_if(old_ones.begin(), old_ones.end(), [&](const Item* old) {
        return old->frame.line + distance == item->frame.line;
      });
      if (same == old_ones.end()) {
        fresh.push_back(item);
        continue;
      }
      pairs.push_back({*same, item});
      old_ones.erase(same);
    }
    size_t moved = std::min(old_ones.size(), fresh.size());
    for (size_t i = 0; i < moved; ++i) pairs.push_back({old_ones[i], fresh[i]});
    for (size_t i = moved; i < old_ones.size(); ++i) pairs.push_back({old_ones[i], nullptr});
    for (size_t i = moved; i < fresh.size(); ++i) pairs.push_back({nullptr, fresh[i]});
  }
  return pairs;
}

// The amounts of one side, for each of its units if there are any: then they are no whole numbers.
struct Side {
  double units;
  bool rates;

  double rate(uint64_t amount) const { return static_cast<double>(amount) / units; }
  Cell cell(uint64_t amount) const { return rates ? Cell(Rate{rate(amount)}) : Cell(amount); }
  void add(const Item* item, std::vector<Cell>* cells) const {
    std::vector<Cell> amounts;
    add_amounts(item ? item->amounts : Amounts(), &amounts);
    for (const Cell& amount : amounts) cells->push_back(cell(std::get<uint64_t>(amount)));
  }
};

std::string rate_text(double rate, Metric metric, bool rates) {
  bool bytes = metric_kind(metric) == Kind::kBytes;
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
  for (const Pair& pair : matched(old_items, new_items, renamed_program(*before, *after))) {
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
    old_side.add(c.pair.before, &row.cells);
    new_side.add(c.pair.after, &row.cells);
    table.rows.push_back(std::move(row));
  }
  answer.tables.push_back(std::move(table));
  answer.notes.push_back(fmt::format("{} new, {} grown, {} shrunk, {} gone, {} unchanged.",
                                     counts[0], counts[1], counts[2], counts[3], same));
  return answer;
}

}  // namespace malloscope::analyze
