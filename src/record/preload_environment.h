// SPDX-License-Identifier: Apache-2.0
// The environment for a program about to be exec'd, with the recorder first in
// LD_PRELOAD. Usually that is the caller's own environment, untouched, since the
// variable has been inherited; a copy is made only where the caller has taken the
// recorder out.
//
// The copy lies in memory that the caller gives, from its stack: an exec does not
// return, and in a vfork child whatever was mapped would stay in the parent.

#pragma once

#include <cstddef>

namespace malloscope::record {

// How much memory the copy needs; 0 if none is to be made.
size_t preload_environment_bytes(char* const* environment);

// The copy, in `memory` of that size.
char* const* preload_environment(char* const* environment, void* memory);

}  // namespace malloscope::record
