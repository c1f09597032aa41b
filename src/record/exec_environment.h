// SPDX-License-Identifier: Apache-2.0
// The environment for a program about to be exec'd: with the recorder first in
// LD_PRELOAD, or without it where the program cannot take it. Usually that is the
// caller's own environment, untouched, since the variable has been inherited.
//
// A copy lies in memory that the caller gives, from its stack: an exec does not
// return, and in a vfork child whatever was mapped would stay in the parent.

#pragma once

#include <cstddef>

namespace malloscope::record {

class ExecEnvironment {
 public:
  ExecEnvironment(char* const* original, bool with_recorder);

  char* const* original() const { return original_; }
  // How much memory the copy needs; 0 if the original will do.
  size_t bytes() const { return bytes_; }
  // The copy, in `memory` of that size.
  char* const* copy_to(void* memory) const;

 private:
  char* const* original_;
  bool with_recorder_;
  size_t variables_ = 0;
  size_t position_ = 0;    // Of LD_PRELOAD; variables_ if it is not there.
  const char* list_ = "";  // Its value.
  size_t bytes_ = 0;
};

}  // namespace malloscope::record
