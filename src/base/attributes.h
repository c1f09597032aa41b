// SPDX-License-Identifier: Apache-2.0
// Every compiler-specific mark used in the project, with the reason for each.

#pragma once

// The two speeds of the recorder: fast functions are inlined into the hooks,
// slow ones are kept out of them so that the hot path stays on one screen of
// machine code.
#define MSCOPE_FAST [[gnu::always_inline]] inline
#define MSCOPE_SLOW [[gnu::noinline, gnu::cold]]

// A function that the program calls in place of libc's.
#define MSCOPE_EXPORT extern "C" [[gnu::visibility("default")]]
