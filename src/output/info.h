// SPDX-License-Identifier: Apache-2.0
// What is in a trace, as text: `malloscope info`.

#pragma once

#include "analyze/reading.h"
#include "output/sink.h"

namespace malloscope::output {

struct InfoTextOptions {
  bool color = false;
  size_t width = 100;
};

void write_info(const analyze::Reading& reading, const InfoTextOptions& options, Sink* sink);

}  // namespace malloscope::output
