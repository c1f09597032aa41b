// SPDX-License-Identifier: Apache-2.0
// std::bad_alloc passes through the hook, and a new_handler may allocate inside it.
//
// run: throws
// run: handler_allocates
// run: handler_throws
// expect throws: calls new=1000 new_array=1000
// expect throws: totals failed=2000
// expect handler_allocates: keep allocations=3 live_blocks=3 allocated_bytes=300
// expect handler_allocates: calls new=5
// expect handler_allocates: totals failed=2
// counter handler_allocates: off
// expect handler_throws: calls new=100

#include <new>

#include "known.h"

static volatile size_t huge = SIZE_MAX / 2 + 1;
static int handler_calls;

static void allocate_in_handler() {
  keep(1, 100);
  void *inner = ::operator new(64);
  ::operator delete(inner);
  if (++handler_calls == 3) std::set_new_handler(nullptr);
}

static void throw_from_handler() {
  ++handler_calls;
  throw 42;
}

int main(int, char **argv) {
  int caught = 0;
  void *none = nullptr;
  if (is(argv, "throws")) {
    for (int i = 0; i < 1000; ++i) {
      try {
        none = ::operator new(huge);
      } catch (const std::bad_alloc &) {
        ++caught;
      }
      MUST(::operator new[](huge, std::nothrow) == nullptr);
    }
  } else if (is(argv, "handler_allocates")) {
    std::set_new_handler(allocate_in_handler);
    try {
      none = ::operator new(huge);
    } catch (const std::bad_alloc &) {
      ++caught;
    }
    MUST(::operator new(huge, std::nothrow) == nullptr);
  } else {
    std::set_new_handler(throw_from_handler);
    for (int i = 0; i < 100; ++i) {
      try {
        none = ::operator new(huge);
      } catch (int) {
        ++caught;
      }
    }
  }
  ::operator delete(none);
  tell("caught", caught);
  tell("handler", handler_calls);
}
