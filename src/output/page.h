// SPDX-License-Identifier: Apache-2.0
// The one-page answer on a terminal.

#pragma once

#include <cstddef>
#include <string>

#include "analyze/reading.h"
#include "output/sink.h"

namespace malloscope::output {

struct PageOptions {
  bool color = false;
  size_t width = 100;               // Columns; used between 50 and 200.
  size_t rows = 5;                  // Sites in each list.
  std::string tool = "malloscope";  // What to type to run it again.
};

void write_page(analyze::Reading* reading, const PageOptions& options, Sink* sink);

}  // namespace malloscope::output
