// SPDX-License-Identifier: Apache-2.0
// Stacks that differ only in lines or images have the same names and are one line.
// They are merged in a tree of names: a million deep stacks share most of it,
// while their lines as strings would not fit in memory.

#include "output/folded.h"

#include <fmt/format.h>

#include <string>
#include <unordered_map>
#include <vector>

#include "output/words.h"

namespace malloscope::output {
namespace {

class NameTree {
 public:
  NameTree() { nodes_.push_back({}); }

  uint32_t name(const std::string& function) {
    auto [found, fresh] = ids_.try_emplace(function, static_cast<uint32_t>(names_.size()));
    if (fresh) names_.push_back(printable(function, ';'));
    return found->second;
  }

  uint32_t child(uint32_t node, uint32_t name) {
    auto [found, fresh] =
        children_.try_emplace(uint64_t{node} << 32 | name, static_cast<uint32_t>(nodes_.size()));
    if (fresh) nodes_.push_back({node, name, 0});
    return found->second;
  }

  void add(uint32_t node, uint64_t value) { nodes_[node].value += value; }

  void write(Sink* sink) const {
    std::vector<uint32_t> path;
    std::string line;
    for (uint32_t i = 1; i < nodes_.size(); ++i) {
      if (nodes_[i].value == 0) continue;
      path.clear();
      for (uint32_t node = i; node != 0; node = nodes_[node].parent)
        path.push_back(nodes_[node].name);
      line.clear();
      while (!path.empty()) {
        line += names_[path.back()];
        path.pop_back();
        line += path.empty() ? ' ' : ';';
      }
      line += fmt::format("{}\n", nodes_[i].value);
      sink->write(line);
    }
  }

 private:
  struct Node {
    uint32_t parent = 0;
    uint32_t name = 0;
    uint64_t value = 0;
  };
  std::vector<Node> nodes_;  // [0] is the root of all; it has no name.
  std::unordered_map<uint64_t, uint32_t> children_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, uint32_t> ids_;
};

}  // namespace

void write_folded(analyze::Reading* reading, analyze::Metric metric, Sink* sink) {
  using Root = analyze::FrameTable::Root;
  NameTree tree;
  std::unordered_map<analyze::FrameId, uint32_t> names;
  std::vector<analyze::FrameId> frames;
  analyze::FrameTable& table = reading->frames();
  reading->accounts().for_each_stack(
      [&](ImageId image, StackId stack, const analyze::Amounts& amounts) {
        uint64_t value = analyze::value(amounts, metric);
        if (value == 0) return;
        uint32_t node = 0;
        Root root = table.root(image, stack);
        table.stack(image, stack, &frames);
        if (root == Root::kCut) node = tree.child(0, tree.name("[cut]"));
        // A stack that was not had at all is [unknown] already.
        if (root == Root::kStopped && table.frame(frames.back()).function != "[unknown]")
          node = tree.child(0, tree.name("[unknown]"));
        for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
          auto [name, fresh] = names.try_emplace(*frame);
          if (fresh) name->second = tree.name(table.frame(*frame).function);
          node = tree.child(node, name->second);
        }
        tree.add(node, value);
      });
  tree.write(sink);
}

}  // namespace malloscope::output
