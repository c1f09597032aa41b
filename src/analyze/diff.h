// SPDX-License-Identifier: Apache-2.0
// What changed between two recordings, or between two moments of one. Sites and
// functions are matched by name, so that a rebuilt program is still the same program.

#pragma once

#include "analyze/profile_views.h"

namespace malloscope::analyze {

struct DiffOptions {
  Metric metric = Metric::kPeak;
  By by = By::kSite;  // Or kFunction: cumulative.
  // What one side did, in units of the user's choice (events, requests); amounts are per unit.
  double before_units = 1, after_units = 1;
  bool unchanged = false;  // List those too, so that the rows add up to the totals.
};

// Each side has its own query, since the moments differ; names and filters are those of `after`.
Answer diff(Reading* before, const Query& before_query, Reading* after, const Query& after_query,
            const DiffOptions& options);

}  // namespace malloscope::analyze
