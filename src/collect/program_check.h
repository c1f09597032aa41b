// SPDX-License-Identifier: Apache-2.0
// Whether a program can be recorded, told from its file before it is started, so
// that one that cannot is run all the same and the user learns why.

#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"

namespace malloscope::collect {

struct ProgramCheck {
  std::string path;      // The file that will be executed.
  std::string obstacle;  // Why nothing will be recorded; empty if it will be.
  std::string warning;   // Why only a part may be recorded; empty if all of it will be.
};

// Looks `command` up in PATH if it has no slash. Nothing if there is no such program; the
// error's exit code convention (126, 127) is told by `not_found`.
struct NoProgram {
  std::string sentence;
  bool not_found;
};
std::expected<ProgramCheck, NoProgram> check_program(const std::string& command);

// "is statically linked" and so on; also for wire::kGainsRights.
const char* words_for(uint64_t why);

}  // namespace malloscope::collect
