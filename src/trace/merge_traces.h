// SPDX-License-Identifier: Apache-2.0
// Several traces as one: every image of every input, with all that belongs to it. Accounts are
// kept by image, so whatever is counted in the inputs adds up in the merged trace.

#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "trace/file_writer.h"

namespace malloscope::trace {

struct MergeOptions {
  // All recordings begin at the same moment, and what is live in them at a time adds up. Else
  // each begins when the one before has ended.
  bool together = false;
  // Called now and then with the share of the inputs that has been read.
  std::function<void(double)> progress;
};

struct Merged {
  uint64_t runs = 0;
  uint64_t images = 0;
  uint64_t events = 0;
  std::string incomplete_because;  // Empty if nothing is missing.
};

// Writes to `output`, an empty file; whoever opened it removes it if this fails. Memory is needed
// for one epoch of each input that is read at a time, and for the addresses of their stacks.
Result<Merged> merge_traces(const std::vector<std::string>& inputs, const MergeOptions& options,
                            FileWriter* output);

}  // namespace malloscope::trace
