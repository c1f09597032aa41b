// SPDX-License-Identifier: Apache-2.0
// api/sites: the code to blame, or whatever else rows are put together by; api/sparks: how the
// heaviest went through time; api/stacks: the stacks of one.

#include <algorithm>
#include <map>
#include <numeric>
#include <string_view>

#include "analyze/index_curves.h"
#include "analyze/view.h"
#include "serve/answers.h"
#include "serve/columns.h"
#include "serve/names.h"

namespace malloscope::serve {
namespace {

using analyze::Amounts;
using analyze::By;
using analyze::Explorer;
using analyze::NamedFrame;

constexpr size_t kMostRows = 2'000, kMostStacks = 50, kSparks = 64;

const std::map<std::string, By> kGroups = {
    {"function", By::kFunction}, {"site", By::kSite}, {"file", By::kFile}, {"module", By::kModule},
    {"thread", By::kThread},     {"size", By::kSize}, {"type", By::kType}};

struct Listed {
  struct Row {
    uint32_t id = 0;
    NamedFrame name;
    Amounts amounts, before;
    uint64_t cumulative = 0;
    uint64_t stacks = 0;
  };
  std::vector<Row> rows;  // All, heaviest first.
  Amounts total;
  bool compared = false;
};

NamedFrame plain_name(std::string name) {
  NamedFrame frame;
  frame.function = std::move(name);
  return frame;
}

// By function: what each asked for itself, and with all it called; a recursive one counts once.
void list_functions(const Explorer& explorer, const Explorer::Tree& tree,
                    const Explorer::Amounted& now, const Explorer::Amounted* before,
                    analyze::Metric metric, Listed* listed) {
  const analyze::CallTree& calls = *tree.tree;
  std::vector<Listed::Row> rows(calls.symbols());
  for (size_t row = 0; row < tree.node_of_row.size(); ++row) {
    uint32_t node = tree.node_of_row[row];
    if (node == Explorer::kNobody) continue;
    Listed::Row& function = rows[static_cast<uint32_t>(calls.nodes()[node].symbol)];
    function.amounts += now.at(row, metric);
    function.stacks += now.value(row, metric) > 0;
    if (before) function.before += before->at(row, metric);
  }
  analyze::NodeValues values = explorer.values(tree, now, metric);
  std::vector<uint32_t> open(calls.symbols());
  struct Visit {
    uint32_t node;
    bool done;
  };
  std::vector<Visit> visits = {{analyze::CallTree::kRoot, false}};
  while (!visits.empty()) {
    auto [node, done] = visits.back();
    visits.pop_back();
    auto symbol = static_cast<uint32_t>(calls.nodes()[node].symbol);
    bool is_root = node == analyze::CallTree::kRoot;
    if (done) {
      --open[symbol];
      continue;
    }
    if (!is_root) {
      if (open[symbol]++ == 0) rows[symbol].cumulative += values.total(node);
      visits.push_back({node, true});
    }
    for (uint32_t child : tree.children->of(node))
      if (values.total(child) > 0) visits.push_back({child, false});
  }
  for (uint32_t i = 0; i < rows.size(); ++i) {
    rows[i].id = i;
    rows[i].name = analyze::named(calls.symbol(analyze::SymbolId{i}));
  }
  listed->rows = std::move(rows);
}

void list_groups(const Explorer::Groups& groups, const Explorer::Amounted& now,
                 const Explorer::Amounted* before, By by, analyze::Metric metric, Listed* listed) {
  listed->rows.resize(groups.groups.size());
  for (uint32_t i = 0; i < listed->rows.size(); ++i) {
    listed->rows[i].id = i;
    const analyze::RowGroups::Group& group = groups.groups[i];
    listed->rows[i].name = by == By::kSite ? group.site : plain_name(group.name);
  }
  for (size_t row = 0; row < groups.group_of_row.size(); ++row) {
    if (groups.group_of_row[row] == Explorer::kNobody) continue;
    Listed::Row& group = listed->rows[groups.group_of_row[row]];
    group.amounts += now.at(row, metric);
    group.stacks += now.value(row, metric) > 0;
    if (before) group.before += before->at(row, metric);
  }
}

// By thread or size, which only a report tells.
Result<void> list_report(const Context& context, const Explorer::Question& question, By by,
                         Jobs::Running* job, Listed* listed) {
  analyze::Query query = question.query;
  query.tally.by_thread |= by == By::kThread;
  query.tally.by_size |= by == By::kSize;
  auto progress = [&](double share) { job->show("reading events", share); };
  auto reading = analyze::Reading::open(context.path, query, {progress, {}, {}});
  if (!reading) return std::unexpected(reading.error());
  analyze::RowGroups groups(reading->get(), query, by);
  analyze::DistinctStacks stacks((*reading)->accounts().tally().options());
  (*reading)->for_each_row([&](const analyze::Row& row) {
    std::optional<size_t> group = groups.of(row);
    if (!group) return;
    if (*group >= listed->rows.size()) listed->rows.resize(*group + 1);
    listed->rows[*group].amounts += row.amounts;
    listed->rows[*group].stacks +=
        value(row.amounts, question.metric) > 0 && stacks.is_new(*group, row);
    listed->total += row.amounts;
  });
  std::vector<analyze::RowGroups::Group> named = groups.take();
  for (uint32_t i = 0; i < listed->rows.size(); ++i) {
    listed->rows[i].id = i;
    listed->rows[i].name = plain_name(named[i].name);
  }
  return {};
}

Result<Listed> list(const Context& context, const Parameters& parameters,
                    const Explorer::Question& question, By by, Jobs::Running* job) {
  Listed listed;
  auto progress = [&](std::string_view what, double share) { job->show(what, share); };
  Explorer& explorer = context.explorer;
  if (by == By::kThread || by == By::kSize) {
    if (Result<void> good = list_report(context, question, by, job, &listed); !good)
      return std::unexpected(good.error());
  } else {
    Result<Explorer::Amounting> now = explorer.amounts(question, Explorer::Wanted::kAll, progress);
    if (!now) return std::unexpected(now.error());
    auto before_question = question_before(parameters, context.names);
    if (!before_question) return std::unexpected(before_question.error());
    Explorer::Amounting before;
    if (*before_question) {
      Result<Explorer::Amounting> then =
          explorer.amounts(**before_question, Explorer::Wanted::kAll, progress);
      if (!then) return std::unexpected(then.error());
      before = *then;
      listed.compared = true;
    }
    listed.total = (*now)->total;
    if (by == By::kFunction)
      list_functions(explorer, *explorer.tree(question), **now, before.get(), question.metric,
                     &listed);
    else
      list_groups(*explorer.groups(question, by), **now, before.get(), by, question.metric,
                  &listed);
  }
  auto weight = [&](const Listed::Row& row) {
    return std::max(
        {value(row.amounts, question.metric), value(row.before, question.metric), row.cumulative});
  };
  std::erase_if(listed.rows, [&](const Listed::Row& row) { return weight(row) == 0; });
  std::ranges::sort(listed.rows, [&](const Listed::Row& a, const Listed::Row& b) {
    uint64_t x = value(a.amounts, question.metric), y = value(b.amounts, question.metric);
    if (x != y) return x > y;
    if (weight(a) != weight(b)) return weight(a) > weight(b);
    return a.name.function < b.name.function;
  });
  return listed;
}

// Those that do not fit become one, so that sums hold. Returns how many those are.
size_t fold(size_t most, Listed* listed) {
  if (listed->rows.size() <= most) return 0;
  size_t left_out = listed->rows.size() - most;
  Listed::Row others;
  others.id = Explorer::kNobody;
  others.name = plain_name("others");
  for (size_t i = most; i < listed->rows.size(); ++i) {
    others.amounts += listed->rows[i].amounts;
    others.before += listed->rows[i].before;
    others.stacks += listed->rows[i].stacks;
  }
  listed->rows.resize(most);
  listed->rows.push_back(std::move(others));
  return left_out;
}

}  // namespace

Result<std::string> sites_answer(const Context& context, const Parameters& parameters) {
  Result<Explorer::Question> question = question_of(parameters, context.names);
  if (!question) return std::unexpected(question.error());
  auto by = kGroups.find(word(parameters, "by", "site"));
  if (by == kGroups.end()) return fail_usage("by= is none of site, function, file, module, ...");
  Result<uint64_t> most = number(parameters, "most", kMostRows);
  if (!most) return std::unexpected(most.error());
  Jobs::Running job(&context.jobs, "counting");
  Result<Listed> listed = list(context, parameters, *question, by->second, &job);
  if (!listed) return std::unexpected(listed.error());
  size_t left_out = fold(std::clamp<size_t>(*most, 1, 100'000), &*listed);

  Columns columns;
  std::vector<uint32_t> ids;
  for (const Listed::Row& row : listed->rows) ids.push_back(row.id);
  columns.add("id", ids);
  auto column = [&](const char* name, auto&& amount) {
    std::vector<double> values;
    for (const Listed::Row& row : listed->rows) values.push_back(static_cast<double>(amount(row)));
    columns.add(name, values);
  };
  using Row = Listed::Row;
  column("value", [&](const Row& r) { return value(r.amounts, question->metric); });
  column("allocations", [](const Row& r) { return r.amounts.allocations; });
  column("reallocations", [](const Row& r) { return r.amounts.reallocations; });
  column("allocated", [](const Row& r) { return r.amounts.allocated_bytes; });
  column("live", [](const Row& r) { return r.amounts.live_bytes; });
  column("live_blocks", [](const Row& r) { return r.amounts.live_blocks; });
  column("peak", [](const Row& r) { return r.amounts.peak_bytes; });
  column("temporary", [](const Row& r) { return r.amounts.temporary; });
  column("stacks", [](const Row& r) { return r.stacks; });
  if (by->second == By::kFunction) column("cumulative", [](const Row& r) { return r.cumulative; });
  if (listed->compared)
    column("before", [&](const Row& r) { return value(r.before, question->metric); });
  return columns.finish([&](output::JsonWriter* json) {
    write_metric_members(question->metric, json);
    json->member("by", by->first);
    json->member("rows", listed->rows.size());
    json->member("left_out", left_out);
    json->member("total", value(listed->total, question->metric));
    json->key("totals").begin_object();
    json->member("allocations", listed->total.allocations);
    json->member("reallocations", listed->total.reallocations);
    json->member("allocated_bytes", listed->total.allocated_bytes);
    json->member("live_bytes", listed->total.live_bytes);
    json->member("live_blocks", listed->total.live_blocks);
    json->member("peak_bytes", listed->total.peak_bytes);
    json->member("temporary", listed->total.temporary);
    json->end();
    NamesWriter names(json, "names");
    for (const Row& row : listed->rows) names.add(row.id, row.name);
    names.finish();
  });
}

Result<std::string> sparks_answer(const Context& context, const Parameters& parameters) {
  Result<Explorer::Question> question = question_of(parameters, context.names);
  if (!question) return std::unexpected(question.error());
  Result<uint64_t> most = number(parameters, "most", kMostRows);
  if (!most) return std::unexpected(most.error());
  Jobs::Running job(&context.jobs, "drawing the sites through time");
  Result<Listed> listed = list(context, parameters, *question, By::kSite, &job);
  if (!listed) return std::unexpected(listed.error());
  if (listed->rows.size() > *most) listed->rows.resize(*most);
  std::vector<uint32_t> ids,
      place_of(context.explorer.groups(*question, By::kSite)->groups.size(), Explorer::kNobody);
  for (const Listed::Row& row : listed->rows) {
    place_of[row.id] = static_cast<uint32_t>(ids.size());
    ids.push_back(row.id);
  }
  Explorer::Grouping groups = context.explorer.groups(*question, By::kSite);
  analyze::IndexCurves curves;
  bool known = context.explorer.curves(
      *question, ids.size(),
      [&](size_t row) {
        uint32_t group = groups->group_of_row[row];
        return group == Explorer::kNobody ? group : place_of[group];
      },
      &curves);
  std::vector<double> sparks;
  for (size_t i = 0; known && i < ids.size(); ++i)
    for (size_t k = 0; k < kSparks; ++k) {
      // The highest of its part, so that no peak is lost.
      const uint64_t* curve = curves.of(i);
      size_t from = k * analyze::kSlices / kSparks, to = (k + 1) * analyze::kSlices / kSparks;
      sparks.push_back(static_cast<double>(*std::max_element(curve + from, curve + to)));
    }
  if (!known) ids.clear();
  Columns columns;
  columns.add("id", ids);
  columns.add("spark", sparks);
  return columns.finish([&](output::JsonWriter* json) {
    json->member("points", kSparks);
    json->member("rows", ids.size());
  });
}

Result<std::string> stacks_answer(const Context& context, const Parameters& parameters) {
  Result<Explorer::Question> question = question_of(parameters, context.names);
  if (!question) return std::unexpected(question.error());
  Result<uint64_t> site = number(parameters, "site", Explorer::kNobody);
  if (!site) return std::unexpected(site.error());
  Jobs::Running job(&context.jobs, "looking for stacks");
  auto progress = [&](std::string_view what, double share) { job.show(what, share); };
  Explorer& explorer = context.explorer;
  Result<Explorer::Amounting> amounts =
      explorer.amounts(*question, Explorer::Wanted::kAll, progress);
  if (!amounts) return std::unexpected(amounts.error());
  Explorer::Grouping groups = explorer.groups(*question, By::kSite);
  std::vector<uint32_t> rows;
  auto amount = [&](uint32_t row) { return (*amounts)->value(row, question->metric); };
  for (uint32_t row = 0; row < groups->group_of_row.size(); ++row)
    if (groups->group_of_row[row] == *site && amount(row) > 0) rows.push_back(row);
  size_t kept = std::min(rows.size(), kMostStacks);
  std::ranges::partial_sort(rows, rows.begin() + static_cast<ptrdiff_t>(kept),
                            [&](uint32_t a, uint32_t b) {
                              return amount(a) != amount(b) ? amount(a) > amount(b) : a < b;
                            });

  output::StringSink sink;
  output::JsonWriter json(&sink);
  json.begin_object();
  write_metric_members(question->metric, &json);
  json.member("left_out", rows.size() - kept);
  json.key("stacks").begin_array();
  analyze::Query shown = question->query;
  shown.threads.clear();
  analyze::SiteIndex names(&explorer.reading(), shown);
  for (size_t i = 0; i < kept; ++i) {
    const Explorer::RowId& id = explorer.rows()[rows[i]];
    Amounts of = (*amounts)->at(rows[i], question->metric);
    json.begin_object();
    json.member("value", amount(rows[i]));
    json.member("allocations", of.allocations);
    json.member("allocated", of.allocated_bytes);
    json.member("live", of.live_bytes);
    json.member("peak", of.peak_bytes);
    json.key("frames").begin_array();
    for (const NamedFrame& frame : names.stack(id.image, id.stack, ThreadId::kNone))
      write_frame(frame, &json);
    json.end();
    json.end();
  }
  json.end();
  json.end();
  return sink.text();
}

}  // namespace malloscope::serve
