// SPDX-License-Identifier: Apache-2.0
// The CPU we unwind on. Every CPU has a file that defines the same names.

#pragma once

#if defined(__x86_64__)
#include "unwind/arch_x86_64.h"
#else
#error "unwinding for this CPU is to be added as arch_<cpu>.h"
#endif
