// SPDX-License-Identifier: Apache-2.0
// Threads that allocate in thread_local destructors and in four rounds of
// pthread key destructors, some of them after ours has run (F14).
//
// run: join
// run: _exit exit=3
// expect: in_destructor allocations=100 allocated_bytes=5600
// expect: in_key allocations=400 allocated_bytes=16000
// expect: keep allocations=100

#include <pthread.h>

#include "known.h"

static pthread_key_t key;

OPAQUE static void in_destructor() {
  auto *p = static_cast<volatile char *>(malloc(56));
  p[0] = 1;
}

OPAQUE static void in_key() {
  auto *p = static_cast<volatile char *>(malloc(40));
  p[0] = 1;
}

struct Last {
  int value = 0;
  ~Last() { in_destructor(); }
};
static thread_local Last last;

static void destroy(void *round) {
  auto left = reinterpret_cast<uintptr_t>(round);
  in_key();
  if (left > 1) pthread_setspecific(key, reinterpret_cast<void *>(left - 1));
}

static void *work(void *) {
  last.value = 1;
  pthread_setspecific(key, reinterpret_cast<void *>(4));
  keep(1, 40);
  return nullptr;
}

int main(int, char **argv) {
  pthread_key_create(&key, destroy);
  for (int i = 0; i < 100; ++i) {
    pthread_t thread;
    pthread_create(&thread, nullptr, work, nullptr);
    pthread_join(thread, nullptr);
  }
  say("done\n");
  if (is(argv, "_exit")) _exit(3);
}
