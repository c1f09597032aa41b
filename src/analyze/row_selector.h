// SPDX-License-Identifier: Apache-2.0
// Which rows a query is about, and which frames of their stacks are shown.

#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "analyze/query.h"
#include "analyze/reading.h"

namespace malloscope::analyze {

class RowSelector {
 public:
  // `fold_plumbing`: frames of the allocator and the standard library on the inner end belong to
  // who called them, and are not shown.
  RowSelector(Reading* reading, const Query& query, bool fold_plumbing = true)
      : reading_(*reading),
        filter_(query.frames),
        rules_(query.rules),
        threads_(query.threads),
        fold_plumbing_(fold_plumbing) {}

  // False: the row does not count. Else the frames that are shown, innermost first; there are none
  // if all are hidden.
  bool select(const Row& row, std::vector<FrameId>* shown);

 private:
  // By FrameId: whether a pattern matches. -1: not known yet.
  using Known = std::vector<int8_t>;
  bool matches(Known* known, const std::vector<Pattern>& patterns, FrameId frame);
  // Whether rules fold the frame into its caller.
  bool folds(FrameId frame);
  bool thread_matches(const trace::Image& image, ThreadId thread) const;

  Reading& reading_;
  FrameFilter filter_;
  Rules rules_;
  std::vector<Pattern> threads_;
  bool fold_plumbing_;
  Known focus_, ignore_, under_, hide_, fold_, above_, below_;
  std::unordered_map<std::string, bool> module_matches_;
  std::vector<FrameId> frames_;
};

}  // namespace malloscope::analyze
