// SPDX-License-Identifier: Apache-2.0
// Every shape of the picture against sums made the slow way, stack by stack; and with few nodes,
// the same sums with the rest as others.

#include "analyze/flame.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "analyze/made_up_for_test.h"
#include "analyze/sites.h"

namespace malloscope::analyze {
namespace {

using Way = std::vector<std::string>;
using Shape = FlameOptions::Shape;

struct Sums {
  uint64_t total = 0, self = 0;
  bool operator==(const Sums&) const = default;
};

class FlameTest : public testing::TestWithParam<unsigned> {
 protected:
  FlameTest()
      : toy(GetParam()),
        reading(toy.read()),
        tree(reading.get(), {}, false, /*fold_plumbing=*/false),
        children(tree) {
    std::vector<uint64_t> self;
    for (size_t i = 0; i < tree.nodes().size(); ++i) self.push_back(tree.self(i).allocated_bytes);
    values = NodeValues(tree, self);
    reading->for_each_row([&](const Row& row) {
      Way way;
      for (int f : toy.stacks[raw(row.stack)]) way.push_back("f" + std::to_string(f));
      stacks[way] += row.amounts.allocated_bytes;
      all += row.amounts.allocated_bytes;
    });
  }

  std::string name(SymbolId symbol) const { return tree.symbol(symbol).full; }
  SymbolId symbol(const std::string& wanted) const {
    for (uint32_t i = 0; i < tree.symbols(); ++i)
      if (name(SymbolId{i}) == wanted) return SymbolId{i};
    return SymbolId{UINT32_MAX};
  }

  // By the way from the root, without it.
  std::map<Way, Sums> drawn(const FlameOptions& options) const {
    std::vector<FlameNode> nodes = flame(tree, children, values, {}, options);
    std::map<Way, Sums> sums;
    std::vector<Way> ways(nodes.size());
    for (size_t i = 1; i < nodes.size(); ++i) {
      EXPECT_LT(nodes[i].parent, i);
      EXPECT_EQ(nodes[i].kind, FlameNode::Kind::kFunction);
      ways[i] = ways[nodes[i].parent];
      ways[i].push_back(name(nodes[i].symbol));
      EXPECT_TRUE(sums.try_emplace(ways[i], Sums{nodes[i].total, nodes[i].self}).second);
    }
    if (!nodes.empty()) sums[{}] = {nodes[0].total, nodes[0].self};
    return sums;
  }

  static void add(const Way& way, uint64_t amount, std::map<Way, Sums>* sums) {
    for (size_t i = 0; i <= way.size(); ++i)
      (*sums)[Way(way.begin(), way.begin() + static_cast<ptrdiff_t>(i))].total += amount;
    (*sums)[way].self += amount;
  }

