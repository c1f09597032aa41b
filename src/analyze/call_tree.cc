// SPDX-License-Identifier: Apache-2.0
// A row's stack becomes a path of symbols and the path a node. The stacks of an image are
// a tree already, so the node of every place in it is found once, from that of the
// place outside of it: the time goes with the places, not with stacks times their depth. Where a
// query cuts off outer ends that does not hold; then each path is compared with the one
// before it, with which it mostly shares its outer frames, and only the rest is looked up.

#include "analyze/call_tree.h"

#include <algorithm>
#include <bit>

#include "symbols/readable_name.h"

namespace malloscope::analyze {

static size_t hash_of(uint64_t key) {
  key *= 0x9e3779b97f4a7c15;
  return static_cast<size_t>(key ^ key >> 29);
}

ChildTable::ChildTable(size_t expected) {
  if (expected == 0) return;
  keys_.resize(std::bit_ceil(expected * 8 / 5 + 1));
  nodes_.resize(keys_.size());
}

void ChildTable::grow() {
  ChildTable larger;
  larger.keys_.resize(std::max<size_t>(1024, keys_.size() * 2));
  larger.nodes_.resize(larger.keys_.size());
  larger.used_ = used_;
  size_t mask = larger.keys_.size() - 1;
  for (size_t i = 0; i < keys_.size(); ++i) {
    if (nodes_[i] == 0) continue;
    size_t at = hash_of(keys_[i]) & mask;
    while (larger.nodes_[at] != 0) at = (at + 1) & mask;
    larger.keys_[at] = keys_[i];
    larger.nodes_[at] = nodes_[i];
  }
  *this = std::move(larger);
}

uint32_t ChildTable::find_or_add(uint32_t node, SymbolId symbol, uint32_t next) {
  if (used_ * 8 >= keys_.size() * 5) grow();
  uint64_t key = uint64_t{node} << 32 | static_cast<uint32_t>(symbol);
  size_t mask = keys_.size() - 1, at = hash_of(key) & mask;
  for (; nodes_[at] != 0; at = (at + 1) & mask)
    if (keys_[at] == key) return nodes_[at];
  keys_[at] = key;
  nodes_[at] = next;
  ++used_;
  return next;
}

CallTree::CallTree(Reading* reading, const Query& query, TreeOptions options)
    : reading_(*reading),
      selector_(reading, query, options.fold_plumbing),
      options_(std::move(options)),
      rules_(query.rules),
      whole_outside_(query.frames.only_under.empty()) {
  reading_.for_each_row([this](const Row& row) { add(row); });
  children_ = ChildTable();
  node_at_ = decltype(node_at_)();
  if (query.full_names) return;
  // Only now is it known which short names would be those of several functions.
  std::vector<std::string_view> functions;
  for (const Symbol& symbol : symbols_) functions.push_back(symbol.full);
  std::vector<std::string> names = symbols::short_names(functions);
  for (size_t i = 0; i < symbols_.size(); ++i) symbols_[i].name = std::move(names[i]);
}

void CallTree::add(const Row& row) {
  unfiltered_ += row.amounts;
  FrameTable::Root root = reading_.frames().root(row.image, row.stack);
  bool marked = options_.mark_missing && root != FrameTable::Root::kReached;
  uint32_t node = kRoot;
  if (selector_.shares_outer_ends() && !marked &&
      reading_.tables().image(row.image).stacks.defined(row.stack)) {
    RowSelector::Place place;
    if (!selector_.select(row, &place)) return;
    node = node_of(row, place);
  } else {
    if (!selector_.select(row, &frames_)) return;
    node = node_of(root);
  }
  total_ += row.amounts;
  ++stacks_;
  cut_stacks_ += root != FrameTable::Root::kReached;
  uint32_t& amounts = nodes_[node].amounts;
  if (amounts == 0) {
    amounts = static_cast<uint32_t>(amounts_.size());
    amounts_.emplace_back();
  }
  amounts_[amounts] += row.amounts;
  if (options_.visit) options_.visit(row, node);
}

uint32_t CallTree::below(uint32_t node, std::span<const FrameId> inner_first) {
  for (size_t i = inner_first.size(); i-- > 0;)
    if (selector_.shows(inner_first[i])) node = child(node, symbol_of(inner_first[i]));
  return node;
}

uint32_t CallTree::node_at(ImageId image, trace::StackNode stack_node) {
  if (raw(image) >= node_at_.size()) node_at_.resize(raw(image) + size_t{1});
  std::vector<uint32_t>& known = node_at_[raw(image)];
  const trace::StackTable& stacks = reading_.tables().image(image).stacks;
  if (known.empty()) {
    known.resize(stacks.node_count(), kUnknown);
    known[static_cast<size_t>(trace::StackNode::kRoot)] = kRoot;
  }
  way_.clear();
  for (; known[static_cast<size_t>(stack_node)] == kUnknown; stack_node = stacks.outer(stack_node))
    way_.push_back(stack_node);
  uint32_t node = known[static_cast<size_t>(stack_node)];
  for (size_t i = way_.size(); i-- > 0;)
    known[static_cast<size_t>(way_[i])] = node = below(node, reading_.frames().at(image, way_[i]));
  return node;
}

uint32_t CallTree::node_of(const Row& row, RowSelector::Place place) {
  uint32_t node = kRoot;
  if (place.frame == 0) {
    node = node_at(row.image, place.node);
  } else {
    node = node_at(row.image, reading_.tables().image(row.image).stacks.outer(place.node));
    node = below(node, reading_.frames().at(row.image, place.node).subspan(place.frame));
  }
  return node == kRoot ? child(kRoot, marker("[hidden]")) : node;
}

uint32_t CallTree::node_of(FrameTable::Root root) {
  path_.clear();
  if (options_.mark_missing && whole_outside_) {
    if (root == FrameTable::Root::kCut) path_.push_back(marker("[cut]"));
    // A stack that was not had at all is [unknown] already.
    if (root == FrameTable::Root::kStopped && !frames_.empty() &&
        reading_.frames().frame(frames_.back()).function != "[unknown]")
      path_.push_back(marker("[unknown]"));
  }
  if (options_.mark_missing && frames_.empty()) path_.push_back(marker("[hidden]"));
  for (size_t i = frames_.size(); i-- > 0;) path_.push_back(symbol_of(frames_[i]));
  if (path_.empty()) path_.push_back(marker("[hidden]"));

  size_t common = 0;
  while (common < path_.size() && common < last_path_.size() && path_[common] == last_path_[common])
    ++common;
  last_nodes_.resize(common);
  uint32_t node = common == 0 ? kRoot : last_nodes_.back();
  for (size_t i = common; i < path_.size(); ++i) {
    node = child(node, path_[i]);
    last_nodes_.push_back(node);
  }
  last_path_ = path_;
  return node;
}

SymbolId CallTree::marker(const char* name) {
  // With the key that a frame without a module, a file and a line has.
  std::string key = name + std::string(1, '\0');
  if (options_.by_line) key += std::string(1, '\0') + '\0' + "0";
  auto [found, fresh] = ids_.try_emplace(key, SymbolId{static_cast<uint32_t>(symbols_.size())});
  if (fresh) symbols_.push_back({name, name, "", 0, "", false});
  return found->second;
}

SymbolId CallTree::symbol_of(FrameId id) {
  auto i = static_cast<size_t>(id);
  if (i >= symbol_of_frame_.size())
    symbol_of_frame_.resize(std::max(i + 1, symbol_of_frame_.size() * 2), -1);
  if (symbol_of_frame_[i] >= 0) return SymbolId{static_cast<uint32_t>(symbol_of_frame_[i])};
  SymbolId symbol = intern(reading_.frames().frame(id));
  symbol_of_frame_[i] = static_cast<int32_t>(symbol);
  return symbol;
}

SymbolId CallTree::intern(const Frame& frame) {
  std::string function = frame.function;
  rename(rules_, &function);  // Functions that get the same name are one from here on.
  std::string key = function + '\0' + frame.module;
  if (options_.by_line) key += '\0' + frame.file + '\0' + std::to_string(frame.line);
  auto [found, fresh] = ids_.try_emplace(key, SymbolId{static_cast<uint32_t>(symbols_.size())});
  if (fresh)
    symbols_.push_back({function, function, frame.file, frame.line, frame.module, frame.plumbing,
                        options_.by_line ? frame.column : 0});
  Symbol& known = symbols_[static_cast<uint32_t>(found->second)];
  if (known.column != frame.column) known.column = 0;
  if (known.line != frame.line || known.file != frame.file) known.line = 0;
  return found->second;
}

uint32_t CallTree::child(uint32_t node, SymbolId symbol) {
  auto next = static_cast<uint32_t>(nodes_.size());
  uint32_t below = children_.find_or_add(node, symbol, next);
  if (below == next) nodes_.push_back({node, symbol});
  return below;
}

std::vector<Amounts> CallTree::cumulative() const {
  std::vector<Amounts> sums(nodes_.size());
  for (size_t i = nodes_.size(); i-- > 0;) {
    sums[i] += self(i);
    if (i != kRoot) sums[nodes_[i].parent] += sums[i];
  }
  return sums;
}

std::vector<uint32_t> FunctionTree::renumber() {
  // How many nodes there are at and below each; a parent's number is smaller than its children's.
  std::vector<uint32_t> sizes(nodes_.size(), 1);
  for (size_t i = nodes_.size(); i-- > 1;) sizes[nodes_[i].parent] += sizes[i];
  std::vector<uint32_t> numbers(nodes_.size()), next(nodes_.size());  // Where the next child goes.
  std::vector<Node> ordered(nodes_.size());
  next[kRoot] = kRoot + 1;
  ordered[kRoot] = nodes_[kRoot];
  for (size_t i = 1; i < nodes_.size(); ++i) {
    const Node& node = nodes_[i];
    numbers[i] = next[node.parent];
    next[node.parent] += sizes[i];
    next[i] = numbers[i] + 1;
    ordered[numbers[i]] = {numbers[node.parent], node.symbol, node.amounts};
  }
  nodes_ = std::move(ordered);
  return numbers;
}

void FunctionTree::path(uint32_t node, std::vector<SymbolId>* inner_first) const {
  inner_first->clear();
  for (; node != kRoot; node = nodes_[node].parent) inner_first->push_back(nodes_[node].symbol);
}

}  // namespace malloscope::analyze
