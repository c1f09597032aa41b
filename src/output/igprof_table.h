// SPDX-License-Identifier: Apache-2.0
// A profile as IgProf's analyser has it, for its text report and its database: functions by rank,
// each with its callers and callees.

#pragma once

#include <string>
#include <vector>

#include "analyze/call_tree.h"
#include "output/exports.h"

namespace malloscope::output {

struct IgprofAmounts {
  uint64_t count = 0;  // Of the metric.
  uint64_t calls = 0;  // Allocations; for `live`, blocks that are still live.
  uint64_t paths = 0;  // Distinct stacks of functions.
};

struct IgprofRow {
  struct Edge {
    size_t rank = 0;  // Of the other function.
    IgprofAmounts amounts;
  };
  const analyze::Symbol* symbol = nullptr;
  IgprofAmounts self, cumulative;
  analyze::Amounts all_self, all_cumulative;
  std::vector<Edge> callers;  // Lightest first.
  std::vector<Edge> callees;  // Heaviest first.
};

struct IgprofTable {
  explicit IgprofTable(const Export& what);

  std::string counter;  // MEM_LIVE and its like.
  analyze::CallTree tree;
  IgprofAmounts total;
  std::vector<IgprofRow> rows;  // rows[i] has rank i + 1; the heaviest first.
};

}  // namespace malloscope::output
