// SPDX-License-Identifier: Apache-2.0
// The C allocation functions as the program sees them. No logic: each names
// itself, its size and the real call; recorder.h does the rest.

#include <stddef.h>

#include "base/attributes.h"
#include "record/real.h"
#include "record/recorder.h"

using namespace malloscope::record;

// The block's size as the caller meant it; a product that overflows fails in the real call.
static size_t product(size_t count, size_t size) {
  size_t bytes;
  return __builtin_mul_overflow(count, size, &bytes) ? ~size_t{0} : bytes;
}

MSCOPE_EXPORT void* malloc(size_t size) {
  return allocate(Op::kMalloc, MSCOPE_FRAME, size, [=] { return real.malloc(size); });
}

MSCOPE_EXPORT void free(void* block) {
  release(Op::kFree, MSCOPE_FRAME, block, [=] { real.free(block); });
}

MSCOPE_EXPORT void* calloc(size_t count, size_t size) {
  return allocate(Op::kCalloc, MSCOPE_FRAME, product(count, size),
                  [=] { return real.calloc(count, size); });
}

MSCOPE_EXPORT void* realloc(void* block, size_t size) {
  return reallocate(Op::kRealloc, MSCOPE_FRAME, block, size,
                    [=] { return real.realloc(block, size); });
}

MSCOPE_EXPORT void* reallocarray(void* block, size_t count, size_t size) {
  return reallocate(Op::kReallocarray, MSCOPE_FRAME, block, product(count, size),
                    [=] { return real.reallocarray(block, count, size); });
}

MSCOPE_EXPORT void* memalign(size_t alignment, size_t size) {
  return allocate(
      Op::kMemalign, MSCOPE_FRAME, size, [=] { return real.memalign(alignment, size); },
      Alignment(alignment));
}

MSCOPE_EXPORT void* aligned_alloc(size_t alignment, size_t size) {
  return allocate(
      Op::kAlignedAlloc, MSCOPE_FRAME, size, [=] { return real.aligned_alloc(alignment, size); },
      Alignment(alignment));
}

MSCOPE_EXPORT int posix_memalign(void** block, size_t alignment, size_t size) {
  int error = 0;
  allocate(
      Op::kPosixMemalign, MSCOPE_FRAME, size,
      [=, &error]() -> void* {
        error = real.posix_memalign(block, alignment, size);
        return error == 0 ? *block : nullptr;
      },
      Alignment(alignment));
  return error;
}

MSCOPE_EXPORT void* valloc(size_t size) {
  return allocate(Op::kValloc, MSCOPE_FRAME, size, [=] { return real.valloc(size); });
}

MSCOPE_EXPORT void* pvalloc(size_t size) {
  return allocate(Op::kPvalloc, MSCOPE_FRAME, size, [=] { return real.pvalloc(size); });
}

MSCOPE_EXPORT void cfree(void* block) {
  release(Op::kCfree, MSCOPE_FRAME, block, [=] { real.cfree(block); });
}

MSCOPE_EXPORT void free_sized(void* block, size_t size) {
  release(Op::kFreeSized, MSCOPE_FRAME, block, [=] { real.free_sized(block, size); });
}

MSCOPE_EXPORT void free_aligned_sized(void* block, size_t alignment, size_t size) {
  release(Op::kFreeAlignedSized, MSCOPE_FRAME, block,
          [=] { real.free_aligned_sized(block, alignment, size); });
}

MSCOPE_EXPORT size_t malloc_usable_size(void* block) { return real.malloc_usable_size(block); }
