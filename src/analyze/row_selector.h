// SPDX-License-Identifier: Apache-2.0
// Which rows a query is about, and which frames of their stacks are shown. Stacks share
// their outer ends; where what is shown of a stack depends on nothing further in,
// a row is answered by a place in the tree of stacks instead of a list of frames.

#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "analyze/query.h"
#include "analyze/reading.h"
#include "analyze/row_types.h"
#include "analyze/strand_selector.h"

namespace malloscope::analyze {

class RowSelector {
 public:
  // `fold_plumbing`: frames of the allocator and the standard library on the inner end belong to
  // who called them, and are not shown. Of CPU time they are: they have used it.
  RowSelector(Reading* reading, const Query& query, bool fold_plumbing = true)
      : reading_(*reading),
        filter_(query.frames),
        rules_(query.rules),
        strands_(reading->tables(), reading->accounts().phases(), query),
        types_(reading),
        fold_plumbing_(fold_plumbing) {}

  // False: the row does not count. Else the frames that are shown, innermost first; there are none
  // if all are hidden.
  bool select(const Row& row, std::vector<FrameId>* shown);
  // After that: all frames of the row's stack, innermost first.
  const std::vector<FrameId>& whole() const { return frames_; }

  // Whether no frames are cut off on the outside or below some function.
  bool shares_outer_ends() const {
    return filter_.only_under.empty() && rules_.cut_above.empty() && rules_.cut_below.empty();
  }
  // Only then: what is shown are the frames from here on that are shows()n. The stack must be
  // defined.
  struct Place {
    trace::StackNode node = trace::StackNode::kRoot;
    size_t frame = 0;  // Of those at the node, innermost inlined first.
  };
  bool select(const Row& row, Place* innermost);
  // As the first select(), if only the innermost frame that is shown matters; none: all are hidden.
  bool select(const Row& row, std::optional<FrameId>* site);
  // As select(), if what is shown does not matter.
  bool selects(const Row& row);
  // Before that is asked of most rows of an image: it is faster then.
  void expect_all(ImageId image);
  bool shows(FrameId frame) {
    return (filter_.hide.empty() || !matches(&hide_, filter_.hide, frame)) && !folds(frame);
  }

 private:
  bool folds_plumbing(const Row& row) const {
    return fold_plumbing_ && !reading_.tables().image(row.image).stacks.is_of_cpu(row.stack);
  }
  // By FrameId: whether a pattern matches. -1: not known yet.
  using Known = std::vector<int8_t>;
  bool matches(Known* known, const std::vector<Pattern>& patterns, FrameId frame);
  // Whether rules fold the frame into its caller.
  bool folds(FrameId frame);
  bool module_matches(ImageId image, const std::string& module);
  bool type_matches(const Row& row);
  // The words of filter_.where that the frame has.
  uint64_t words_in(FrameId frame);
  // Whether a frame of the stack matches a pattern of `focus` and none of `ignore`, and `where`
  // holds.
  bool focused(ImageId image, trace::StackNode node);
  // What matches. There are few that differ, so they have numbers, which are places in mets_.
  struct Met {
    uint64_t words = 0;  // Of `where`.
    bool focus = false, ignore = false;
    auto operator<=>(const Met&) const = default;
  };
  enum : uint32_t { kNotKnown, kNothing };
  uint32_t number_of(const Met& met);
  // Of what matches in one or the other. Nodes ask by the million, and which of two have what
  // cannot be guessed: of the first, which mostly are all, it is looked up.
  uint32_t join(uint32_t some, uint32_t others);
  // Of the frames at a node.
  uint32_t met_at(ImageId image, trace::StackNode node);
  struct MetInImage {
    std::vector<uint32_t> nodes;  // There and further out.
    std::vector<uint32_t> codes;  // By StackTable::code: there. Many nodes have the same.
  };
  MetInImage& met_in(ImageId image);

  Reading& reading_;
  FrameFilter filter_;
  Rules rules_;
  StrandSelector strands_;
  RowTypes types_;
  bool fold_plumbing_;
  Known focus_, ignore_, under_, hide_, fold_, above_, below_;
  std::unordered_map<std::string, bool> module_matches_;
  std::vector<int8_t> called_as_meant_;  // By image: whether its first word matches; -1: not asked.
  std::vector<MetInImage> met_;          // By image.
  std::vector<Met> mets_;
  static constexpr size_t kFewMets = 16;
  std::array<std::array<uint32_t, kFewMets>, kFewMets> joined_ = {};  // kNotKnown at first.
  std::vector<bool> meant_;  // Beside them: whether the filters mean a stack that has met it.
  std::map<Met, uint32_t> met_numbers_;
  std::vector<uint64_t> words_;  // By FrameId, if known_words_ says so.
  std::vector<bool> known_words_;
  std::vector<trace::StackNode> way_;
  std::vector<FrameId> frames_, shown_;  // Scratch.
};

}  // namespace malloscope::analyze
