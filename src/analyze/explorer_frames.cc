// SPDX-License-Identifier: Apache-2.0
// The third part of a question: how rows are put together by the frames that are shown, as a tree
// of functions or as groups.

#include <utility>

#include "analyze/explorer.h"
#include "analyze/folded_tree.h"
#include "analyze/question_parts.h"
#include "analyze/row_selector.h"

namespace malloscope::analyze {

Explorer::Treeing Explorer::tree(const Question& question) {
  std::string key = frames_key(question.words);
  if (const Treeing* kept = trees_.find(key)) return *kept;
  auto made = std::make_shared<Tree>();
  made->node_of_row.assign(rows_.size(), kNobody);
  if (const FrameFilter& frames = question.query.frames;
      !frames.hide.empty() && frames.only_under.empty() && !question.query.rules.reshape()) {
    Question whole = question;
    whole.words.hide.clear();
    whole.query.frames.hide.clear();
    Treeing all = tree(whole);
    auto folded = std::make_shared<FoldedTree>(
        *all->tree, *all->children,
        [&](const Symbol& symbol) { return matches_any(frames.hide, symbol.full); });
    for (size_t row = 0; row < rows_.size(); ++row)
      if (uint32_t node = all->node_of_row[row]; node != kNobody)
        made->node_of_row[row] = folded->node_of(node);
    made->children = std::make_unique<NodeChildren>(*folded);
    made->tree = std::move(folded);
    return trees_.keep(key, std::move(made));
  }
  TreeOptions options;
  options.visit = [&](const Row& row, uint32_t node) {
    made->node_of_row[row_of(row.image, row.stack)] = node;
  };
  // Only its shape is kept; amounts are those of a question.
  auto whole = std::make_shared<FunctionTree>(
      CallTree(reading_.get(), about_frames(question.query), options));
  const std::vector<uint32_t> numbers = whole->renumber();
  for (uint32_t& node : made->node_of_row)
    if (node != kNobody) node = numbers[node];
  made->tree = std::move(whole);
  made->children = std::make_unique<NodeChildren>(*made->tree);
  return trees_.keep(key, std::move(made));
}

Explorer::Grouping Explorer::groups(const Question& question, By by) {
  std::string key = frames_key(question.words) + std::to_string(static_cast<int>(by));
  if (const Grouping* kept = groups_.find(key)) return *kept;
  auto made = std::make_shared<Groups>();
  made->group_of_row.assign(rows_.size(), kNobody);
  Query query = about_frames(question.query);
  RowGroups groups(reading_.get(), query, by);
  Row row;
  for (size_t i = 0; i < rows_.size(); ++i) {
    row.image = rows_[i].image;
    row.stack = rows_[i].stack;
    if (std::optional<size_t> group = groups.of(row))
      made->group_of_row[i] = static_cast<uint32_t>(*group);
  }
  made->groups = groups.take();
  return groups_.keep(key, std::move(made));
}

}  // namespace malloscope::analyze
