// SPDX-License-Identifier: Apache-2.0
// Blocks of every aligned entry point, of alignments that their addresses do not give away: those
// of up to a page lie at better places than asked for now and then, and some ask for more.
//
// expect: calls memalign=7 aligned_alloc=2 posix_memalign=2 new_aligned=6 new_array_aligned=5
// expect: blocks allocations=14 live_blocks=14
// expect: odd_sizes allocations=4 allocated_bytes=1004
// expect: totals failed=3
// counter: off

#include <malloc.h>
#include <sys/resource.h>

#include <new>

#include "known.h"

OPAQUE static void check(void *p, uintptr_t alignment) {
  MUST(p && reinterpret_cast<uintptr_t>(p) % alignment == 0);
  memset(p, 0x5a, 100);
}

OPAQUE static void blocks() {
  check(memalign(64, 1001), 64);
  check(memalign(48, 1002), 16);  // Rounded up to 64 by libc.
  check(memalign(1, 1003), 1);
  check(memalign(65536, 1004), 65536);
  check(memalign(1 << 20, 5 << 20), 1 << 20);
  usleep(50000);  // Longer than a short record can tell.
  check(memalign(512, 1005), 512);
  check(aligned_alloc(256, 1280), 256);
  check(aligned_alloc(32768, 65536), 32768);
  void *p = nullptr;
  MUST(posix_memalign(&p, 4096, 1006) == 0);
  check(p, 4096);
  check(::operator new(1152, std::align_val_t{128}), 128);
  check(::operator new(4096, std::align_val_t{2048}, std::nothrow), 2048);
  check(::operator new[](8192, std::align_val_t{8192}), 8192);
  check(::operator new[](1056, std::align_val_t{32}, std::nothrow), 32);
  // It knows of no alignment.
  check(malloc(1007), 16);
}

// Counted as asked for; libstdc++ asks aligned_alloc for whole alignments.
OPAQUE static void odd_sizes() {
  check(::operator new(700, std::align_val_t{128}), 128);
  check(::operator new(101, std::align_val_t{256}, std::nothrow), 256);
  check(::operator new[](102, std::align_val_t{64}), 64);
  check(::operator new[](101, std::align_val_t{16}, std::nothrow), 16);
}

OPAQUE static void failures() {
  volatile size_t huge = SIZE_MAX / 2 + 1;
  void *p = nullptr;
  MUST(posix_memalign(&p, 24, 100) == EINVAL);
  MUST(::operator new(huge, std::align_val_t{64}, std::nothrow) == nullptr);
  try {
    p = ::operator new[](huge, std::align_val_t{64});
    MUST(!p);
  } catch (const std::bad_alloc &) {
  }
}

// Lets operator new try again, after an aligned call of its own.
static rlimit before;
static void make_room() {
  MUST(setrlimit(RLIMIT_AS, &before) == 0);
  check(memalign(4096, 1008), 4096);
}

OPAQUE static void second_try() {
  MUST(getrlimit(RLIMIT_AS, &before) == 0);
  std::set_new_handler(make_room);
  rlimit none = {1, before.rlim_max};
  MUST(setrlimit(RLIMIT_AS, &none) == 0);
  check(::operator new(64 << 20, std::align_val_t{64}), 64);
  std::set_new_handler(nullptr);
}

int main() {
  blocks();
  odd_sizes();
  failures();
  second_try();
  say("aligned ok\n");
}
