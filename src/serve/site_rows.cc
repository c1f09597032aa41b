// SPDX-License-Identifier: Apache-2.0
#include "serve/site_rows.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace malloscope::serve {
namespace {

using analyze::By;
using analyze::Explorer;
using analyze::NamedFrame;

NamedFrame plain_name(std::string name) {
  NamedFrame frame;
  frame.function = std::move(name);
  return frame;
}

// By function: what each asked for itself, and with all it called; a recursive one counts once.
void list_functions(const Explorer& explorer, const Explorer::Tree& tree,
                    const Explorer::Amounted& now, const Explorer::Amounted* before,
                    analyze::Metric metric, Listed* listed) {
  const analyze::FunctionTree& calls = *tree.tree;
  std::vector<Listed::Row> rows(calls.symbols());
  for (size_t row = 0; row < tree.node_of_row.size(); ++row) {
    uint32_t node = tree.node_of_row[row];
    if (node == Explorer::kNobody) continue;
    Listed::Row& function = rows[static_cast<uint32_t>(calls.nodes()[node].symbol)];
    function.amounts += now.at(row, metric);
    if (before) function.before += before->at(row, metric);
  }
  now.for_each_value(metric, [&](size_t row, uint64_t value) {
    uint32_t node = tree.node_of_row[row];
    if (value > 0 && node != Explorer::kNobody)
      ++rows[static_cast<uint32_t>(calls.nodes()[node].symbol)].stacks;
  });
  analyze::NodeValues values = explorer.values(tree, now, metric);
  std::vector<uint32_t> open(calls.symbols());
  struct Visit {
    uint32_t node;
    bool done;
  };
  std::vector<Visit> visits = {{analyze::FunctionTree::kRoot, false}};
  while (!visits.empty()) {
    auto [node, done] = visits.back();
    visits.pop_back();
    auto symbol = static_cast<uint32_t>(calls.nodes()[node].symbol);
    bool is_root = node == analyze::FunctionTree::kRoot;
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
  auto group_of = [&](size_t row) { return groups.group_of_row[row]; };
  auto add = [&](const Explorer::Amounted& amounts, auto&& part) {
    amounts.add_up(metric, groups.groups.size(), group_of,
                   [&](size_t group, const analyze::Amounts& sum) { part(group) += sum; });
  };
  add(now, [&](size_t group) -> analyze::Amounts& { return listed->rows[group].amounts; });
  now.for_each_value(metric, [&](size_t row, uint64_t value) {
    if (value > 0 && group_of(row) != Explorer::kNobody) ++listed->rows[group_of(row)].stacks;
  });
  if (before)
    add(*before, [&](size_t group) -> analyze::Amounts& { return listed->rows[group].before; });
}

void name_rows(std::vector<analyze::RowGroups::Group> groups, Listed* listed) {
  for (uint32_t i = 0; i < listed->rows.size(); ++i) {
    listed->rows[i].id = i;
    listed->rows[i].name = plain_name(std::move(groups[i].name));
  }
}

// By thread, phase or size, from the index. False: it does not know.
bool list_strands(const Context& context, const Explorer::Question& question, By by,
                  Listed* listed) {
  Explorer& explorer = context.explorer;
  analyze::Query query = question.query;
  query.frames = {};  // Which stacks are meant the explorer knows.
  analyze::RowGroups groups(&explorer.reading(), query, by);
  // All rows of a strand and a size class are of one group.
  using Kind = std::tuple<ImageId, analyze::StrandId, unsigned>;
  std::map<Kind, std::optional<size_t>> group_of;
  std::vector<std::vector<bool>> met;  // By group and stack.
  bool known = explorer.for_each_row(question, [&](const analyze::Row& row) {
    auto [kind, fresh] = group_of.try_emplace({row.image, row.strand, row.size_class});
    if (fresh) kind->second = groups.of(row);
    if (!kind->second) return;
    size_t group = *kind->second;
    if (group >= listed->rows.size()) {
      listed->rows.resize(group + 1);
      met.resize(group + 1);
    }
    listed->rows[group].amounts += row.amounts;
    listed->total += row.amounts;
    if (value(row.amounts, question.metric) == 0) return;
    met[group].resize(explorer.rows().size());
    std::vector<bool>::reference is_met = met[group][explorer.row_of(row.image, row.stack)];
    listed->rows[group].stacks += !is_met;
    is_met = true;
  });
  name_rows(groups.take(), listed);
  if (!known) *listed = {};
  return known;
}

// The same, from samples or events if it has to be.
Result<void> list_report(const Context& context, Explorer::Question question, By by,
                         Jobs::Running* job, Listed* listed) {
  analyze::Query& query = question.query;
  query.tally.by_thread |= by == By::kThread;
  query.tally.by_phase |= by == By::kPhase;
  query.tally.by_size |= by == By::kSize;
  auto add = [&](analyze::Reading* reading) {
    analyze::RowGroups groups(reading, query, by);
    analyze::DistinctStacks stacks(reading->accounts().tally().options());
    reading->for_each_row([&](const analyze::Row& row) {
      std::optional<size_t> group = groups.of(row);
      if (!group) return;
      if (*group >= listed->rows.size()) listed->rows.resize(*group + 1);
      listed->rows[*group].amounts += row.amounts;
      listed->rows[*group].stacks +=
          value(row.amounts, question.metric) > 0 && stacks.is_new(*group, row);
      listed->total += row.amounts;
    });
    name_rows(groups.take(), listed);
  };
  if (query.tally.cpu ? context.explorer.with_cpu(query, add)
                      : list_strands(context, question, by, listed))
    return {};
  auto progress = [&](double share) { job->show("reading events", share); };
  auto reading = analyze::Reading::open(context.path, query, {progress, {}, {}});
  if (!reading) return std::unexpected(reading.error());
  add(reading->get());
  return {};
}

// What a row is known by in both recordings.
std::string key_in_both(const analyze::Counterparts& names, const NamedFrame& name, By by) {
  if (by == By::kSite || by == By::kFunction)
    return names.function(name.full.empty() ? name.function : name.full, name.module);
  return by == By::kModule ? names.function("", name.function) : name.function;
}

// To the rows of a recording what they were in the one before; what only that one has comes at the
// end.
void join(const analyze::Counterparts& names, By by, Listed before, Listed* after) {
  auto keys = [&](const Listed& listed) {
    std::vector<analyze::SiteKey> result;
    for (const Listed::Row& row : listed.rows)
      result.push_back({key_in_both(names, row.name, by), by == By::kSite ? row.name.line : 0});
    return result;
  };
  for (const analyze::SitePair& pair : matched(keys(before), keys(*after))) {
    if (!pair.before) continue;
    Listed::Row& was = before.rows[*pair.before];
    if (pair.after) {
      after->rows[*pair.after].before += was.amounts;
      continue;
    }
    Listed::Row gone;
    gone.id = was.id == Explorer::kNobody ? was.id : was.id + kFirstOfBase;
    gone.name = std::move(was.name);
    gone.before = was.amounts;
    after->rows.push_back(std::move(gone));
  }
  after->compared = true;
}

}  // namespace

const std::map<std::string, By>& row_groups() {
  static const std::map<std::string, By> kGroups = {
      {"function", By::kFunction}, {"site", By::kSite},     {"file", By::kFile},
      {"module", By::kModule},     {"thread", By::kThread}, {"phase", By::kPhase},
      {"size", By::kSize},         {"type", By::kType}};
  return kGroups;
}

// Of one recording, in no order.
static Result<Listed> list_own(const Context& context, const Parameters& parameters,
                               const Explorer::Question& question, By by, Jobs::Running* job) {
  Listed listed;
  auto progress = [&](std::string_view what, double share) { job->show(what, share); };
  Explorer& explorer = context.explorer;
  if (Result<void> good = suits(question.metric, by, question.query); !good)
    return std::unexpected(good.error());
  if (Result<void> there = recorded(question.metric, explorer.reading()); !there)
    return std::unexpected(there.error());
  if (by == By::kThread || by == By::kPhase || by == By::kSize) {
    if (Result<void> good = list_report(context, question, by, job, &listed); !good)
      return std::unexpected(good.error());
  } else {
    Result<Explorer::Amounting> now = explorer.amounts(question, Explorer::Wanted::kAll, progress);
    if (!now) return std::unexpected(now.error());
    Result<std::optional<Explorer::Question>> before_question = std::nullopt;
    if (word(parameters, "base").empty())
      before_question = question_before(parameters, context.names);
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
  return listed;
}

Result<Listed> list(const Context& context, const Parameters& parameters,
                    const Explorer::Question& question, By by, Jobs::Running* job) {
  Result<bool> since_base = is_since_base(context, parameters);
  if (!since_base) return std::unexpected(since_base.error());
  Result<Listed> own = list_own(context, parameters, question, by, job);
  if (!own) return own;
  Listed listed = std::move(*own);
  if (*since_base) {
    auto before_question = question_before(parameters, context.names);
    if (!before_question) return std::unexpected(before_question.error());
    Result<Listed> before = list_own(context.base(), parameters,
                                     *before_question ? **before_question : question, by, job);
    if (!before) return before;
    join(context.comparison->names(), by, std::move(*before), &listed);
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

}  // namespace malloscope::serve
