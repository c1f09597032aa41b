// SPDX-License-Identifier: Apache-2.0
// malloc and free are no cancellation points: a cancelled thread ends where it
// says so itself, not inside a hook (F9).
//
// run: deferred n=200
// expect: churn allocations=1000*n temporary=1000*n

#include <pthread.h>

#include "known.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t ready;

static void *work(void *unused) {
  pthread_mutex_lock(&lock);
  pthread_barrier_wait(&ready);  // The cancellation comes while we hold the lock ...
  pthread_barrier_wait(&ready);
  churn(1000, 64);
  pthread_mutex_unlock(&lock);  // ... and must not take effect before this.
  pthread_testcancel();
  say("not cancelled\n");
  return unused;
}

int main(int argc, char **argv) {
  (void)argc;
  long cancelled = 0, n = number(argv, 200);
  pthread_barrier_init(&ready, NULL, 2);
  for (long i = 0; i < n; ++i) {
    pthread_t thread;
    void *result;
    pthread_create(&thread, NULL, work, NULL);
    pthread_barrier_wait(&ready);
    pthread_cancel(thread);
    pthread_barrier_wait(&ready);
    pthread_join(thread, &result);
    cancelled += result == PTHREAD_CANCELED;
    MUST(pthread_mutex_trylock(&lock) == 0);
    pthread_mutex_unlock(&lock);
  }
  tell("cancelled", cancelled);
  return 0;
}
