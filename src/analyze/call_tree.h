// SPDX-License-Identifier: Apache-2.0
// The stacks of a recording merged into one tree of functions, root outermost, each
// node with what was asked for right there. Flat profiles, callers and callees, trees,
// flame graphs and most export formats are made from it.

#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "analyze/query.h"
#include "analyze/reading.h"
#include "analyze/row_selector.h"

namespace malloscope::analyze {

enum class SymbolId : uint32_t {};

// A function, or a line of one.
struct Symbol {
  std::string name;  // As it is shown.
  std::string full;  // As it is in the program.
  std::string file;  // Empty if not known. Of a function: where it was first met.
  int line = 0;      // 0 if not known, or if the function was met at several.
  std::string module;
  bool plumbing = false;
  int column = 0;  // As Frame's; only with TreeOptions::by_line.
};

// From a node and a symbol to the node below; a hash table.
class ChildTable {
 public:
  explicit ChildTable(size_t expected = 0);
  // `next` if there was none.
  uint32_t find_or_add(uint32_t node, SymbolId symbol, uint32_t next);

 private:
  void grow();
  std::vector<uint64_t> keys_;
  std::vector<uint32_t> nodes_;  // 0: the place is free.
  size_t used_ = 0;
};

// Functions under those that called them, root outermost.
class FunctionTree {
 public:
  static constexpr uint32_t kRoot = 0;

  struct Node {
    uint32_t parent = 0;  // Smaller than its own number, but for the root.
    SymbolId symbol = {};
    uint32_t amounts = 0;  // CallTree's. Most nodes are only on the way to others.
  };

  const std::vector<Node>& nodes() const { return nodes_; }
  const Symbol& symbol(SymbolId id) const { return symbols_[static_cast<uint32_t>(id)]; }
  size_t symbols() const { return symbols_.size(); }

  // Numbers the nodes anew, each right before all that is below it: what is looked at together is
  // together then. Gives the new numbers by the old ones.
  std::vector<uint32_t> renumber();

  // A node's symbols, itself first.
  void path(uint32_t node, std::vector<SymbolId>* inner_first) const;

 protected:
  std::vector<Node> nodes_ = std::vector<Node>(1);
  std::vector<Symbol> symbols_;
};

struct TreeOptions {
  bool by_line = false;       // A node for each line of a function.
  bool fold_plumbing = true;  // See RowSelector.
  // What is missing of a stack is a node as well: [cut] or [unknown] outside the outermost frame
  // that is known, [hidden] in the place of a stack whose frames all are. Else nobody is blamed.
  bool mark_missing = false;
  // Told of every row that was let through, and of its node.
  std::function<void(const Row&, uint32_t node)> visit;
};

class CallTree : public FunctionTree {
 public:
  CallTree(Reading* reading, const Query& query, bool by_line = false, bool fold_plumbing = true)
      : CallTree(reading, query, TreeOptions{by_line, fold_plumbing, false, {}}) {}
  CallTree(Reading* reading, const Query& query, TreeOptions options);

  // What was asked for right there.
  const Amounts& self(size_t node) const { return amounts_[nodes_[node].amounts]; }

  // Of all stacks that the filter let through, and of all there were.
  const Amounts& total() const { return total_; }
  const Amounts& unfiltered() const { return unfiltered_; }
  uint64_t stacks() const { return stacks_; }          // Rows that were let through.
  uint64_t cut_stacks() const { return cut_stacks_; }  // Whose outer end was not recorded.

  // What each node and all below it asked for; by node.
  std::vector<Amounts> cumulative() const;

 private:
  void add(const Row& row);
  // The node of a row whose outer end is that of its neighbours in the tree of stacks.
  uint32_t node_of(const Row& row, RowSelector::Place place);
  uint32_t node_at(ImageId image, trace::StackNode stack_node);
  uint32_t below(uint32_t node, std::span<const FrameId> inner_first);
  uint32_t node_of(FrameTable::Root root);  // Of frames_.
  SymbolId symbol_of(FrameId frame);
  SymbolId marker(const char* name);
  SymbolId intern(const Frame& frame);
  uint32_t child(uint32_t node, SymbolId symbol);

  Reading& reading_;
  RowSelector selector_;
  TreeOptions options_;
  Rules rules_;
  bool whole_outside_;                                      // The query cuts no outer frames off.
  std::vector<Amounts> amounts_ = std::vector<Amounts>(1);  // The first is nothing.
  std::unordered_map<std::string, SymbolId> ids_;
  std::vector<int32_t> symbol_of_frame_;  // By FrameId; -1: not known yet.
  ChildTable children_;
  Amounts total_, unfiltered_;
  uint64_t stacks_ = 0, cut_stacks_ = 0;

  // By image and its stacks' nodes: the tree's node of all frames down to there. kUnknown: not
  // asked for yet.
  static constexpr uint32_t kUnknown = UINT32_MAX;
  std::vector<std::vector<uint32_t>> node_at_;

  std::vector<trace::StackNode> way_;  // Scratch.
  std::vector<FrameId> frames_;        // Scratch: innermost first.
  std::vector<SymbolId> path_;         // Scratch: outermost first.
  std::vector<SymbolId> last_path_;
  std::vector<uint32_t> last_nodes_;  // Of last_path_.
};

}  // namespace malloscope::analyze
