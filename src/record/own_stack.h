// SPDX-License-Identifier: Apache-2.0
// Where the calling thread's own stack lies, found without asking anybody.

#pragma once

#include "unwind/stack_reader.h"

namespace malloscope::record {

// {0, 0} if it cannot be told; the unwinder then asks the kernel page by page.
unwind::StackBounds own_stack(bool is_main_thread);

}  // namespace malloscope::record
