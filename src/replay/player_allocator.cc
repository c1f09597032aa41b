// SPDX-License-Identifier: Apache-2.0
#include "replay/player_allocator.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstring>

#include "replay/player_base.h"

namespace malloscope::replay {

Allocator allocator;

void* Allocator::aligned_block(const Op& op) const {
  size_t alignment = size_t{1} << op.alignment_log2;
  if (op.kind == OpKind::kMemalign && memalign) return memalign(alignment, op.size);
  // Some refuse sizes that are no multiples of the alignment, as they may.
  if (op.kind == OpKind::kAlignedAlloc && aligned_alloc && op.size % alignment == 0)
    return aligned_alloc(alignment, op.size);
  if (posix_memalign) {
    void* made = nullptr;
    if (alignment < sizeof(void*)) alignment = sizeof(void*);
    return posix_memalign(&made, alignment, op.size) == 0 ? made : nullptr;
  }
  return memalign ? memalign(alignment, op.size) : aligned_alloc(alignment, op.size);
}

void find_allocator() {
  Dl_info home = {};
  void* found = dlsym(RTLD_DEFAULT, "malloc");
  if (!found || !dladdr(found, &home)) give_up(Fault::kNotAllocator);
  size_t length = strlen(home.dli_fname);
  if (length >= sizeof board->library) length = sizeof board->library - 1;
  memcpy(board->library, home.dli_fname, length);
  auto find = [&home](const char* name, auto* function) {
    Dl_info info = {};
    void* symbol = dlsym(RTLD_DEFAULT, name);
    if (symbol && dladdr(symbol, &info) && info.dli_fbase == home.dli_fbase)
      *reinterpret_cast<void**>(function) = symbol;
  };
  find("malloc", &allocator.malloc);
  find("calloc", &allocator.calloc);
  find("realloc", &allocator.realloc);
  find("free", &allocator.free);
  find("memalign", &allocator.memalign);
  find("aligned_alloc", &allocator.aligned_alloc);
  find("posix_memalign", &allocator.posix_memalign);
  find("malloc_trim", &allocator.trim);
  board->can_trim = allocator.trim != nullptr;
  Dl_info libc = {};
  bool is_libc =
      dladdr(reinterpret_cast<void*>(&getppid), &libc) && libc.dli_fbase == home.dli_fbase;
  if (!allocator.calloc || !allocator.realloc || !allocator.free || (board->preloaded && is_libc))
    give_up(Fault::kNotAllocator);
  bool aligned = false;
  for (int kind = 0; kind < kCallKinds; ++kind)
    aligned |= is_aligned(static_cast<OpKind>(kind)) && tail.calls[kind] != 0;
  if (aligned && !allocator.memalign && !allocator.aligned_alloc && !allocator.posix_memalign)
    give_up(Fault::kNoAligned);
}

}  // namespace malloscope::replay
