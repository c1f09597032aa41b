// SPDX-License-Identifier: Apache-2.0
// The allocator that the player was started with, as functions of one library: what that lacks
// would be libc's, whose blocks it does not know.

#pragma once

#include <cstddef>

#include "replay/workload.h"

namespace malloscope::replay {

struct Allocator {
  void* (*malloc)(size_t) = nullptr;
  void* (*calloc)(size_t, size_t) = nullptr;
  void* (*realloc)(void*, size_t) = nullptr;
  void (*free)(void*) = nullptr;
  void* (*memalign)(size_t, size_t) = nullptr;
  void* (*aligned_alloc)(size_t, size_t) = nullptr;
  int (*posix_memalign)(void**, size_t, size_t) = nullptr;
  int (*trim)(size_t) = nullptr;

  // By the function that was called, or by one that does the same.
  [[gnu::noinline]] void* aligned_block(const Op& op) const;
};
extern Allocator allocator;

// Whoever has malloc; and whether it has all that the workload calls. Else the player gives up.
void find_allocator();

}  // namespace malloscope::replay
