// SPDX-License-Identifier: Apache-2.0
// The torture with frame pointers, and with the other habits that go with them.

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O1", "no-omit-frame-pointer")
#endif
#define TORTURE TortureWithFramePointers
#include "unwind/torture_for_test.h"
