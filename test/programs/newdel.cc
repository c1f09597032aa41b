// SPDX-License-Identifier: Apache-2.0
// Every form of operator new and delete, called as functions so that none is
// elided (F29). libstdc++ rounds what it asks aligned_alloc for up to the
// alignment, but what the program asks for counts: 100, not 128.
//
// expect: calls new=2 new_array=2 new_aligned=2 new_array_aligned=2
// expect: calls delete=3 delete_array=3 delete_aligned=3 delete_array_aligned=3
// expect: all_forms allocations=8 allocated_bytes=806 live_blocks=0

#include <new>

#include "known.h"

OPAQUE static void check(void *p, uintptr_t alignment) {
  MUST(p && reinterpret_cast<uintptr_t>(p) % alignment == 0);
  memset(p, 0x5a, 100);
}

OPAQUE static void all_forms() {
  constexpr std::align_val_t k64{64};
  errno = 55;
  void *p = ::operator new(100);
  check(p, 16);
  ::operator delete(p);
  p = ::operator new(101, std::nothrow);
  check(p, 16);
  ::operator delete(p, 101);
  p = ::operator new[](100);
  check(p, 16);
  ::operator delete[](p);
  p = ::operator new[](101, std::nothrow);
  check(p, 16);
  ::operator delete[](p, 101);
  p = ::operator new(100, k64);
  check(p, 64);
  ::operator delete(p, k64);
  p = ::operator new(102, k64, std::nothrow);
  check(p, 64);
  ::operator delete(p, 102, k64);
  p = ::operator new[](100, k64);
  check(p, 64);
  ::operator delete[](p, k64);
  p = ::operator new[](102, k64, std::nothrow);
  check(p, 64);
  ::operator delete[](p, 102, k64);
  MUST(errno == 55);
}

int main() {
  all_forms();
  void *none = nullptr;
  ::operator delete(none, std::nothrow);
  ::operator delete[](none, std::nothrow);
  ::operator delete(none, std::align_val_t{64}, std::nothrow);
  ::operator delete[](none, std::align_val_t{64}, std::nothrow);
  say("newdel ok\n");
}
