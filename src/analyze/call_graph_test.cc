// SPDX-License-Identifier: Apache-2.0
// The tree and the graph against sums made the slow way, stack by stack; and sums
// that must not change, whatever is hidden, folded or filtered.

#include "analyze/call_graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "analyze/made_up_for_test.h"
#include "analyze/profile_views.h"

namespace malloscope::analyze {
namespace {

bool same(const Amounts& a, const Amounts& b) {
  return a.allocations == b.allocations && a.reallocations == b.reallocations &&
         a.allocated_bytes == b.allocated_bytes && a.live_bytes == b.live_bytes &&
         a.live_blocks == b.live_blocks && a.temporary == b.temporary &&
         a.peak_bytes == b.peak_bytes;
}

// Of a tree's lines from `i` on that are as deep, "others" among them, before one that is less so.
uint64_t sum_below(const std::vector<TableRow>& rows, size_t i, unsigned depth) {
  uint64_t sum = 0;
  for (; i < rows.size() && rows[i].depth >= depth; ++i)
    if (rows[i].depth == depth) sum += std::get<uint64_t>(rows[i].cells[0]);
  return sum;
}

Amounts everything(const Reading& reading) {
  Amounts sum;
  reading.accounts().tally().for_each_row([&](const Row& row) { sum += row.amounts; });
  return sum;
}

Pattern pattern(const std::string& text) { return *Pattern::make(text, "--test"); }

TEST(CallGraph, AgreesWithTheSlowWay) {
  for (unsigned seed = 1; seed <= 5; ++seed) {
    ToyRecording toy(seed);
    auto reading = toy.read();
    CallTree tree(reading.get(), {}, false, /*fold_plumbing=*/false);
    CallGraph graph(tree);

    std::map<std::string, Amounts> self, all;
    std::map<std::pair<std::string, std::string>, Amounts> edges;
    reading->accounts().tally().for_each_row([&](const Row& row) {
      std::vector<std::string> names;
      for (int f : toy.stacks[raw(row.stack)]) names.push_back("f" + std::to_string(f));
      self[names[0]] += row.amounts;
      for (const std::string& name : std::set(names.begin(), names.end())) all[name] += row.amounts;
      std::set<std::pair<std::string, std::string>> met;
      for (size_t i = 0; i + 1 < names.size(); ++i) met.insert({names[i + 1], names[i]});
      for (const auto& edge : met) edges[edge] += row.amounts;
    });
    for (const GraphFunction& f : graph.functions) {
      const std::string& name = tree.symbol(f.symbol).full;
      EXPECT_TRUE(same(f.self, self[name])) << name;
      EXPECT_TRUE(same(f.cumulative, all[name])) << name;
    }
    EXPECT_EQ(graph.functions.size(), all.size());
    EXPECT_EQ(graph.edges.size(), edges.size());
    for (const GraphEdge& e : graph.edges)
      EXPECT_TRUE(same(e.amounts, edges[{tree.symbol(e.caller).full, tree.symbol(e.callee).full}]));
    EXPECT_TRUE(same(tree.cumulative()[CallTree::kRoot], everything(*reading)));
  }
}

TEST(CallTree, HidingAndFoldingChangeNoSum) {
  ToyRecording toy(3);
  auto reading = toy.read();
  Amounts all = everything(*reading);
  for (bool fold : {false, true})
    for (const char* hidden : {"f1", "f[1-4]", "f", "nothing"}) {
      Query query;
      query.frames.hide.push_back(pattern(hidden));
      CallTree tree(reading.get(), query, false, fold);
      EXPECT_TRUE(same(tree.total(), all)) << hidden;
      EXPECT_TRUE(same(tree.cumulative()[CallTree::kRoot], all)) << hidden;
    }
}

TEST(CallTree, FocusAndIgnoreShareTheWhole) {
  ToyRecording toy(4);
  auto reading = toy.read();
  Amounts all = everything(*reading);
  for (const char* name : {"f1", "f[2-5]", "f", "nothing"}) {
    Query with, without, under;
    with.frames.focus.push_back(pattern(name));
    without.frames.ignore.push_back(pattern(name));
    under.frames.only_under.push_back(pattern(name));
    CallTree a(reading.get(), with), b(reading.get(), without), c(reading.get(), under);
    Amounts sum = a.total();
    sum += b.total();
    EXPECT_TRUE(same(sum, all)) << name;
    EXPECT_TRUE(same(a.total(), c.total())) << name;
    for (size_t i = 1; i < c.nodes().size(); ++i)
      if (c.nodes()[i].parent == CallTree::kRoot) {
        EXPECT_TRUE(pattern(name).matches(c.symbol(c.nodes()[i].symbol).full));
      }
  }
}

// f<n> is inlined in up to two others.
class InliningNaming : public ToyNaming {
 public:
  std::vector<symbols::SymbolFrame> frames(const symbols::ModuleFile& file,
                                           uint64_t offset) override {
    uint64_t n = offset / 16;
    std::vector<symbols::SymbolFrame> all = ToyNaming::frames(file, offset);
    for (uint64_t i = 0; i < n % 3; ++i) all.push_back({"f" + std::to_string(n + i), "g.cc", 1});
    return all;
  }
};

TEST(CallTree, IsTheSameByPlacesAndByPaths) {
  std::mt19937 random(1);
  for (unsigned round = 0; round < 60; ++round) {
    ToyRecording toy(round);
    TallyOptions options;
    options.by_thread = true;
    auto reading = toy.read({}, options, std::make_unique<InliningNaming>());
    Query query;
    auto maybe = [&](std::vector<Pattern>* list) {
      if (random() % 3 == 0) list->push_back(pattern("f" + std::to_string(random() % 12)));
    };
    maybe(&query.frames.focus), maybe(&query.frames.ignore), maybe(&query.frames.hide);
    maybe(&query.rules.fold);
    if (random() % 3 == 0) query.threads.push_back(pattern("t[12]"));
    if (random() % 5 == 0) query.frames.modules.push_back(pattern("nothing"));
    TreeOptions tree_options = {random() % 2 == 0, random() % 2 == 0, random() % 2 == 0, {}};
    CallTree by_places(reading.get(), query, tree_options);
    RowSelector whole(reading.get(), query), innermost(reading.get(), query);
    reading->for_each_row([&](const Row& row) {
      std::vector<FrameId> shown;
      std::optional<FrameId> site;
      ASSERT_EQ(whole.select(row, &shown), innermost.select(row, &site));
      ASSERT_EQ(site, shown.empty() ? std::nullopt : std::optional(shown[0]));
    });
    query.rules.cut_above.push_back(pattern("no such function"));  // Takes the way by paths.
    CallTree by_paths(reading.get(), query, tree_options);

    EXPECT_TRUE(same(by_places.total(), by_paths.total()));
    EXPECT_TRUE(same(by_places.unfiltered(), by_paths.unfiltered()));
    EXPECT_EQ(by_places.stacks(), by_paths.stacks());
    EXPECT_EQ(by_places.cut_stacks(), by_paths.cut_stacks());
    ASSERT_EQ(by_places.nodes().size(), by_paths.nodes().size()) << round;
    for (size_t i = 0; i < by_paths.nodes().size(); ++i) {
      const CallTree::Node &a = by_places.nodes()[i], &b = by_paths.nodes()[i];
      ASSERT_EQ(a.parent, b.parent) << round;
      ASSERT_TRUE(same(by_places.self(i), by_paths.self(i))) << round;
      if (i == CallTree::kRoot) continue;
      const Symbol &x = by_places.symbol(a.symbol), &y = by_paths.symbol(b.symbol);
      ASSERT_EQ(std::tie(x.name, x.full, x.file, x.line, x.module, x.plumbing),
                std::tie(y.name, y.full, y.file, y.line, y.module, y.plumbing));
    }
  }
}

uint64_t number(const Cell& cell) { return std::get<uint64_t>(cell); }

TEST(Views, AllAddUpToTheSameTotals) {
  ToyRecording toy(5);
  TallyOptions options;
  options.by_thread = options.by_size = true;
  auto plain = toy.read(), split = toy.read({}, options);
  Amounts all = everything(*plain);
  EXPECT_TRUE(same(everything(*split), all));
  EXPECT_EQ(all.peak_bytes, plain->accounts().peak().bytes);
  for (Metric metric : {Metric::kAllocations, Metric::kAllocated, Metric::kLive, Metric::kPeak,
                        Metric::kTemporary, Metric::kCalls}) {
    for (By by : {By::kSite, By::kFile, By::kModule, By::kThread, By::kSize}) {
      Answer answer = by_group(split.get(), {}, {metric, by, 0});
      uint64_t sum = 0;
      for (const TableRow& row : answer.tables[0].rows) sum += number(row.cells[0]);
      EXPECT_EQ(sum, value(all, metric));
    }
    Answer stacks = by_stack(plain.get(), {}, {metric, By::kFunction, 0});
    uint64_t sum = 0;
    for (const TableRow& row : stacks.tables[0].rows) sum += number(row.cells[0]);
    EXPECT_EQ(sum, value(all, metric));
    size_t all_nodes = 0;
    for (size_t top : {0u, 1u, 20u}) {
      Answer tree = as_tree(plain.get(), {}, {metric, By::kFunction, top});
      const std::vector<TableRow>& rows = tree.tables[0].rows;
      EXPECT_EQ(sum_below(rows, 0, 0), value(all, metric));
      size_t nodes = 0;
      for (size_t i = 0; i < rows.size(); ++i) {
        const auto* own = std::get_if<uint64_t>(&rows[i].cells[2]);
        if (!own) continue;  // "... others".
        ++nodes;
        EXPECT_EQ(number(rows[i].cells[0]), *own + sum_below(rows, i + 1, rows[i].depth + 1));
      }
      if (top == 0) all_nodes = nodes;
      EXPECT_EQ(nodes, top == 0 ? all_nodes : std::min(top, all_nodes));
      EXPECT_EQ(nodes + tree.tables[0].left_out, all_nodes);
    }
    Answer functions = by_function(plain.get(), {}, {metric, By::kFunction, 0});
    uint64_t self = 0;
    for (const TableRow& row : functions.tables[0].rows) self += number(row.cells[0]);
    EXPECT_EQ(self, value(all, metric));
  }
}

TEST(Views, CallersBeginWithTheFunctionThatWasAskedFor) {
  ToyRecording toy(5);
  auto reading = toy.read();
  auto first_function = [&](const Query& query) {
    Answer answer =
        callers_and_callees(reading.get(), query, {Metric::kAllocated, By::kFunction, 0});
    for (const TableRow& row : answer.tables[0].rows)
      if (row.main) return std::get<NamedFrame>(row.cells[5]).full;
    return std::string();
  };
  Query lightest;
  Answer functions = by_function(reading.get(), {}, {Metric::kAllocated, By::kFunction, 0});
  std::string wanted = std::get<NamedFrame>(functions.tables[0].rows.back().cells.back()).full;
  ASSERT_NE(first_function({}), wanted);
  lightest.frames.focus.push_back(pattern(("^" + wanted + "$").c_str()));
  EXPECT_EQ(first_function(lightest), wanted);
}

TEST(Views, TheFunctionsBelowACallerAreSortedAsAsked) {
  using Siblings = ProfileOptions::Siblings;
  ToyRecording toy(5);
  auto reading = toy.read();
  std::set<std::vector<std::string>> orders;
  for (Siblings siblings : {Siblings::kCumulative, Siblings::kSelf, Siblings::kName}) {
    Answer tree =
        as_tree(reading.get(), {}, {Metric::kAllocated, By::kFunction, 0, false, siblings});
    std::vector<const TableRow*> open;  // The last one met of each depth.
    std::vector<std::string> order;
    for (const TableRow& row : tree.tables[0].rows) {
      auto name = [](const TableRow& r) { return std::get<NamedFrame>(r.cells.back()).full; };
      order.push_back(name(row));
      if (row.depth < open.size()) {
        const TableRow& before = *open[row.depth];
        if (siblings == Siblings::kName)
          EXPECT_LE(name(before), name(row));
        else
          EXPECT_GE(number(before.cells[siblings == Siblings::kSelf ? 2 : 0]),
                    number(row.cells[siblings == Siblings::kSelf ? 2 : 0]));
      }
      open.resize(row.depth);
      open.push_back(&row);
    }
    orders.insert(order);
  }
  EXPECT_EQ(orders.size(), 3u);
}

// What starts a program has everything below it and asks for nothing: it is not what is looked for.
TEST(Views, FunctionsThatAskThemselvesComeFirst) {
  ToyRecording toy(5);
  auto reading = toy.read();
  for (bool by_cumulative : {false, true}) {
    ProfileOptions options = {Metric::kAllocated, By::kFunction, 0, by_cumulative};
    Answer functions = by_function(reading.get(), {}, options);
    std::vector<uint64_t> amounts;
    for (const TableRow& row : functions.tables[0].rows)
      amounts.push_back(number(row.cells[by_cumulative ? 2 : 0]));
    EXPECT_TRUE(std::ranges::is_sorted(amounts, std::greater{})) << by_cumulative;
    Answer graph = callers_and_callees(reading.get(), {}, options);
    std::vector<std::string> listed, blocks;
    for (const TableRow& row : functions.tables[0].rows)
      listed.push_back(std::get<NamedFrame>(row.cells.back()).full);
    for (const TableRow& row : graph.tables[0].rows)
      if (row.main) blocks.push_back(std::get<NamedFrame>(row.cells.back()).full);
    EXPECT_EQ(listed, blocks);
  }
}

TEST(CallTree, AFunctionHasALineOnlyIfItIsItsOnlyOne) {
  ToyRecording toy(5);
  auto reading = toy.read();
  Query query;  // f1, f2 and f4 are one function, of three lines.
  query.rules.renames.push_back(*Rename::make("s/^f[124]$/f/", "--rename"));
  CallTree by_line(reading.get(), query, true), by_function(reading.get(), query);
  std::map<std::pair<std::string, std::string>, std::set<int>> lines;
  for (uint32_t i = 0; i < by_line.symbols(); ++i) {
    const Symbol& symbol = by_line.symbol(SymbolId{i});
    lines[{symbol.full, symbol.module}].insert(symbol.line);
  }
  size_t several = 0;
  for (uint32_t i = 0; i < by_function.symbols(); ++i) {
    const Symbol& symbol = by_function.symbol(SymbolId{i});
    const std::set<int>& met = lines[{symbol.full, symbol.module}];
    EXPECT_EQ(symbol.line, met.size() == 1 ? *met.begin() : 0) << symbol.full;
    several += met.size() > 1;
  }
  EXPECT_EQ(several, 1u);
}

TEST(Tally, ThreadsAndSizesCanBeSelected) {
  ToyRecording toy(6);
  TallyOptions options;
  options.by_thread = true;
  auto reading = toy.read({}, options);
  Amounts sum;
  for (const char* thread : {"t1", "102", "^t3$"}) {
    Query query;
    query.threads.push_back(pattern(thread));
    sum += CallTree(reading.get(), query).total();
  }
  EXPECT_TRUE(same(sum, everything(*reading)));

  options = {};
  options.max_size = 499;
  Amounts small = everything(*toy.read({}, options));
  options = {};
  options.min_size = 500;
  small += everything(*toy.read({}, options));
  Amounts all = everything(*toy.read());
  EXPECT_EQ(small.live_bytes, all.live_bytes);
  EXPECT_EQ(small.peak_bytes, all.peak_bytes);
  EXPECT_EQ(small.allocations, all.allocations);
}

TEST(Window, CountsWhatHappensInIt) {
  ToyRecording toy(7);
  for (auto [first, last] : {std::pair<size_t, size_t>{0, 700}, {300, 900}, {1500, 2900}}) {
    // Ticks are unique, but for none: an event is before, in or after the window.
    Window window = {toy.events[first].tick, toy.events[last].tick};
    auto reading = toy.read(window);
    std::map<uint64_t, uint64_t> live;  // Address -> size.
    uint64_t allocations = 0, bytes = 0, sum = 0, peak = 0, began = 0;
    for (size_t i = 0; i < toy.events.size(); ++i) {
      const wire::Event& e = toy.events[i];
      if (e.tick > window.to_tick) break;
      bool counts = e.tick >= window.from_tick;
      if (counts && !began) began = 1, peak = sum;
      if (e.kind == wire::Kind::kAlloc) {
        live[e.address] = e.size;
        sum += e.size;
        allocations += counts;
        bytes += counts ? e.size : 0;
      } else if (e.kind == wire::Kind::kFree) {
        sum -= live[e.address];
        live.erase(e.address);
      } else if (e.kind == wire::Kind::kReallocEnd) {
        uint64_t old_address = toy.events[i - 1].address, old = live[old_address];
        live.erase(old_address);
        live[e.address] = e.size;
        sum = sum - old + e.size;
        if (counts && e.size > old) bytes += e.size - old;
      }
      if (counts) peak = std::max(peak, sum);
    }
    Totals totals = reading->accounts().totals();
    EXPECT_EQ(totals.allocations, allocations);
    EXPECT_EQ(totals.allocated_bytes, bytes);
    EXPECT_EQ(totals.live_bytes, sum);
    EXPECT_EQ(totals.live_blocks, live.size());
    EXPECT_EQ(reading->accounts().peak().bytes, peak);
    Amounts rows = everything(*reading);
    EXPECT_EQ(rows.allocations, allocations);
    EXPECT_EQ(rows.allocated_bytes, bytes);
    EXPECT_EQ(rows.live_bytes, sum);
    EXPECT_EQ(rows.peak_bytes, peak);
  }
}

TEST(Window, LeaksAreWhatWasMadeInIt) {
  ToyRecording toy(8);
  Window window = {toy.events[1000].tick, toy.events[2000].tick};
  TallyOptions options;
  options.only_made_in_window = true;
  auto reading = toy.read(window, options);
  std::map<uint64_t, std::pair<uint64_t, bool>> live;  // Address -> size, made in the window.
  for (size_t i = 0; i < toy.events.size() && toy.events[i].tick <= window.to_tick; ++i) {
    const wire::Event& e = toy.events[i];
    if (e.kind == wire::Kind::kAlloc) live[e.address] = {e.size, e.tick >= window.from_tick};
    if (e.kind == wire::Kind::kFree) live.erase(e.address);
    if (e.kind == wire::Kind::kReallocEnd) {
      bool made = live[toy.events[i - 1].address].second;
      live.erase(toy.events[i - 1].address);
      live[e.address] = {e.size, made};
    }
  }
  uint64_t blocks = 0, bytes = 0;
  for (auto& [address, block] : live)
    if (block.second) ++blocks, bytes += block.first;
  Amounts rows = everything(*reading);
  EXPECT_EQ(rows.live_blocks, blocks);
  EXPECT_EQ(rows.live_bytes, bytes);
  EXPECT_GT(blocks, 10u);
}

// The two parts of a recording, up to a moment and from there on.
std::pair<Window, Window> parted(Window moment) {
  if (moment.to_bytes != Window::kNever)
    return {moment, {.from_tick = moment.to_tick, .from_bytes = moment.to_bytes}};
  return {moment, {.from_tick = moment.to_tick + 1}};
}

TEST(Window, ThatEndsAtThePeakEndsWithTheVeryEvent) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    ToyRecording toy(seed, 3000, /*tick_events=*/200);
    auto whole = toy.read();
    Peak peak = whole->accounts().peak();
    auto [before, after] = parted({.to_tick = peak.tick, .to_bytes = peak.bytes});
    auto first = toy.read(before), second = toy.read(after);
    EXPECT_EQ(first->accounts().totals().live_bytes, peak.bytes);
    EXPECT_EQ(everything(*first).live_bytes, peak.bytes);
    EXPECT_EQ(second->accounts().peak().bytes, peak.bytes);
    EXPECT_EQ(everything(*first).allocations + everything(*second).allocations,
              everything(*whole).allocations);
    EXPECT_EQ(first->accounts().totals().frees + second->accounts().totals().frees,
              whole->accounts().totals().frees);

