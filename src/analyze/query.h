// SPDX-License-Identifier: Apache-2.0
// What a report is asked: which part of the recording, which stacks, how they are
// named. One Query goes in, one Answer (answer.h) comes out of every view.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analyze/heap.h"
#include "analyze/pattern.h"
#include "analyze/rules.h"
#include "analyze/stack_text.h"
#include "analyze/tally.h"
#include "analyze/time_point.h"
#include "symbols/symbolizer.h"

namespace malloscope::analyze {

// Which stacks count, and which of their frames are shown. Patterns are searched for in full
// names.
struct FrameFilter {
  std::vector<Pattern> focus;       // Stacks with a frame that matches one of them; all if empty.
  std::vector<Pattern> ignore;      // But not stacks with a frame that matches one of these.
  std::vector<Pattern> only_under;  // As focus; what is outside the outermost match is cut off.
  std::vector<Pattern> hide;        // Frames that are left out; their amounts stay in the sums.
  std::vector<Pattern> modules;     // Stacks whose site is in a module that matches.
  std::vector<Pattern> types;       // Stacks whose objects are of a type that matches.
  std::optional<StackText> where;   // Stacks of which this holds.

  bool empty() const {
    return focus.empty() && ignore.empty() && only_under.empty() && hide.empty() &&
           modules.empty() && types.empty() && !where;
  }
};

struct Query {
  Selection selection;
  std::optional<TimePoint> from, to;
  TallyOptions tally;
  std::vector<Pattern> threads;  // By name, or the number as text; all if empty.
  std::vector<Pattern> phases;   // Blocks made while one of them was open; all if empty.
  FrameFilter frames;
  Rules rules = default_rules();
  symbols::SymbolOptions symbols = {.debug_dirs = {},
                                    .sysroot = "",
                                    .debuginfod = false,
                                    .cache = symbols::NameCache::default_folder()};
  bool full_names = false;

  // Whether rows that differ in their strands alone have to be told apart.
  bool tells_strands() const { return !threads.empty() || !phases.empty(); }
  // With them told apart.
  TallyOptions tally_of_strands() const {
    TallyOptions options = tally;
    options.by_thread |= !threads.empty();
    options.by_phase |= !phases.empty();
    return options;
  }
};

}  // namespace malloscope::analyze
