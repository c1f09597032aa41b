// SPDX-License-Identifier: Apache-2.0
// The hooks need little stack: threads of 16 KiB, a signal's small alternate
// stack, and recursion down to 20,000 frames (F23).
//
// run: thread
// run: alternate
// run: deep n=20000
// expect thread: keep allocations=2000 allocated_bytes=80000
// expect alternate: keep allocations=1000 allocated_bytes=40000
// expect deep: down allocations=n+1 allocated_bytes=24*(n+1)
// expect deep: recorder truncated_stacks=>=1

#include <limits.h>
#include <pthread.h>
#include <sys/mman.h>

#include "known.h"

static void *allocate(void *unused) {
  keep(200, 40);
  return unused;
}

static void on_signal(int unused) {
  (void)unused;
  keep(10, 40);
}

OPAQUE static long down(long depth) {
  volatile char *p = malloc(24);
  p[0] = (char)depth;
  return depth == 0 ? 0 : 1 + down(depth - 1);
}

int main(int argc, char **argv) {
  (void)argc;
  if (is(argv, "thread")) {
    for (int i = 0; i < 10; ++i) {
      pthread_t thread;
      pthread_attr_t attributes;
      pthread_attr_init(&attributes);
      MUST(pthread_attr_setstacksize(&attributes, 16384) == 0);
      MUST(pthread_create(&thread, &attributes, allocate, NULL) == 0);
      pthread_join(thread, NULL);
    }
  } else if (is(argv, "alternate")) {
    // A guard page below: an overflow would be seen.
    size_t room = 16384;
    char *stack =
        mmap(NULL, room + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(stack, 4096, PROT_NONE);
    stack_t alternate = {.ss_sp = stack + 4096, .ss_size = room};
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
    MUST(sigaltstack(&alternate, NULL) == 0 && sigaction(SIGUSR1, &action, NULL) == 0);
    for (int i = 0; i < 100; ++i) raise(SIGUSR1);
  } else {
    tell("depth", down(number(argv, 20000)));
  }
  say("done\n");
  return 0;
}
