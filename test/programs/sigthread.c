// SPDX-License-Identifier: Apache-2.0
// A signal to the process goes to the one thread that lets it through, and the
// masks are as they were set, in every thread (F10, F18).
//
// expect: keep allocations=3000

#include <pthread.h>

#include "known.h"

static volatile pid_t handled_by;
static void on_signal(int unused) { (void)unused, handled_by = (pid_t)syscall(SYS_gettid); }

static void *listen(void *tid) {
  sigset_t set;
  sigfillset(&set);
  sigdelset(&set, SIGUSR1);
  keep(1000, 40);
  *(volatile pid_t *)tid = (pid_t)syscall(SYS_gettid);
  while (!handled_by) sigsuspend(&set);
  return NULL;
}

int main(void) {
  sigset_t all, now;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, NULL);
  signal(SIGUSR1, on_signal);
  volatile pid_t listener = 0;
  pthread_t thread;
  pthread_create(&thread, NULL, listen, (void *)&listener);
  keep(1000, 40);
  while (!listener) usleep(1000);
  kill(getpid(), SIGUSR1);
  pthread_join(thread, NULL);
  keep(1000, 40);
  pthread_sigmask(SIG_SETMASK, NULL, &now);
  int blocked = 0;
  for (int s = 1; s < 65; ++s) blocked += sigismember(&now, s) == 1;
  tell("blocked", blocked);
  tell("right thread", handled_by == listener);
  return 0;
}
