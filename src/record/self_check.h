// SPDX-License-Identifier: Apache-2.0
// In a recorder built for tests, stacks are compared with libgcc's while real
// programs run (test/stacks_agree.py). The product has none of this.

#pragma once

#include <cstdint>

namespace malloscope::record {

#ifdef MSCOPE_SELF_CHECK
inline constexpr bool kSelfCheck = true;
#else
inline constexpr bool kSelfCheck = false;
#endif

// `frame` is the hook's; the rest is what the memo says of its callers.
void self_check(uintptr_t frame, uint64_t path_hash, bool stopped);

}  // namespace malloscope::record
