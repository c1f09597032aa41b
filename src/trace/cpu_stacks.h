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

// A thread's CPU clock goes on through an exec, so the first sample of a program that was exec'd
// has what the one before it has told already. Takes that out. Samples are in order of time.
void part_cpu_of_execs(std::vector<Image>* images);

}  // namespace malloscope::trace
