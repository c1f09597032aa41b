// SPDX-License-Identifier: Apache-2.0
// A tree of functions small enough to be drawn: the heaviest nodes of a call tree of any size, with
// what is too light to be seen put together as "others" where it would be. From the root inwards,
// from the allocating functions outwards, or the callers and callees of one function.

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "analyze/call_tree.h"

namespace malloscope::analyze {

// What there is at the nodes of a call tree, of one metric: itself, and with all below it.
class NodeValues {
 public:
  NodeValues() = default;
  NodeValues(const FunctionTree& tree, std::vector<uint64_t> self_by_node);

  uint64_t self(uint32_t node) const { return self_[node]; }
  uint64_t total(uint32_t node) const { return total_[node]; }
  // How many nodes there and below have something themselves.
  uint64_t stacks(uint32_t node) const { return stacks_[node]; }
  bool empty() const { return self_.empty(); }

 private:
  std::vector<uint64_t> self_, total_;
  std::vector<uint32_t> stacks_;
};

// Who is below whom, for walks from the root inwards.
class NodeChildren {
 public:
  explicit NodeChildren(const FunctionTree& tree);
  std::span<const uint32_t> of(uint32_t node) const {
    return std::span(children_).subspan(first_[node], first_[node + 1] - first_[node]);
  }

 private:
  std::vector<uint32_t> first_, children_;
};

struct FlameOptions {
  enum class Shape {
    kInwards,   // Callers above what they call.
    kOutwards,  // The function that asked above who called it.
    kCallees,   // Of `symbol`: as kInwards below all its occurrences.
    kCallers,   // Of `symbol`: as kOutwards above all its occurrences.
  };
  Shape shape = Shape::kInwards;
  SymbolId symbol = {};
  uint32_t root = FunctionTree::kRoot;  // kInwards: only below this node.
  // kOutwards, kCallees, kCallers: only below the node that this way from the root leads to.
  std::vector<SymbolId> way;
  size_t most = 50'000;  // Others included; but the root and what is below it always are.
};

struct FlameNode {
  enum class Kind : uint8_t { kFunction, kOthers, kRoot };
  uint32_t parent = 0;  // Comes before it; the root is its own.
  Kind kind = Kind::kFunction;
  SymbolId symbol = {};
  uint32_t id = 0;  // kInwards: the node of the call tree.
  uint64_t total = 0, self = 0;
  uint64_t before = 0;  // What it was, where two are compared.
  uint64_t stacks = 0;  // That it stands for.
};

// In order of a walk, heaviest first. `before` may be empty. A function that calls itself counts
// once.
std::vector<FlameNode> flame(const FunctionTree& tree, const NodeChildren& children,
                             const NodeValues& values, const NodeValues& before,
                             const FlameOptions& options);

}  // namespace malloscope::analyze
