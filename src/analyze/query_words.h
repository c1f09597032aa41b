// SPDX-License-Identifier: Apache-2.0
// A query as it is typed: in the options of a command, or in the address of the viewer's page.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analyze/query.h"
#include "base/error.h"

namespace malloscope::analyze {

// What part of a recording to look at, as it was typed.
struct QueryWords {
  Selection selection;
  std::string from, to, at;
  std::vector<std::string> threads, phases, modules, focus, ignore, hide, only_under, types;
  std::string where;
  std::string min_size, max_size;
  std::vector<std::string> renames, cut_above, cut_below, folds, rules;
  symbols::SymbolOptions symbols;
  bool no_cache = false;
  bool full_names = false;
};

// "4711" is a process, "image:3" one of its images.
Result<Selection> selection_of(std::string_view text, std::string_view option);

// What is wrong is said of the option: "--from 'x' ...".
Result<Query> query_of(const QueryWords& words);

}  // namespace malloscope::analyze
