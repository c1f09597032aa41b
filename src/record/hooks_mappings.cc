// SPDX-License-Identifier: Apache-2.0
// Memory that the program or a library takes from the kernel itself. Kept apart
// from the heap. glibc's allocator makes these calls inside itself, where nobody
// sees them; other allocators call these functions, and theirs are marked.

#include <errno.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/attributes.h"
#include "record/real.h"
#include "record/recorder.h"
#include "unwind/stack_reader.h"

using namespace malloscope;
using namespace malloscope::record;

static uint64_t number(const void* address) { return reinterpret_cast<uintptr_t>(address); }

static void* map_and_record(uintptr_t frame, void* where, size_t size, int protection, int flags,
                            int fd, off_t offset) {
  void* result = real.mmap(where, size, protection, flags, fd, offset);
  if (flags & MAP_FIXED) unwind::maps_changed();
  record_mapping(Op::kMmap, frame, number(result), size, 0, result == MAP_FAILED);
  return result;
}

MSCOPE_EXPORT void* mmap(void* where, size_t size, int protection, int flags, int fd,
                         off_t offset) {
  return map_and_record(MSCOPE_FRAME, where, size, protection, flags, fd, offset);
}
MSCOPE_EXPORT void* mmap64(void* where, size_t size, int protection, int flags, int fd,
                           off_t offset) {
  return map_and_record(MSCOPE_FRAME, where, size, protection, flags, fd, offset);
}

MSCOPE_EXPORT int munmap(void* where, size_t size) {
  // Before the call: another thread may be given the same addresses right after it.
  record_mapping(Op::kMunmap, MSCOPE_FRAME, number(where), size, 0, false);
  int result = real.munmap(where, size);
  unwind::maps_changed();
  return result;
}

MSCOPE_EXPORT void* mremap(void* where, size_t old_size, size_t size, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  void* target = flags & MREMAP_FIXED ? va_arg(arguments, void*) : nullptr;
  va_end(arguments);
  void* result = real.mremap(where, old_size, size, flags, target);
  unwind::maps_changed();
  record_mapping(Op::kMremap, MSCOPE_FRAME, number(result), size, number(where),
                 result == MAP_FAILED);
  return result;
}

MSCOPE_EXPORT int mprotect(void* where, size_t size, int protection) {
  int result = real.mprotect(where, size, protection);
  unwind::maps_changed();
  return result;
}

MSCOPE_EXPORT int brk(void* end) {
  int result = real.brk(end);
  record_mapping(Op::kBrk, MSCOPE_FRAME, number(end), 0, 0, result != 0);
  return result;
}

MSCOPE_EXPORT void* sbrk(intptr_t increment) {
  void* result = real.sbrk(increment);
  record_mapping(Op::kSbrk, MSCOPE_FRAME, number(result), static_cast<uint64_t>(increment), 0,
                 result == reinterpret_cast<void*>(-1));
  return result;
}
