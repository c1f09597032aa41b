// SPDX-License-Identifier: Apache-2.0
// Where a thread was computing when a sample of its CPU time was taken: the recorded stack without
// what only took the sample.

#pragma once

#include "trace/tables.h"

namespace malloscope::trace {

// Gives every sample of an image that has a stack one of StackTable::is_of_cpu. Those of
// allocations are as they were: whoever has the same frames by both shares nodes, never ids. To be
// called once, when all stacks are defined and all modules are known.
void name_cpu_stacks(Image* image);

}  // namespace malloscope::trace
