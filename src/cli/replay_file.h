// SPDX-License-Identifier: Apache-2.0
// The file that the results of a replay are kept in: beside the trace, where the last ones are
// replaced and nothing else is, or where the user wants it.

#pragma once

#include <string>

#include "analyze/answer.h"
#include "base/error.h"

namespace malloscope::cli {

// Where the results of `input` go if the user does not say.
std::string usual_results(const std::string& input);

// Why `path` cannot take the results, as a sentence; else nothing. At the usual place (`usual`)
// results of an earlier replay may be replaced; anything else is lost only by --force.
std::string obstacle_to_results(const std::string& path, const std::string& input, bool usual,
                                bool force);

Result<void> store_results(const std::string& path, const analyze::Answer& answer);

}  // namespace malloscope::cli
