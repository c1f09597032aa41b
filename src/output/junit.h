// SPDX-License-Identifier: Apache-2.0
// The verdicts of `check` as JUnit's XML, which every CI system shows: one test case for
// each limit.

#pragma once

#include <string_view>
#include <vector>

#include "analyze/budget.h"
#include "output/sink.h"

namespace malloscope::output {

// `program` is what the cases are of.
void write_junit(const std::vector<analyze::Verdict>& verdicts, std::string_view program,
                 Sink* sink);

}  // namespace malloscope::output
