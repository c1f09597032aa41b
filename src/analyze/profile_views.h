// SPDX-License-Identifier: Apache-2.0
// Views of a call tree: by function, callers and callees, as a tree, by stack, and by
// whatever else a row belongs to (site, file, module, thread, size, type).

#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/answer.h"
#include "analyze/call_graph.h"
#include "analyze/call_tree.h"
#include "analyze/query.h"
#include "analyze/row_groups.h"
#include "analyze/sites.h"

namespace malloscope::analyze {

struct ProfileOptions {
  Metric metric = Metric::kPeak;
  By by = By::kFunction;
  size_t top = 0;  // What the reader will see, where less can be computed for it; 0: all.
  // Of functions: by what was asked for below them too. That begins with _start and main, which
  // everything is below; so by default what they asked for themselves counts first.
  bool by_cumulative = false;
  // Of a tree: how those with one caller are ordered.
  enum class Siblings { kCumulative, kSelf, kName };
  Siblings siblings = Siblings::kCumulative;
};

// Makes the query one that can tell the metric. What is live after a --from is what was allocated
// since: whoever names a beginning asks what came up after it, as in leaks.
void ask_for(Metric metric, Query* query);
// An error if the metric cannot be put together so, or of such a part.
Result<void> suits(Metric metric, By by, const Query& query);
// An error, with what to do, if the program was recorded without it.
Result<void> recorded(Metric metric, const Reading& reading);

// Self and cumulative, heaviest self first.
Answer by_function(Reading* reading, const Query& query, const ProfileOptions& options);
// Each function between those that called it and those that it called.
Answer callers_and_callees(Reading* reading, const Query& query, const ProfileOptions& options);
// The tree from the root, heaviest first; of a `top` heaviest nodes, others as one line where they
// would be.
Answer as_tree(Reading* reading, const Query& query, const ProfileOptions& options);
// The heaviest stacks, whole.
Answer by_stack(Reading* reading, const Query& query, const ProfileOptions& options);
// By site, file, module, thread, size or type: the sums of the rows that belong together.
Answer by_group(Reading* reading, const Query& query, const ProfileOptions& options);

// "Peak: 68.8 MiB ..." for the top of every profile.
std::string headline(const Reading& reading, const Amounts& total, Metric metric);
// The columns that hold Amounts, those of `metric` shown; and the cells under them.
std::vector<Column> amount_columns(Metric metric);
void add_amounts(const Amounts& amounts, Metric metric, std::vector<Cell>* cells);
// The metric, its share of the whole, and the other amounts.
std::vector<Column> profile_columns(Metric metric);
void add_profile(const Amounts& amounts, uint64_t whole, Metric metric, std::vector<Cell>* cells);
std::string_view metric_name(Metric metric);  // As on the command line.
std::string_view metric_help(Metric metric);  // What it is, for somebody who wonders.
std::string metric_key(Metric metric);        // As in JSON.
// All, by name; `counted`: only those that are in the amounts of every reading, and CPU time.
std::map<std::string, Metric> metrics(bool counted = false);
Column::Kind metric_kind(Metric metric);
NamedFrame named(const Symbol& symbol);
// What the filters left out, and stacks without an outer end.
void add_notes(const CallTree& tree, Metric metric, Answer* answer);

// Indices of the functions with a value, in the order of `options`.
std::vector<size_t> ordered(const CallTree& tree, const CallGraph& graph,
                            const ProfileOptions& options);

// Indices of `n` things with a value, heaviest first, ties by `name`.
template <typename Value, typename Name>
std::vector<size_t> heaviest_first(size_t n, Value&& value_of, Name&& name_of) {
  std::vector<size_t> order;
  for (size_t i = 0; i < n; ++i)
    if (value_of(i) > 0) order.push_back(i);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    if (value_of(a) != value_of(b)) return value_of(a) > value_of(b);
    return name_of(a) < name_of(b);
  });
  return order;
}

}  // namespace malloscope::analyze
