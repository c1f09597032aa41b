// SPDX-License-Identifier: Apache-2.0
// What rows allocate, as far as the functions between malloc and their sites tell.

#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "analyze/reading.h"

namespace malloscope::analyze {

class RowTypes {
 public:
  explicit RowTypes(Reading* reading) : reading_(*reading) {}

  // Empty if it is not known.
  const std::string& of(const Row& row);

 private:
  Reading& reading_;
  std::vector<FrameId> frames_;
  std::unordered_map<std::string, std::string> known_;
};

}  // namespace malloscope::analyze
