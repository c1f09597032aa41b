// SPDX-License-Identifier: Apache-2.0
// Allocating on stacks that are not the thread's own: ucontext coroutines, and a
// raw switch to a bare page with garbage in rbp, an unmapped page above and one
// below, and no end mark (F21, F22).
//
// run: ucontext
// run: raw
// run: freed_stack
// expect: on_another_stack allocations=10000 allocated_bytes=480000
// expect: keep allocations=1000

#include <sys/mman.h>
#include <ucontext.h>

#include "known.h"

static ucontext_t home, away;
static int rounds;

OPAQUE static void on_another_stack(void) {
  for (int i = 0; i < 100; ++i) {
    volatile char *p = malloc(48);
    p[0] = 1;
  }
}

static void coroutine(void) {
  for (;;) {
    on_another_stack();
    swapcontext(&away, &home);
  }
}

// Calls f with rsp at `top` and rbp full of garbage.
__attribute__((naked, noinline)) static void call_on(void *top, void (*f)(void)) {
  (void)top, (void)f;
  __asm__(
      "push %rbp\n push %rbx\n mov %rsp, %rbx\n mov %rdi, %rsp\n"
      "movabs $0x4242424242424242, %rbp\n call *%rsi\n"
      "mov %rbx, %rsp\n pop %rbx\n pop %rbp\n ret\n");
}

static char *fresh_stack(size_t size) {
  char *p = mmap(NULL, size + 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  MUST(mprotect(p + 4096, size, PROT_READ | PROT_WRITE) == 0);
  return p + 4096;
}

int main(int argc, char **argv) {
  (void)argc;
  const size_t size = 65536;
  keep(500, 40);
  if (is(argv, "ucontext")) {
    getcontext(&away);
    away.uc_stack.ss_sp = fresh_stack(size);
    away.uc_stack.ss_size = size;
    makecontext(&away, coroutine, 0);
    for (rounds = 0; rounds < 100; ++rounds) swapcontext(&home, &away);
  } else {
    // A stack that was unmapped since the last walk must not be looked at again.
    char *stack = fresh_stack(size);
    for (rounds = 0; rounds < 100; ++rounds) {
      call_on(stack + size, on_another_stack);
      if (!is(argv, "freed_stack")) continue;
      munmap(stack - 4096, size + 8192);
      keep(0, 0);
      stack = fresh_stack(size);
    }
  }
  keep(500, 40);
  say("back home\n");
  return 0;
}
