// SPDX-License-Identifier: Apache-2.0
// Any answer on a terminal: the sentence, then tables that fit its width.

#pragma once

#include <cstddef>

#include "analyze/answer.h"
#include "output/sink.h"

namespace malloscope::output {

struct TextOptions {
  bool color = false;
  size_t width = 100;  // Columns; lines are cut to it, but for names that were asked for in full.
  bool full_names = false;
  bool wrap = false;  // Sentences too; where they go to a program, each is one line.
};

void write_answer(const analyze::Answer& answer, const TextOptions& options, Sink* sink);

}  // namespace malloscope::output
