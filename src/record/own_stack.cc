// SPDX-License-Identifier: Apache-2.0
// pthread_getattr_np would tell, but it takes locks and allocates, and we are
// inside malloc; /proc/self/maps takes a descriptor and grows with the program.
//
// The main thread's stack ends at __libc_stack_end, and the kernel keeps at least
// 128 MiB below it free of other mappings.
//
// Another thread's descriptor, which the thread pointer points to, lies at the
// top of the memory that is the thread's stack, and holds the start and size of
// that memory in two neighbouring words, at an offset that differs between
// versions of glibc. So we look for two words that can be nothing else: a start
// below our own stack pointer, and a size by which it ends just above the
// descriptor.

#include "record/own_stack.h"

#include <atomic>
#include <cstdint>

#include "record/real.h"

extern "C" [[gnu::weak]] void* __libc_stack_end;

namespace malloscope::record {

static unwind::StackBounds main_stack() {
  constexpr uintptr_t kFreeBelow = 120 << 20;
  if (!&__libc_stack_end || !__libc_stack_end) return {};
  uintptr_t high = reinterpret_cast<uintptr_t>(__libc_stack_end) & ~uintptr_t{7};
  return {high - kFreeBelow, high};
}

unwind::StackBounds own_stack(bool is_main_thread) {
  if (is_main_thread) return main_stack();
  // What glibc tells debuggers.
  static constinit std::atomic<const uint32_t*> descriptor_size = nullptr;
  const uint32_t* known = descriptor_size.load(std::memory_order_relaxed);
  if (!known) {
    known = static_cast<const uint32_t*>(next_definition("_thread_db_sizeof_pthread"));
    if (!known) return {};
    descriptor_size.store(known, std::memory_order_relaxed);
  }
  uintptr_t descriptor = reinterpret_cast<uintptr_t>(__builtin_thread_pointer());
  uintptr_t size = *known, here = reinterpret_cast<uintptr_t>(&size);
  if (size < 512 || size > 8192 || here >= descriptor) return {};
  const auto* words = reinterpret_cast<const uintptr_t*>(descriptor);
  for (size_t i = 0; i + 1 < size / sizeof(uintptr_t); ++i) {
    uintptr_t start = words[i], bytes = words[i + 1], end = start + bytes;
    if (start != 0 && start < here && bytes < uintptr_t{1} << 40 && end >= descriptor + size &&
        end - (descriptor + size) < 4096)
      return {start, descriptor};
  }
  return {};
}

}  // namespace malloscope::record
