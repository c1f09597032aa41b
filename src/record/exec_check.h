// SPDX-License-Identifier: Apache-2.0
// Whether a program that is about to be exec'd can take the recorder. One that
// cannot would print an error of the loader's, or not start at all.

#pragma once

#include "base/elf.h"

namespace malloscope::record {

// `file` as execve takes it, or with `search` as execvp does. What cannot be looked at is
// taken to be fine.
struct ExecCheck {
  Obstacle obstacle = Obstacle::kNone;
  bool gains_rights = false;  // setuid and its like: the loader will ignore us.
};
ExecCheck check_exec(const char* file, bool search);
ExecCheck check_exec(int fd);

}  // namespace malloscope::record
