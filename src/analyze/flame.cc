// SPDX-License-Identifier: Apache-2.0
// A node of the picture stands for one or more places in the call tree (its members), each with a
// weight. What is below it in the picture are the members' children, or their parents, put
// together by function. The heaviest node that is not yet open is opened next until there are as
// many as wanted, what is not opened below each of them counted as one; a child is never heavier
// than its parent, so those are the heaviest of all.

#include "analyze/flame.h"

#include <algorithm>
#include <queue>
#include <utility>

namespace malloscope::analyze {

NodeValues::NodeValues(const FunctionTree& tree, std::vector<uint64_t> self_by_node)
    : self_(std::move(self_by_node)), total_(self_), stacks_(self_.size()) {
  const std::vector<FunctionTree::Node>& nodes = tree.nodes();
  for (size_t i = nodes.size(); i-- > 1;) {
    stacks_[i] += self_[i] > 0;
    total_[nodes[i].parent] += total_[i];
    stacks_[nodes[i].parent] += stacks_[i];
  }
}

NodeChildren::NodeChildren(const FunctionTree& tree) {
  const std::vector<FunctionTree::Node>& nodes = tree.nodes();
  first_.resize(nodes.size() + 1);
  for (size_t i = 1; i < nodes.size(); ++i) ++first_[nodes[i].parent + 1];
  for (size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
  children_.resize(nodes.size() - 1);
  std::vector<uint32_t> next(first_.begin(), first_.end() - 1);
  for (uint32_t i = 1; i < nodes.size(); ++i) children_[next[nodes[i].parent]++] = i;
}

namespace {

struct Member {
  uint32_t node = 0;    // Where it is in the call tree.
  uint64_t weight = 0;  // Outwards: what it brings along. Inwards: the node's own total.
  uint64_t before = 0;
  uint64_t stacks = 0;
};

struct Open {
  FlameNode node;
  std::vector<Member> members;
  size_t undrawn = 0;  // Of its children.
  uint64_t weight() const { return std::max(node.total, node.before); }
};

class Painter {
 public:
  Painter(const FunctionTree& tree, const NodeChildren& children, const NodeValues& values,
          const NodeValues& before, const FlameOptions& options)
      : tree_(tree),
        children_(children),
        values_(values),
        before_(before),
        options_(options),
        place_of_(tree.symbols(), 0) {}

  std::vector<FlameNode> paint() {
    Open root = begin();
    for (SymbolId step : options_.way) {
      std::vector<Open> below = children_of(&root);
      auto found = std::ranges::find(below, step, [](const Open& o) { return o.node.symbol; });
      if (found == below.end()) return {};
      root = std::move(*found);
    }
    root.node.parent = 0;
    grow(std::move(root));
    return walk();
  }

 private:
  using Shape = FlameOptions::Shape;
  bool inwards() const {
    return options_.shape == Shape::kInwards || options_.shape == Shape::kCallees;
  }
  uint64_t before_self(uint32_t node) const { return before_.empty() ? 0 : before_.self(node); }
  uint64_t before_total(uint32_t node) const { return before_.empty() ? 0 : before_.total(node); }
  Member whole(uint32_t node) const {
    return {node, values_.total(node), before_total(node), values_.stacks(node)};
  }

  Open begin() {
    Open root;
    root.node.kind = FlameNode::Kind::kRoot;
    const std::vector<FunctionTree::Node>& nodes = tree_.nodes();
    switch (options_.shape) {
      case Shape::kInwards:
        root.members.push_back(whole(options_.root));
        root.node.id = options_.root;
        if (options_.root != FunctionTree::kRoot) {
          root.node.kind = FlameNode::Kind::kFunction;
          root.node.symbol = nodes[options_.root].symbol;
        }
        break;
      case Shape::kOutwards:
        for (uint32_t i = 1; i < nodes.size(); ++i)
          if (values_.self(i) > 0 || before_self(i) > 0)
            root.members.push_back(
                {i, values_.self(i), before_self(i), values_.self(i) > 0 ? 1u : 0u});
        break;
      case Shape::kCallees:
      case Shape::kCallers:
        root.node.kind = FlameNode::Kind::kFunction;
        root.node.symbol = options_.symbol;
        root.members = outermost();
        break;
    }
    for (const Member& member : root.members) add(member, &root.node);
    at_start_ = options_.shape == Shape::kOutwards;
    if (inwards())
      for (const Member& member : root.members) root.node.self += values_.self(member.node);
    return root;
  }

  // Where the function is called, but not those below another call of it.
  std::vector<Member> outermost() const {
    const std::vector<FunctionTree::Node>& nodes = tree_.nodes();
    std::vector<bool> inside(nodes.size());
    std::vector<Member> members;
    for (uint32_t i = 1; i < nodes.size(); ++i) {
      bool here = nodes[i].symbol == options_.symbol;
      if (here && !inside[nodes[i].parent] && (values_.total(i) > 0 || before_total(i) > 0))
        members.push_back(whole(i));
      inside[i] = here || inside[nodes[i].parent];
    }
    return members;
  }

  static void add(const Member& member, FlameNode* node) {
    node->total += member.weight;
    node->before += member.before;
    node->stacks += member.stacks;
  }

  // By function. What of an outward node goes no further out is its own.
  std::vector<Open> children_of(Open* parent) {
    std::vector<Open> below;
    auto meet = [&](const Member& member) {
      SymbolId symbol = tree_.nodes()[member.node].symbol;
      uint32_t& place = place_of_[static_cast<uint32_t>(symbol)];
      if (place == 0 || place > below.size() || below[place - 1].node.symbol != symbol) {
        Open fresh;
        fresh.node.symbol = symbol;
        fresh.node.id = member.node;
        below.push_back(std::move(fresh));
        place = static_cast<uint32_t>(below.size());
      }
      Open& open = below[place - 1];
      add(member, &open.node);
      if (inwards()) open.node.self += values_.self(member.node);
      open.members.push_back(member);
    };
    bool at_start = std::exchange(at_start_, false);
    for (const Member& member : parent->members) {
      if (inwards()) {
        for (uint32_t child : children_.of(member.node))
          if (values_.total(child) > 0 || before_total(child) > 0) meet(whole(child));
      } else if (at_start) {
        meet(member);
      } else {
        uint32_t outer = tree_.nodes()[member.node].parent;
        if (outer == FunctionTree::kRoot)
          parent->node.self += member.weight;
        else
          meet({outer, member.weight, member.before, member.stacks});
      }
    }
    return below;
  }

  void grow(Open root) {
    auto lighter = [this](uint32_t a, uint32_t b) {
      uint64_t x = opens_[a].weight(), y = opens_[b].weight();
      return x != y ? x < y : a > b;
    };
    std::priority_queue<uint32_t, std::vector<uint32_t>, decltype(lighter)> next(lighter);
    opens_.push_back(std::move(root));
    next.push(0);
    size_t nodes = 0;  // Drawn ones, and "others" below them.
    while (!next.empty()) {
      uint32_t at = next.top();
      next.pop();
      std::vector<Open> below = children_of(&opens_[at]);
      size_t more = below.empty() ? 1 : 2;
      if (at != 0) {
        size_t& undrawn = opens_[opens_[at].node.parent].undrawn;
        if (undrawn == 1) --more;  // Nothing is left to be one of the others.
        if (nodes + more > options_.most) break;
        --undrawn;
      }
      nodes += more;
      drawn_.resize(opens_.size());
      drawn_[at] = true;
      opens_[at].members = {};
      opens_[at].undrawn = below.size();
      for (Open& child : below) {
        child.node.parent = at;
        opens_.push_back(std::move(child));
        next.push(static_cast<uint32_t>(opens_.size() - 1));
      }
    }
    drawn_.resize(opens_.size());
  }

  // What was drawn, children heaviest first; what was not, as one node behind them.
  std::vector<FlameNode> walk() {
    std::vector<std::vector<uint32_t>> below(opens_.size());
    for (uint32_t i = 1; i < opens_.size(); ++i) below[opens_[i].node.parent].push_back(i);
    std::vector<FlameNode> result;
    struct Visit {
      uint32_t open;
      uint32_t parent;  // In the result.
    };
    std::vector<Visit> visits = {{0, 0}};
    while (!visits.empty()) {
      auto [at, parent] = visits.back();
      visits.pop_back();
      auto here = static_cast<uint32_t>(result.size());
      result.push_back(opens_[at].node);
      result.back().parent = parent;
      if (!drawn_[at]) {  // Others: see below.
        result.back().kind = FlameNode::Kind::kOthers;
        continue;
      }
      std::vector<uint32_t>& children = below[at];
      std::ranges::sort(children, [&](uint32_t a, uint32_t b) {
        uint64_t x = opens_[a].weight(), y = opens_[b].weight();
        if (drawn_[a] != drawn_[b]) return static_cast<bool>(drawn_[a]);
        return x != y ? x > y : a < b;
      });
      size_t drawn = 0;
      while (drawn < children.size() && drawn_[children[drawn]]) ++drawn;
      if (drawn < children.size()) {
        FlameNode& first = opens_[children[drawn]].node;
        for (size_t i = drawn + 1; i < children.size(); ++i) {
          const FlameNode& other = opens_[children[i]].node;
          first.total += other.total, first.before += other.before, first.stacks += other.stacks;
        }
        first.self = 0;
        visits.push_back({children[drawn], here});
      }
      for (size_t i = drawn; i-- > 0;) visits.push_back({children[i], here});
    }
    return result;
  }

  const FunctionTree& tree_;
  const NodeChildren& children_;
  const NodeValues& values_;
  const NodeValues& before_;
  FlameOptions options_;
  bool at_start_ = false;           // Of kOutwards: the members are the root's children.
  std::vector<uint32_t> place_of_;  // By symbol: where it may be among the children, + 1.
  std::vector<Open> opens_;
  std::vector<bool> drawn_;
};

}  // namespace

std::vector<FlameNode> flame(const FunctionTree& tree, const NodeChildren& children,
                             const NodeValues& values, const NodeValues& before,
                             const FlameOptions& options) {
  return Painter(tree, children, values, before, options).paint();
}

}  // namespace malloscope::analyze
