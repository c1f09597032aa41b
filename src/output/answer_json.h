// SPDX-License-Identifier: Apache-2.0
// Any answer as members of a JSON object: its facts, and an array for each table.

#pragma once

#include "analyze/answer.h"
#include "output/json_writer.h"

namespace malloscope::output {

// Into the object that is open. A frame's members are the row's own; a stack is an array of
// {function, file, line, module}, innermost first, names in full. What is not known is null.
void write_answer_members(const analyze::Answer& answer, JsonWriter* json);

}  // namespace malloscope::output
