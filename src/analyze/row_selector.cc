// SPDX-License-Identifier: Apache-2.0
#include "analyze/row_selector.h"

#include <algorithm>

namespace malloscope::analyze {

bool RowSelector::module_matches(ImageId image, const std::string& module) {
  auto [known, fresh] = module_matches_.try_emplace(module);
  if (fresh) known->second = matches_any(filter_.modules, module);
  if (known->second) return true;
  // A program that was started by a link is looked for by what was typed.
  const trace::Image& by = reading_.tables().image(image);
  if (module != by.executable || by.command.empty()) return false;
  if (raw(image) >= called_as_meant_.size()) called_as_meant_.resize(raw(image) + size_t{1}, -1);
  int8_t& meant = called_as_meant_[raw(image)];
  if (meant < 0) meant = matches_any(filter_.modules, by.command[0]);
  return meant;
}

bool RowSelector::type_matches(const Row& row) {
  return filter_.types.empty() || matches_any(filter_.types, types_.of(row));
}

uint32_t RowSelector::number_of(const Met& met) {
  auto [known, fresh] = met_numbers_.try_emplace(met, static_cast<uint32_t>(mets_.size()));
  if (fresh) {
    mets_.push_back(met);
    meant_.push_back((filter_.focus.empty() || met.focus) && !met.ignore &&
                     (!filter_.where || filter_.where->holds(met.words)));
  }
  return known->second;
}

uint32_t RowSelector::join(uint32_t some, uint32_t others) {
  uint32_t not_kept = kNotKnown;
  uint32_t& known = some < kFewMets && others < kFewMets ? joined_[some][others] : not_kept;
  if (known != kNotKnown) return known;
  const Met &a = mets_[some], &b = mets_[others];
  Met both = {a.words | b.words, a.focus || b.focus, a.ignore || b.ignore};
  return known = both == a ? some : both == b ? others : number_of(both);
}

uint32_t RowSelector::met_at(ImageId image, trace::StackNode node) {
  const trace::StackTable& stacks = reading_.tables().image(image).stacks;
  uint32_t& known = met_[raw(image)].codes[stacks.code(node)];
  if (known != kNotKnown) return known;
  Met met;
  std::span<const FrameId> frames = reading_.frames().at(image, node);
  for (FrameId frame : frames) {
    met.focus |= !filter_.focus.empty() && matches(&focus_, filter_.focus, frame);
    met.ignore |= !filter_.ignore.empty() && matches(&ignore_, filter_.ignore, frame);
    if (filter_.where) met.words |= words_in(frame);
  }
  uint32_t number = number_of(met);
  // What the recorder's own calls look like depends on where they are.
  if (!frames.empty() && stacks.outer(node) != trace::StackNode::kRoot) known = number;
  return number;
}

RowSelector::MetInImage& RowSelector::met_in(ImageId image) {
  if (raw(image) >= met_.size()) met_.resize(raw(image) + size_t{1});
  MetInImage& met = met_[raw(image)];
  if (!met.nodes.empty()) return met;
  if (mets_.empty()) {
    mets_.resize(kNothing);
    meant_.resize(kNothing);
    number_of({});
  }
  const trace::StackTable& stacks = reading_.tables().image(image).stacks;
  met.nodes.resize(stacks.node_count(), kNotKnown);
  met.nodes[0] = kNothing;
  met.codes.resize(stacks.code_count(), kNotKnown);
  return met;
}

// An outer node has a smaller number. In the order of their numbers, no node has to wait for those
// before it, as the nodes of a way do: with millions of them, that is most of the time. The rest is
// the wait for what outer nodes have met, so that is called for in time.
void RowSelector::expect_all(ImageId image) {
  if (filter_.focus.empty() && filter_.ignore.empty() && !filter_.where) return;
  const trace::StackTable& stacks = reading_.tables().image(image).stacks;
  auto& [nodes, codes] = met_in(image);
  constexpr size_t kAhead = 32;
  for (size_t i = 1; i < nodes.size(); ++i) {
    size_t later = std::min(i + kAhead, nodes.size() - 1);
    __builtin_prefetch(&nodes[static_cast<size_t>(stacks.outer(trace::StackNode(later)))]);
    auto node = static_cast<trace::StackNode>(i);
    uint32_t here = codes[stacks.code(node)];
    if (here == kNotKnown) here = met_at(image, node);
    nodes[i] = join(nodes[static_cast<size_t>(stacks.outer(node))], here);
  }
}

bool RowSelector::focused(ImageId image, trace::StackNode node) {
  if (filter_.focus.empty() && filter_.ignore.empty() && !filter_.where) return true;
  std::vector<uint32_t>& nodes = met_in(image).nodes;
  const trace::StackTable& stacks = reading_.tables().image(image).stacks;
  way_.clear();
  for (; nodes[static_cast<size_t>(node)] == kNotKnown; node = stacks.outer(node))
    way_.push_back(node);
  uint32_t all = nodes[static_cast<size_t>(node)];
  for (size_t i = way_.size(); i-- > 0;)
    nodes[static_cast<size_t>(way_[i])] = all = join(all, met_at(image, way_[i]));
  return meant_[all];
}

bool RowSelector::selects(const Row& row) {
  const trace::StackTable& stacks = reading_.tables().image(row.image).stacks;
  if (shares_outer_ends() && stacks.defined(row.stack) && filter_.modules.empty())
    return strands_.selects(row.image, row.strand) && focused(row.image, stacks.node(row.stack)) &&
           type_matches(row);
  std::optional<FrameId> site;
  return select(row, &site);
}

bool RowSelector::select(const Row& row, Place* innermost) {
  if (!strands_.selects(row.image, row.strand)) return false;
  FrameTable& table = reading_.frames();
  const trace::StackTable& stacks = reading_.tables().image(row.image).stacks;
  trace::StackNode whole = stacks.node(row.stack);
  // Calls that the recorder made have no frames.
  while (whole != trace::StackNode::kRoot && table.at(row.image, whole).empty())
    whole = stacks.outer(whole);
  Place place = {whole, 0};
  if (folds_plumbing(row)) {
    auto found = [&] {
      for (place.node = whole; place.node != trace::StackNode::kRoot;
           place.node = stacks.outer(place.node)) {
        std::span<const FrameId> here = table.at(row.image, place.node);
        for (place.frame = 0; place.frame < here.size(); ++place.frame)
          if (!table.frame(here[place.frame]).plumbing) return true;
      }
      return false;
    };
    if (!found()) place = {whole, 0};  // Nobody else to blame.
  }
  if (!filter_.modules.empty() &&
      !module_matches(row.image, table.frame(table.at(row.image, place.node)[place.frame]).module))
    return false;
  if (!focused(row.image, whole) || !type_matches(row)) return false;
  *innermost = place;
  return true;
}

bool RowSelector::select(const Row& row, std::optional<FrameId>* site) {
  site->reset();
  const trace::StackTable& stacks = reading_.tables().image(row.image).stacks;
  if (!shares_outer_ends() || !stacks.defined(row.stack)) {
    if (!select(row, &shown_)) return false;
    if (!shown_.empty()) *site = shown_.front();
    return true;
  }
  Place place;
  if (!select(row, &place)) return false;
  for (; place.node != trace::StackNode::kRoot; place = {stacks.outer(place.node), 0})
    for (FrameId frame : reading_.frames().at(row.image, place.node).subspan(place.frame))
      if (shows(frame)) {
        *site = frame;
        return true;
      }
  return true;
}

bool RowSelector::matches(Known* known, const std::vector<Pattern>& patterns, FrameId frame) {
  auto i = static_cast<size_t>(frame);
  if (i >= known->size()) known->resize(std::max(i + 1, known->size() * 2), -1);
  if ((*known)[i] < 0) (*known)[i] = matches_any(patterns, reading_.frames().frame(frame).function);
  return (*known)[i];
}

uint64_t RowSelector::words_in(FrameId frame) {
  auto i = static_cast<size_t>(frame);
  if (i >= words_.size()) {
    words_.resize(std::max(i + 1, words_.size() * 2), 0);
    known_words_.resize(words_.size(), false);
  }
  if (!known_words_[i]) {
    known_words_[i] = true;
    words_[i] = filter_.where->words_in(reading_.frames().frame(frame).function);
  }
  return words_[i];
}

bool RowSelector::folds(FrameId frame) {
  if (rules_.fold.empty() && rules_.fold_modules.empty()) return false;
  auto i = static_cast<size_t>(frame);
  if (i >= fold_.size()) fold_.resize(std::max(i + 1, fold_.size() * 2), -1);
  const Frame& f = reading_.frames().frame(frame);
  if (fold_[i] < 0)
    fold_[i] = matches_any(rules_.fold, f.function) || matches_any(rules_.fold_modules, f.module);
  return fold_[i];
}

bool RowSelector::select(const Row& row, std::vector<FrameId>* shown) {
  shown->clear();
  if (!strands_.selects(row.image, row.strand)) return false;
  FrameTable& table = reading_.frames();
  table.stack(row.image, row.stack, &frames_);

  size_t inner = 0;
  if (folds_plumbing(row)) {
    while (inner < frames_.size() && table.frame(frames_[inner]).plumbing) ++inner;
    if (inner == frames_.size()) inner = 0;  // Nobody else to blame.
  }
  if (!filter_.modules.empty() && !module_matches(row.image, table.frame(frames_[inner]).module))
    return false;
  auto any = [&](Known* known, const std::vector<Pattern>& patterns) {
    return std::any_of(frames_.begin(), frames_.end(),
                       [&](FrameId frame) { return matches(known, patterns, frame); });
  };
  if (!filter_.focus.empty() && !any(&focus_, filter_.focus)) return false;
  if (!filter_.ignore.empty() && any(&ignore_, filter_.ignore)) return false;
  if (filter_.where) {
    uint64_t words = 0;
    for (FrameId frame : frames_) words |= words_in(frame);
    if (!filter_.where->holds(words)) return false;
  }
  if (!type_matches(row)) return false;
  size_t outer = frames_.size();
  if (!filter_.only_under.empty()) {
    while (outer > 0 && !matches(&under_, filter_.only_under, frames_[outer - 1])) --outer;
    if (outer == 0) return false;
    inner = std::min(inner, outer - 1);  // The match may be plumbing itself.
  }
  if (!rules_.cut_below.empty()) {
    size_t match = outer;
    while (match > 0 && !matches(&below_, rules_.cut_below, frames_[match - 1])) --match;
    if (match > 0) inner = std::max(inner, match - 1);
  }
  if (!rules_.cut_above.empty()) {
    size_t match = outer;
    while (match > inner && !matches(&above_, rules_.cut_above, frames_[match - 1])) --match;
    if (match > inner) outer = match;
  }
  for (size_t i = inner; i < outer; ++i)
    if (shows(frames_[i])) shown->push_back(frames_[i]);
  return true;
}

}  // namespace malloscope::analyze
