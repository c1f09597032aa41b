// SPDX-License-Identifier: Apache-2.0
// Folded stacks, as flamegraph.pl and speedscope read them.

#pragma once

#include "analyze/reading.h"
#include "output/sink.h"

namespace malloscope::output {

// A line a stack, the root first: "main;load;parse 4096". The numbers add up to the metric's total.
void write_folded(analyze::Reading* reading, analyze::Metric metric, Sink* sink);

}  // namespace malloscope::output
