// SPDX-License-Identifier: Apache-2.0
#include "output/exports.h"

#include "output/words.h"

namespace malloscope::output {

std::string command_of(const analyze::Reading& reading) {
  for (const trace::Image* image : reading.selected())
    if (!image->command.empty()) return command_text(image->command);
  return "unknown";
}

}  // namespace malloscope::output
