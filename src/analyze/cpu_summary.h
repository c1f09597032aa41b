// SPDX-License-Identifier: Apache-2.0
// The CPU time of a recording in a few figures, for those who did not ask for more.

#pragma once

#include <cstdint>
#include <string>

#include "analyze/reading.h"

namespace malloscope::analyze {

// Of the images and the window that the reading is about.
struct CpuSum {
  uint64_t nanoseconds = 0;
  uint64_t samples = 0;
  uint64_t recorder_nanoseconds = 0;  // Of which the recorder used, for calls of the program.
};
CpuSum cpu_sum(const Reading& reading);
// "about 62 % of it was spent on recording"; empty where that is little.
std::string recorders_share(const CpuSum& sum);

// The function that used most of it itself; of none the name is empty.
struct CpuFunction {
  std::string name;
  uint64_t nanoseconds = 0;
};
CpuFunction heaviest_function(Reading* reading);

}  // namespace malloscope::analyze
