// SPDX-License-Identifier: Apache-2.0
// In a recorder built for tests, stacks are compared with libgcc's while real
// programs run (test/stacks_agree.py). The product has none of this.

#pragma once

#include <cstdint>

#include "unwind/walk.h"

namespace malloscope::record {

#ifdef MSCOPE_SELF_CHECK
inline constexpr bool kSelfCheck = true;
#else
inline constexpr bool kSelfCheck = false;
#endif

// `frame` is the hook's, `captured` what the memo says of its callers.
void self_check(uintptr_t frame, const unwind::Captured& captured);

}  // namespace malloscope::record