  ToyRecording toy;
  std::unique_ptr<Reading> reading;
  CallTree tree;
  NodeChildren children;
  NodeValues values;
  std::map<Way, uint64_t> stacks;  // Innermost first.
  uint64_t all = 0;
};

TEST_P(FlameTest, InwardsIsTheTree) {
  std::map<Way, Sums> wanted;
  for (const auto& [stack, amount] : stacks) add({stack.rbegin(), stack.rend()}, amount, &wanted);
  EXPECT_EQ(drawn({}), wanted);
}

TEST_P(FlameTest, OutwardsIsTheTreeTheOtherWayRound) {
  std::map<Way, Sums> wanted;
  for (const auto& [stack, amount] : stacks) add(stack, amount, &wanted);
  FlameOptions options;
  options.shape = Shape::kOutwards;
  EXPECT_EQ(drawn(options), wanted);
}

TEST_P(FlameTest, CallersAndCalleesAreThoseOfTheOutermostCall) {
  for (uint32_t i = 0; i < tree.symbols(); ++i) {
    std::map<Way, Sums> callers, callees;
    for (const auto& [stack, amount] : stacks) {
      auto last = std::find(stack.rbegin(), stack.rend(), name(SymbolId{i}));
      if (last == stack.rend()) continue;
      add(Way(last.base(), stack.end()), amount, &callers);
      add(Way(last + 1, stack.rend()), amount, &callees);
    }
    FlameOptions options;
    options.symbol = SymbolId{i};
    options.shape = Shape::kCallers;
    EXPECT_EQ(drawn(options), callers);
    options.shape = Shape::kCallees;
    EXPECT_EQ(drawn(options), callees);
  }
}

TEST_P(FlameTest, WhatIsBelowANodeOrAWayIsThatPart) {
  std::map<Way, Sums> whole = drawn({});
  for (const FlameNode& node : flame(tree, children, values, {}, {})) {
    Way way;
    for (uint32_t at = node.id; at != CallTree::kRoot; at = tree.nodes()[at].parent)
      way.insert(way.begin(), name(tree.nodes()[at].symbol));
    FlameOptions options;
    options.root = node.id;
    for (const auto& [below, sums] : drawn(options)) {
      Way from_root = way;
      from_root.insert(from_root.end(), below.begin(), below.end());
      EXPECT_EQ(sums, whole[from_root]);
    }
  }
  FlameOptions outwards;
  outwards.shape = Shape::kOutwards;
  whole = drawn(outwards);
  for (const auto& [way, sums] : whole) {
    outwards.way.clear();
    for (const std::string& function : way) outwards.way.push_back(symbol(function));
    EXPECT_EQ(drawn(outwards)[{}], sums);
  }
  outwards.way = {symbol("f1"), SymbolId{0}, SymbolId{0}, SymbolId{0},
                  SymbolId{0},  SymbolId{0}, SymbolId{0}};
  EXPECT_TRUE(drawn(outwards).empty());
}

TEST_P(FlameTest, WithFewNodesTheRestIsOthers) {
  for (Shape shape : {Shape::kInwards, Shape::kOutwards})
    for (size_t most : {1u, 2u, 5u, 20u, 50u}) {
      FlameOptions options;
      options.shape = shape;
      options.most = most;
      std::vector<FlameNode> nodes = flame(tree, children, values, {}, options);
      std::vector<uint64_t> below(nodes.size());
      size_t functions = 0;
      uint64_t lightest = UINT64_MAX, stacks_in_all = nodes[0].stacks, ends = 0;
      for (size_t i = 1; i < nodes.size(); ++i) {
        below[nodes[i].parent] += nodes[i].total;
        if (nodes[i].kind == FlameNode::Kind::kFunction) {
          ++functions;
          lightest = std::min(lightest, nodes[i].total);
        }
        ends += nodes[i].kind == FlameNode::Kind::kOthers ? nodes[i].stacks : 0;
      }
      EXPECT_EQ(nodes[0].total, all);
      EXPECT_LE(nodes.size(), std::max<size_t>(most, 2));
      // Whatever is drawn is no lighter than what is not.
      std::vector<uint64_t> weights;
      FlameOptions whole = options;
      whole.most = SIZE_MAX;
      for (const FlameNode& node : flame(tree, children, values, {}, whole))
        weights.push_back(node.total);
      std::ranges::sort(weights, std::greater());
      // The next one would have brought its own others along.
      EXPECT_GE(nodes.size() + 1, std::min(most, weights.size()));
      if (functions > 0) {
        EXPECT_EQ(lightest, weights[functions]);
      }
      EXPECT_LE(ends, stacks_in_all);
      for (size_t i = 0; i < nodes.size(); ++i)
        if (nodes[i].kind != FlameNode::Kind::kOthers && shape == Shape::kInwards) {
          EXPECT_EQ(nodes[i].self + below[i], nodes[i].total) << most;
        }
      if (most == 1) {
        EXPECT_EQ(nodes.size(), 2u);
      }
    }
}

TEST_P(FlameTest, ComparesWithWhatWasBefore) {
  std::vector<uint64_t> then;
  for (size_t i = 0; i < tree.nodes().size(); ++i) then.push_back(tree.self(i).live_bytes);
  NodeValues before(tree, then);
  for (Shape shape : {Shape::kInwards, Shape::kOutwards}) {
    FlameOptions options;
    options.shape = shape;
    std::vector<FlameNode> nodes = flame(tree, children, values, before, options);
    EXPECT_EQ(nodes[0].before, before.total(CallTree::kRoot));
    EXPECT_EQ(nodes[0].total, all);
    if (shape == Shape::kInwards)
      for (const FlameNode& node : nodes) {
        EXPECT_EQ(node.before, before.total(node.id));
      }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, FlameTest, testing::Range(1u, 6u));

}  // namespace
}  // namespace malloscope::analyze
