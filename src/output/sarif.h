// SPDX-License-Identifier: Apache-2.0
// The verdicts of `check` as SARIF 2.1.0, which editors and code review show at the
// lines responsible: one result for each site of an exceeded limit.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analyze/budget.h"
#include "output/sink.h"

namespace malloscope::output {

void write_sarif(const std::vector<analyze::Verdict>& verdicts, Sink* sink);

// A path as the standard wants it: "file:///a%20b.cc", or "src/a.cc" if it is relative.
std::string uri_of(std::string_view path);

}  // namespace malloscope::output
