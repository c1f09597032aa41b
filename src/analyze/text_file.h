// SPDX-License-Identifier: Apache-2.0
// A file that a person has written: rules, suppressions, a budget. None is large, so one
// that has no end (/dev/zero) is refused instead of read.

#pragma once

#include <string>

#include "base/error.h"

namespace malloscope::analyze {

inline constexpr size_t kLargestTextFile = size_t{16} << 20;

// The error says why, to be put behind "X cannot be read: ".
Result<std::string> read_text_file(const std::string& path);

}  // namespace malloscope::analyze
