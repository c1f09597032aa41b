// SPDX-License-Identifier: Apache-2.0
// A function at a place in the source.

#pragma once

#include <string>
#include <vector>

namespace malloscope::symbols {

struct SymbolFrame {
  // Demangled, with parameter types; "libfoo.so+0x1234" if no function is known there.
  std::string function;
  std::string file;  // Empty if not known.
  int line = 0;      // 0 if not known.
  int column = 0;    // 0 if not known.

  bool operator==(const SymbolFrame&) const = default;
};

// Whether the frames of a place are an address and no more.
inline bool is_unnamed(const std::vector<SymbolFrame>& frames) {
  return frames.size() == 1 && frames[0].file.empty() &&
         frames[0].function.find("+0x") != std::string::npos;
}

}  // namespace malloscope::symbols
