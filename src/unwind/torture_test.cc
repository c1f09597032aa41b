// SPDX-License-Identifier: Apache-2.0
// The torture as programs are usually compiled: optimised, without frame pointers.

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O2", "omit-frame-pointer")
#endif
#define TORTURE TortureWithoutFramePointers
#include "unwind/torture_for_test.h"
