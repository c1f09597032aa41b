// SPDX-License-Identifier: Apache-2.0
// What a recording does not know, in sentences. Both pages end with them.

#pragma once

#include <string>
#include <vector>

#include "analyze/reading.h"

namespace malloscope::output {

struct Loss {
  enum class Kind { kCut, kSampled, kLost, kStacks };
  std::string sentence;
  Kind kind = Kind::kLost;
  // Whether the figures suffer, or only some stacks.
  bool figures() const { return kind != Kind::kStacks; }
};

// Empty if nothing is missing.
std::vector<Loss> losses(const analyze::Reading& reading);

// Why the names or lines of those modules are not known that much of the memory is blamed on: at
// most three sentences, none of them twice.
std::vector<std::string> remarks_on_names(analyze::Reading* reading);

}  // namespace malloscope::output
