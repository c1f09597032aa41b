// SPDX-License-Identifier: Apache-2.0
// What a recording does not know, in sentences. Both pages end with them.

#pragma once

#include <string>
#include <vector>

#include "analyze/reading.h"

namespace malloscope::output {

// Empty if nothing is missing.
std::vector<std::string> loss_sentences(const analyze::Reading& reading);

}  // namespace malloscope::output