    // What is left and was made behind that event, whatever its tick.
    Heap heap;
    heap.image_started(toy.tables.images[0]);
    std::map<uint64_t, bool> live;  // Address -> made behind it.
    for (size_t i = 0; i < toy.events.size(); ++i) {
      const wire::Event& e = toy.events[i];
      bool reached = heap.peak().bytes == peak.bytes;
      heap.events({&e, 1});
      if (e.kind == wire::Kind::kAlloc) live[e.address] = reached;
      if (e.kind == wire::Kind::kFree) live.erase(e.address);
      if (e.kind != wire::Kind::kReallocEnd) continue;
      bool made = live[toy.events[i - 1].address];
      live.erase(toy.events[i - 1].address);
      live[e.address] = made;
    }
    uint64_t left = 0;
    for (const auto& [address, made] : live) left += made;
    TallyOptions options;
    options.only_made_in_window = true;
    EXPECT_EQ(everything(*toy.read(after, options)).live_blocks, left) << "seed " << seed;
  }
}

TEST(Window, LifetimesOfPartsAddUpToTheTick) {
  TallyOptions options;
  options.details = true;
  auto lived = [](const Reading& reading) {
    uint64_t ticks = 0;
    reading.accounts().tally().for_each_row(
        [&](const Row& row) { ticks += row.details.lifetime_ticks; });
    return ticks;
  };
  for (unsigned many : {1U, 200U}) {
    ToyRecording toy(9, 3000, many);
    auto whole = toy.read({}, options);
    Peak peak = whole->accounts().peak();
    std::vector<Window> moments = {{.to_tick = peak.tick, .to_bytes = peak.bytes}};
    for (size_t at : {0, 10, 500, 1700, 2990}) moments.push_back({.to_tick = toy.events[at].tick});
    for (const Window& moment : moments) {
      auto [before, after] = parted(moment);
      EXPECT_EQ(lived(*toy.read(before, options)) + lived(*toy.read(after, options)),
                lived(*whole));
    }
  }
}

TEST(Window, TimesOfRowsAddUpWhateverTheyAreRowsOf) {
  ToyRecording toy(10);
  toy.tables.header.ns_per_tick = 0.37;
  std::set<uint64_t> sums;
  for (int i = 0; i < 8; ++i) {
    TallyOptions options;
    options.details = true;
    options.by_thread = i & 1, options.by_size = i & 2, options.by_stack = !(i & 4);
    uint64_t ns = 0;
    toy.read({}, options)->for_each_row([&](const Row& row) { ns += row.amounts.lifetime_ns; });
    sums.insert(ns);
  }
  EXPECT_EQ(sums.size(), 1u);
}

}  // namespace
}  // namespace malloscope::analyze
