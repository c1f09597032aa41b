// SPDX-License-Identifier: Apache-2.0
// Threads that come and go by the thousand, a thousand that live at once, and
// what each of them frees on its way out (F14).
//
// run: churn n=5000 long=10000
// run: live n=1000
// expect churn: keep allocations=10*n allocated_bytes=10*n*48
// expect live: keep allocations=10*n allocated_bytes=10*n*48
// expect: recorder lost=0

#include <pthread.h>

#include "known.h"

static pthread_barrier_t all;
static int together;

static void *work(void *unused) {
  keep(5, 48);
  if (together) pthread_barrier_wait(&all);
  keep(5, 48);
  return unused;
}

int main(int argc, char **argv) {
  (void)argc;
  long n = number(argv, 1000);
  MUST(n <= 10000);
  together = is(argv, "live");
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 65536);
  static pthread_t threads[10000];
  pthread_barrier_init(&all, NULL, (unsigned)n);
  long batch = together ? n : 8;
  for (long done = 0; done < n; done += batch) {
    for (long i = 0; i < batch; ++i)
      MUST(pthread_create(&threads[i], &attributes, work, NULL) == 0);
    for (long i = 0; i < batch; ++i) pthread_join(threads[i], NULL);
  }
  tell("threads", n);
  return 0;
}
